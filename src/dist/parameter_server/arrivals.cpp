#include "arrivals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"

namespace lockstep {
namespace {

// A recording: a line with the number of peers and of notes, then the peers by number.
constexpr std::string_view kTitle = "lockstep-arrivals";

}  // namespace

Arrivals::Arrivals(Communicator& comm, const ArrivalOptions& options)
    : comm_(comm),
      options_(options),
      patience_(options.timeout_seconds),
      notes_(options.peers.size()),
      requests_(options.peers.size()),
      waiting_(options.peers.size(), false) {
  if (!options_.replay.empty()) load();
}

void Arrivals::expect(std::size_t peer) {
  const Receive receive{rank(peer), bytes_of(notes_[peer])};
  requests_[peer] = comm_.start_exchange(kNotes, {}, std::span(&receive, 1));
}

std::size_t Arrivals::next() {
  std::optional<std::size_t> found;
  patience_.wait([&] { return (found = find_arrival()).has_value(); }, [&] { return silent(); });
  requests_[*found].reset();
  if (!options_.record_to.empty()) recorded_.push_back(static_cast<Index>(*found));
  if (!options_.replay.empty()) ++replay_place_;
  return *found;
}

std::optional<std::size_t> Arrivals::find_arrival() {
  if (!options_.replay.empty()) {
    if (replay_place_ == replayed_.size()) {
      throw DataError(fmt::format(
          "the recording '{}' ends after {} messages, but the run goes on: replay the config that "
          "was recorded",
          options_.replay.string(), replayed_.size()));
    }
    const auto peer = static_cast<std::size_t>(replayed_[replay_place_]);
    return arrived(peer) ? std::optional(peer) : std::nullopt;
  }
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const std::size_t peer = (turn_ + i) % requests_.size();
    if (!arrived(peer)) continue;
    turn_ = peer + 1;
    return peer;
  }
  return std::nullopt;
}

std::string Arrivals::silent() const {
  std::vector<int> ranks;
  for (std::size_t peer = 0; peer < requests_.size(); ++peer) {
    if (requests_[peer] && !waiting_[peer]) ranks.push_back(rank(peer));
  }
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

void Arrivals::save() const {
  if (options_.record_to.empty()) return;
  write_file_atomically(options_.record_to, fmt::format("{} {} {}\n{}\n", kTitle, options_.peers.size(),
                                                        recorded_.size(), fmt::join(recorded_, " ")));
}

void Arrivals::load() {
  const std::string name = options_.replay.string();
  std::istringstream text(read_file(options_.replay));
  std::string title;
  Index peers = 0;
  Index count = 0;
  text >> title >> peers >> count;
  if (!text || title != kTitle) {
    throw DataError(
        fmt::format("'{}' is no recording of arrivals: expected '{}' at its start", name, kTitle));
  }
  if (peers != std::ssize(options_.peers)) {
    throw DataError(fmt::format(
        "the recording '{}' is of {} workers, but the run has {}: start as many ranks as were recorded", name,
        peers, options_.peers.size()));
  }
  for (Index peer = 0; text >> peer;) {
    if (peer < 0 || peer >= peers) {
      throw DataError(fmt::format("the recording '{}' names worker {} of {}", name, peer, peers));
    }
    replayed_.push_back(peer);
  }
  if (std::ssize(replayed_) != count) {
    throw DataError(fmt::format("the recording '{}' has {} messages, expected {}: it is not whole", name,
                                replayed_.size(), count));
  }
}

}  // namespace lockstep
