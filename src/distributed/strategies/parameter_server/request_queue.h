// The messages of workers in the order in which a server takes them: as they arrive, or in the order of a
// recording.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/timer.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/strategies/asynchronous.h"

namespace lockstep {

// The messages between workers and servers. For each gradient a worker asks the first server for permission,
// pulls each server's range of the weights, computes, and pushes each server its range of the gradient.

// Channels. A header announces the message; the rest follows on the channel of its kind.
inline constexpr int kHeaders = 0;
inline constexpr int kGradients = 1;
inline constexpr int kMoments = 2;
inline constexpr int kPullReplies = 3;
inline constexpr int kVersions = 4;
inline constexpr int kWeights = 5;
inline constexpr int kDecisions = 6;

enum class MessageKind : Index {
  kAsk,      // asks the first server: may I go on?
  kPull,     // asks for the weights, for step `step`
  kPush,     // a gradient follows
  kBad,      // tells the first server: my gradient is not finite
  kDone,     // nothing more in this round
  kDecision  // from the first server to another: whose gradients make step `step`
};

struct MessageHeader {
  MessageKind kind = MessageKind::kAsk;
  Index step = 0;
  Index version = 0;  // version of the weights that the gradient was computed from
  Index samples = 0;
  double weight = 0;
  double loss = 0;
  double correct = 0;
  double lr = 0;
  Index slowest = 0;     // `slowest` of the last PullReply to the worker
  Index ends_early = 0;  // 1: the worker wants the round to end
  Index moments = 0;     // sums for the running moments, which follow to the first server
};

// The answer to kAsk.
struct PullReply {
  Index granted = 0;  // 0: the round is over
  Index slowest =
      0;  // mode bounded: gradients that every worker has pushed, and that are to be in the weights
  Assignment assignment;
};

template <class T>
ConstBuffer bytes_of(const T& value) {
  return as_buffer(std::as_bytes(std::span(&value, 1)));
}
template <class T>
Buffer bytes_of(T& value) {
  return as_buffer(std::as_writable_bytes(std::span(&value, 1)));
}

// Waiting for another rank, but not for ever.
//
// Whoever is dead or stopped keeps others waiting, who keep others waiting in turn; the first whose timeout
// ends is to be one who waits for the culprit itself. So, in multiples of the time limit: a server waits for
// a message that is announced, or taken, a quarter of it; a worker waits for a server that owes it nothing
// but an answer half of it; the first server waits for each worker once; a worker whom a server may keep
// waiting for other workers twice; and the other servers, who know least, three times. Who was stopped itself
// blames nobody when it wakes.

struct Timeouts {
  static constexpr double kTransfer = 0.25;
  static constexpr double kAnswer = 0.5;
  static constexpr double kFirstServer = 1;
  static constexpr double kHeld = 2;
  static constexpr double kOtherServers = 3;
};

class Timeout {
 public:
  explicit Timeout(double seconds) : seconds_(seconds) {}

  /// *Blocking.* Waits until `ready` gives true. Errors: CommError with `whom()` after too long.
  void wait(const std::function<bool()>& ready, const std::function<std::string()>& whom) const;
  /// *Blocking.* Waits for a request to or from one rank.
  void wait(Request& request, int rank) const;

  /// Errors: always CommError.
  [[noreturn]] static void give_up(const std::string& whom, double waited);

 private:
  double seconds_;
};

/// The pause between two tests of something that has not come. Most answers come at once; who has waited
/// longer leaves the core to others.
void nap_after(double waited);

struct RequestQueueOptions {
  std::vector<int> peers;  ///< ranks that send messages
  double timeout_seconds = 0;
  std::filesystem::path record_to;  ///< file; empty: no recording
  std::filesystem::path replay;     ///< file; empty: as they arrive
};

class RequestQueue {
 public:
  /// Errors: DataError if the recording cannot be read or is of another number of peers.
  RequestQueue(Communicator& comm, const RequestQueueOptions& options);

  std::size_t peers() const { return options_.peers.size(); }
  /// *Local.* Starts to receive the peer's next header.
  void expect(std::size_t peer);
  /// *Blocking.* The next peer with a message; those who are not expected are not waited for. Errors:
  /// CommError naming who has been silent for too long, whatever the others do; DataError if the recording is
  /// of another run.
  std::size_t next();
  const MessageHeader& header(std::size_t peer) const { return headers_[peer]; }
  int rank(std::size_t peer) const { return options_.peers[peer]; }
  /// A peer that waits for an answer is silent on purpose: next() does not name it.
  void set_waiting(std::size_t peer, bool waiting);
  /// Writes the recording, as far as it goes. Errors: DataError.
  void save() const;

 private:
  bool arrived(std::size_t peer) const { return requests_[peer] && requests_[peer]->test(); }
  std::optional<std::size_t> find_arrival();
  void check_silence();
  void check_recording(std::size_t peer) const;
  void load();

  Communicator& comm_;
  RequestQueueOptions options_;
  std::vector<MessageHeader> headers_;
  std::vector<std::unique_ptr<Request>> requests_;  // null: not expected
  std::vector<bool> waiting_;
  std::vector<Stopwatch> silence_;  // since its last message, or since it was to be waited for
  Index taken_ = 0;                 // messages
  std::size_t turn_ = 0;            // so that no peer is served before the others for ever
  struct Entry {
    Index peer;
    MessageKind kind;
  };
  std::vector<Entry> recorded_;
  std::vector<Entry> replayed_;
  std::size_t replay_position_ = 0;
};

}  // namespace lockstep
