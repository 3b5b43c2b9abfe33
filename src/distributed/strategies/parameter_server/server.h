// A server: it owns a range of the weights and of the optimizer's state, hands it out, and takes gradients of
// it. The first server also gives workers permission to go on, and keeps the totals.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/options.h"
#include "lockstep/distributed/strategies/asynchronous.h"
#include "lockstep/distributed/update.h"
#include "request_queue.h"
#include "worker_client.h"

namespace lockstep {

// A step of several workers with backup (Chen et al. 2016, "Revisiting distributed synchronous SGD"): it
// takes the first gradients that arrive at the first server, which sends the other servers the list of their
// workers.

class StepCollector {
 public:
  /// A step takes the gradients of `needed` of the `workers`; of each, `size` numbers here.
  StepCollector(Index workers, Index needed, Index size);

  /// The buffer for the next gradient of a worker.
  std::span<Scalar> gradient_of(std::size_t worker) { return gradients_[worker].span(); }
  /// A gradient for the step under way is there.
  void add(std::size_t worker, double weight, double lr);
  /// The workers whose gradients make the step: those that are there, if they are enough. For the first
  /// server.
  std::optional<std::vector<Index>> decide() const;
  /// The decision of the first server: for each worker 1 or 0.
  void set_members(std::vector<Index> members) { members_ = std::move(members); }
  /// The members are known and their gradients are there.
  bool complete() const;
  /// Whether a worker's gradient is in the step. After set_members().
  bool takes(std::size_t worker) const { return members_[worker] != 0; }
  /// Their sum, with all their weight; the others' are forgotten. `sum` is of `size`.
  UpdateRequest take(std::span<Scalar> sum);

 private:
  Index needed_;
  std::vector<AlignedBuffer<Scalar>> gradients_;  // means, by worker
  std::vector<std::optional<double>> weights_;    // weight of each worker's samples; none: not there
  std::vector<Index> members_;                    // empty: not decided
  double lr_ = 0;
};

// Permission to compute the next gradient: the first server's decision, from what has been pushed so far.

/// The answer to a worker that asks for permission.
enum class Permit { kGo, kWait, kStop };

class AdmissionPolicy {
 public:
  AdmissionPolicy(const DistOptions& options, Index workers);

  /// Gives permission until so many steps are granted in all.
  void begin_round(Index until);
  /// The run resumes after so many steps.
  void resume_after(Index steps) { granted_ = steps; }
  /// Nobody gets permission any more.
  void stop() { stopped_ = true; }
  /// Nobody gets permission any more in this round.
  void cut_short() { cut_short_ = true; }

  /// `steps_done`: in all.
  Permit ask(std::size_t worker, Index steps_done) const;
  /// The worker goes. Gives the number of the step.
  Index go(std::size_t worker, Index steps_done);
  void pushed(std::size_t worker) { ++pushed_[worker]; }

  /// Gradients that every worker has pushed, if the mode is bounded; else 0.
  Index slowest() const {
    return options_.mode == ServerMode::kBounded ? *std::ranges::min_element(pushed_) : 0;
  }
  /// Gradients that it has pushed more than the slowest worker.
  Index ahead(std::size_t worker) const { return pushed_[worker] - *std::ranges::min_element(pushed_); }

 private:
  // A step takes gradients of several workers, and a worker has one part in it.
  bool together() const { return options_.mode == ServerMode::kSync; }

  const DistOptions& options_;
  Index until_ = 0;
  Index granted_ = 0;
  bool stopped_ = false;
  bool cut_short_ = false;
  std::vector<Index> pushed_;     // gradients that each worker has pushed
  std::vector<Index> last_step_;  // the last step that each worker got permission for
};

class Server {
 public:
  /// *Collective* over `servers`, those that serve. All references must outlive it; `weights` is the whole
  /// arena, of which it steps its own range.
  Server(Communicator& comm, Communicator& servers, const StrategyContext& context, const Service& service,
         std::span<Scalar> weights, WorkerStats& stats);

  void serve(Index until, const ServeHooks& hooks);
  const Totals& totals() const { return totals_; }
  void resume_after(Index steps);
  void add_saved(SavedState& state);
  /// Writes the recording of arrivals, if there is to be one. Errors: DataError.
  void save_recording() const { requests_.save(); }

 private:
  bool first() const { return number_ == 0; }
  Range slice() const { return service_.slices[number_]; }
  bool collects() const { return collector_ != nullptr; }
  // Several workers' step must be done; and in mode bounded the gradients that the first server promised to a
  // worker must have arrived here too.
  bool answerable(const MessageHeader& pull) const {
    return collects() ? pull.step <= version_ : pull.slowest <= admission_.slowest();
  }

  void handle(std::size_t peer);
  void answer_askers();
  void answer_pulls();
  void take_push(std::size_t worker);
  void step_with(std::size_t worker);
  void step_together();
  void receive_decision(std::size_t peer);
  void count(std::size_t worker);
  void send_header(std::size_t server, const MessageHeader& header) {
    send(kHeaders, service_.server_rank(server), bytes_of(header));
  }
  void send(int channel, int rank, ConstBuffer buffer) {
    transfer_.wait(*comm_.start_send(channel, rank, buffer), rank);
  }
  void receive(int channel, std::size_t peer, Buffer buffer);
  void receive_gradient(std::size_t worker, std::span<Scalar> to);
  void take_time_of_link(Index bytes) const;

  Communicator& comm_;
  const DistOptions& options_;
  const Service& service_;
  std::size_t number_;
  double link_mbit_;
  Timeout transfer_;        // limit for a message that is under way
  Timeout server_timeout_;  // limit for the other servers
  RequestQueue requests_;
  AdmissionPolicy admission_;
  WorkerStats& stats_;
  std::span<Scalar> weights_;
  AlignedBuffer<Scalar> gradient_;  // has the size of all weights; only the own range is used
  ParameterUpdate update_;
  std::unique_ptr<StepCollector> collector_;  // null without backup workers
  std::unique_ptr<Codec> codec_;              // null: gradients are sent as they are
  std::optional<SliceCodec> decoder_;         // if there is a codec
  AlignedBuffer<std::byte> encoded_;          // likewise
  Totals totals_;
  Index version_ = 0;                                // steps done
  std::size_t present_ = 0;                          // workers that have not sent their done message
  std::vector<bool> asking_;                         // workers that wait for permission
  std::vector<std::optional<MessageHeader>> pulls_;  // the unanswered pull of each worker
  struct Pushed {
    MessageHeader header;  // 0 samples: none, or it has been counted
    std::vector<double> moments;
  };
  std::vector<Pushed> pushed_;  // what the last gradient of each worker brought; only on the first server
  const ServeHooks* hooks_ = nullptr;
};

}  // namespace lockstep
