// The messages of workers in the order in which a server takes them: as they arrive, or in the order of a
// recording.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "messages.h"
#include "timeout.h"

namespace lockstep {

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
  /// *Local.* Looks out for the peer's next header.
  void expect(std::size_t peer);
  /// *Blocking.* The next peer with a message; those who are not expected are not waited for. Errors:
  /// CommError naming who has been silent for too long, whatever the others do; DataError if the recording is
  /// of another run.
  std::size_t next();
  const MessageHeader& header(std::size_t peer) const { return headers_[peer]; }
  int rank(std::size_t peer) const { return options_.peers[peer]; }
  /// Whoever is silent on purpose, since it waits for an answer, is not named.
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
