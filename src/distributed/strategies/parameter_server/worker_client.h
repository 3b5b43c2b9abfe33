// A worker's side: permission to go on, weights, gradients.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/distributed/strategies/asynchronous.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "request_queue.h"

namespace lockstep {

// The addresses and ranges by which workers and servers know each other: a pure function of the options, the
// model and the ranks.

struct Service {
  Index workers = 0;
  Index servers = 0;
  std::vector<Range> slices;  ///< ranges of the weights, by server

  int server_rank(std::size_t server) const { return static_cast<int>(workers) + static_cast<int>(server); }
};

/// With an optimizer that needs whole tensors, or their norms, a tensor has one owner.
Service lay_out_service(const Plan& plan, const Layout& layout, const Optimizer& optimizer);

/// Workers clip their own gradients, unless several make a step together: then servers do.
UpdateRules clipping_rules(const StrategyContext& context, bool on_server);

class WorkerClient {
 public:
  /// `comm` and `service` must outlive it.
  WorkerClient(Communicator& comm, const Service& service, const DistOptions& options);

  /// *Blocking.* Errors of all that follow: CommError naming a server that does not answer.
  std::optional<Assignment> ask(bool ends_early);
  /// *Blocking.* All ranges of the weights, for step `step`.
  void pull(Index step, std::span<Scalar> weights);
  /// Starts; the gradient must stay as it is until finish_push().
  void push(const Contribution& contribution, std::span<const Scalar> gradient);
  void finish_push();
  void add_saved(SavedState& state);
  /// Instead of a push: the gradient is not finite.
  void report_bad() { send_header(0, {.kind = MessageKind::kBad}); }
  void send_done();

 private:
  ConstBuffer message_of(std::size_t server, std::span<const Scalar> gradient);
  void send_header(std::size_t server, const MessageHeader& header);
  void wait_for_any(const std::vector<std::unique_ptr<Request>>& answers) const;

  Communicator& comm_;
  const Service& service_;
  Timeout held_;                                   // limit for a server that may wait for others
  Timeout answer_;                                 // limit for a server that does not
  bool collects_;                                  // a step takes gradients of several workers
  Index slowest_ = 0;                              // see PullReply
  std::unique_ptr<Codec> codec_;                   // null: gradients are sent as they are
  std::vector<SliceCodec> encoders_;               // one for each server, if there is a codec
  std::vector<AlignedBuffer<std::byte>> encoded_;  // messages of the push under way, by server
  std::vector<Index> versions_;                    // versions of the weights here, by server
  std::vector<MessageHeader> headers_;             // headers of the push under way, by server
  std::vector<std::unique_ptr<Request>> pushes_;
};

// The fate of the gradients of each worker: updates are counted by the first server, staleness by every
// server.

class WorkerStats {
 public:
  explicit WorkerStats(Index workers);

  void count_computed(std::size_t worker) { ++at(worker, kComputed); }
  void count_step(std::size_t worker, Index samples);
  void count_drop(std::size_t worker, Index samples);
  void count_staleness(std::size_t worker, Index staleness);
  void count_ahead(std::size_t worker, Index ahead) {
    at(worker, kAhead) = std::max(at(worker, kAhead), ahead);
  }

  /// *Collective.* The counts of all ranks together.
  std::vector<WorkerRecord> gather(Communicator& comm) const;

 private:
  // The histogram of staleness goes up to this; beyond, it is counted as this. The sum is exact.
  static constexpr Index kMaxStaleness = 1023;
  enum Column : Index {
    kComputed,
    kSteps,
    kSamples,
    kDropped,
    kDroppedSamples,
    kAhead,
    kStalenessSum,
    kStaleness
  };
  static constexpr Index kColumns = kStaleness + kMaxStaleness + 1;

  Index& at(std::size_t worker, Index column) {
    return counts_[worker * static_cast<std::size_t>(kColumns) + static_cast<std::size_t>(column)];
  }

  std::vector<Index> counts_;  // workers x columns
};

}  // namespace lockstep
