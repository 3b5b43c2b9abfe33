#include "request_queue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// A recording: a line with the number of peers and of messages, then for each message its peer's number and
// the letter of its kind.
constexpr std::string_view kTitle = "lockstep-arrivals";
constexpr std::string_view kLetters = "apubgd";
constexpr std::array<std::string_view, kLetters.size()> kNames{"ask",          "pull",         "push",
                                                               "bad gradient", "done message", "decision"};
// The check for silent workers runs once per so many messages.
constexpr Index kLookEvery = 64;

std::string_view name_of(MessageKind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}
char letter_of(MessageKind kind) {
  return kLetters[static_cast<std::size_t>(kind)];
}

}  // namespace

RequestQueue::RequestQueue(Communicator& comm, const RequestQueueOptions& options)
    : comm_(comm),
      options_(options),
      headers_(options.peers.size()),
      requests_(options.peers.size()),
      waiting_(options.peers.size(), false),
      silence_(options.peers.size()) {
  if (!options_.replay.empty()) load();
}

void RequestQueue::expect(std::size_t peer) {
  requests_[peer] = comm_.start_receive(kHeaders, rank(peer), bytes_of(headers_[peer]));
  silence_[peer].lap();
}

void RequestQueue::set_waiting(std::size_t peer, bool waiting) {
  if (waiting_[peer] && !waiting) silence_[peer].lap();
  waiting_[peer] = waiting;
}

std::size_t RequestQueue::next() {
  const Stopwatch waiting;
  std::optional<std::size_t> found;
  while (!(found = find_arrival())) {
    check_silence();
    nap_after(waiting.seconds());
  }
  if (!options_.replay.empty()) check_recording(*found);
  requests_[*found].reset();
  if (!options_.record_to.empty()) recorded_.push_back({static_cast<Index>(*found), headers_[*found].kind});
  // A silent peer is found although others still send.
  if (++taken_ % kLookEvery == 0) check_silence();
  if (!options_.replay.empty()) ++replay_position_;
  return *found;
}

std::optional<std::size_t> RequestQueue::find_arrival() {
  if (!options_.replay.empty()) {
    if (replay_position_ == replayed_.size()) {
      throw DataError(
          "the recording '{}' ends after {} messages, but the run goes on: replay the config that was "
          "recorded",
          options_.replay.string(), replayed_.size());
    }
    const auto peer = static_cast<std::size_t>(replayed_[replay_position_].peer);
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

// In a replay all peers wait for the one whose turn it is.
void RequestQueue::check_silence() {
  std::vector<int> ranks;
  double longest = 0;
  for (std::size_t peer = 0; peer < requests_.size(); ++peer) {
    const bool turn = options_.replay.empty() || static_cast<Index>(peer) == replayed_[replay_position_].peer;
    if (!requests_[peer] || waiting_[peer] || !turn) continue;
    const double seconds = silence_[peer].seconds();
    if (seconds <= options_.timeout_seconds || requests_[peer]->test()) continue;
    ranks.push_back(rank(peer));
    longest = std::max(longest, seconds);
  }
  if (ranks.empty()) return;
  Timeout::give_up(fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", ")),
                   longest);
}

void RequestQueue::check_recording(std::size_t peer) const {
  const MessageKind expected = replayed_[replay_position_].kind;
  const MessageKind found = headers_[peer].kind;
  if (expected == found) return;
  throw DataError(
      "message {} of the recording '{}' is '{}' from worker {}, but the worker sends '{}': replay the config "
      "that was recorded",
      replay_position_ + 1, options_.replay.string(), name_of(expected), peer, name_of(found));
}

void RequestQueue::save() const {
  if (options_.record_to.empty()) return;
  std::string text = fmt::format("{} {} {}\n", kTitle, options_.peers.size(), recorded_.size());
  for (const Entry& entry : recorded_) text += fmt::format("{}{} ", entry.peer, letter_of(entry.kind));
  text.back() = '\n';
  write_file_atomically(options_.record_to, text);
}

void RequestQueue::load() {
  const std::string name = options_.replay.string();
  error_if<DataError>(!std::filesystem::exists(options_.replay),
                      "distribute.replay: there is no '{}'; give the directory of a run with "
                      "distribute.record and as many servers",
                      name);
  std::istringstream text(read_file(options_.replay));
  std::string title;
  Index peers = 0;
  Index count = 0;
  text >> title >> peers >> count;
  error_if<DataError>(!text || title != kTitle,
                      "'{}' is no recording of arrivals: expected '{}' at its start", name, kTitle);
  error_if<DataError>(
      peers != std::ssize(options_.peers),
      "the recording '{}' is of {} workers, but the run has {}: start as many ranks as were recorded", name,
      peers, options_.peers.size());
  Index peer = 0;
  for (char letter = 0; text >> peer >> letter;) {
    const std::size_t kind = kLetters.find(letter);
    error_if<DataError>(
        peer < 0 || peer >= peers || kind == std::string_view::npos,
        "message {} of the recording '{}' is {}, expected a number below {} and one of the letters {}",
        replayed_.size() + 1, name, in_quotes(fmt::format("{}{}", peer, letter)), peers, kLetters);
    replayed_.push_back({peer, static_cast<MessageKind>(kind)});
  }
  error_if<DataError>(std::ssize(replayed_) != count,
                      "the recording '{}' has {} messages, expected {}: it is not whole", name,
                      replayed_.size(), count);
}

void Timeout::give_up(const std::string& whom, double waited) {
  throw CommError(
      "no sign of life from {} for {:.0f} s: it is dead, stopped or much slower than the others; look at its "
      "host, or raise distribute.timeout_seconds",
      whom, waited);
}

void Timeout::wait(const std::function<bool()>& ready, const std::function<std::string()>& whom) const {
  constexpr double kLongestLook = 0.1;  // a longer one was not spent looking
  Stopwatch look;
  double waited = 0;
  while (!ready()) {
    waited += std::min(look.lap(), kLongestLook);
    if (waited > seconds_) give_up(whom(), waited);
    nap_after(waited);
  }
}

void Timeout::wait(Request& request, int rank) const {
  wait([&] { return request.test(); }, [rank] { return fmt::format("rank {}", rank); });
}

void nap_after(double waited) {
  constexpr double kEagerSeconds = 200e-6;
  constexpr std::chrono::microseconds kNap(50);
  if (waited < kEagerSeconds) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(kNap);
  }
}

}  // namespace lockstep
