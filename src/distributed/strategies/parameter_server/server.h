// A server: it owns a range of the weights and of the optimizer's state, hands it out, and takes gradients of
// it. The first server also gives workers permission to go on, and keeps the totals.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/strategies/asynchronous.h"
#include "lockstep/distributed/update.h"
#include "request_queue.h"
#include "step_collector.h"
#include "worker_client.h"

namespace lockstep {

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
  bool answerable(const MessageHeader& pull) const;

  void handle(std::size_t peer);
  void answer_askers();
  void answer_pulls();
  void take_push(std::size_t worker);
  void step_with(std::size_t worker);
  void step_together();
  void announce(const std::vector<Index>& members);
  void receive_decision(std::size_t peer);
  void add_to_step(std::size_t worker);
  void count(std::size_t worker);
  void drop_leftovers();
  void send_header(std::size_t server, const MessageHeader& header);
  void send(int channel, int rank, ConstBuffer buffer);
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
