// Rank 0 sends a message to each measuring rank, which answers with its time; the answer was given at some
// moment between the two times that rank 0 has noted. Of several round trips the shortest says most: taken as
// the middle, the moment is wrong by half of that round trip at most (Cristian 1989, "Probabilistic clock
// synchronization"). Two measurements that lie apart give the rate at which a clock drifts.
#include "lockstep/comm/rank_clock.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "lockstep/base/hash.h"
#include "lockstep/base/process.h"
#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

constexpr int kRoundTrips = 12;
constexpr int kChannel = 0;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr double kMaxDrift = 1e-3;  // no clock is that bad; a jump is no drift

// The start of the machine, and the namespace that may shift its clock.
std::string describe_clock() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  std::error_code failed;
  const std::filesystem::path space = std::filesystem::read_symlink("/proc/self/ns/time", failed);
  return boot + " " + (failed ? "" : space.string()) + (boot.empty() ? host_name() : "");
}

}  // namespace

OwnClock steady_clock() {
  return {trace_clock, static_cast<Index>(hash_text(describe_clock()) >> 1U)};
}

RankClock::RankClock(Communicator& comm, OwnClock clock)
    : clock_(std::move(clock)), comm_(comm.size() > 1 ? comm.split(0, comm.rank()) : nullptr) {
  if (comm_ == nullptr) return;
  const std::vector<Index> identities = gather_numbers(*comm_, clock_.identity);
  for (const Index identity : identities) {
    measuring_.push_back(static_cast<int>(std::ranges::find(identities, identity) - identities.begin()));
  }
}

void RankClock::measure() {
  if (comm_ == nullptr) {
    last_ = {.own = clock_.now()};
    measured_at_ = last_.own;
    return;
  }
  std::vector<Index> offsets(static_cast<std::size_t>(comm_->size()));
  std::vector<Index> errors(offsets.size());
  const int me = comm_->rank();
  for (int peer = 1; peer < comm_->size(); ++peer) {
    if (at(measuring_, peer) != peer) continue;
    if (me == peer) answer();
    if (me != 0) continue;
    const ClockReading reading = measure_with(peer);
    at(offsets, peer) = reading.offset;
    at(errors, peer) = reading.error;
  }
  const Index now = clock_.now();
  comm_->broadcast(as_buffer(std::span(offsets)), 0);
  comm_->broadcast(as_buffer(std::span(errors)), 0);
  const int source = at(measuring_, me);
  if (measured_at_ != 0) before_ = last_;
  last_ = {.own = clock_.now(), .offset = at(offsets, source), .error = at(errors, source)};
  measured_at_ = broadcast_value(*comm_, now);
}

// Rank 0. The answer is a time of the peer.
ClockReading RankClock::measure_with(int peer) {
  ClockReading best{.error = std::numeric_limits<std::int64_t>::max()};
  for (int i = 0; i < kRoundTrips; ++i) {
    Index ping = 0;
    Index theirs = 0;
    const std::array sends{Send{peer, as_buffer(std::span<const Index>(&ping, 1))}};
    const std::array receives{Receive{peer, as_buffer(std::span(&theirs, 1))}};
    const std::int64_t begin = clock_.now();
    comm_->start_exchange(kChannel, sends, receives)->wait();
    const std::int64_t end = clock_.now();
    const std::int64_t half = (end - begin + 1) / 2;
    if (half < best.error) best = {.own = theirs, .offset = begin + half - theirs, .error = half};
  }
  return best;
}

void RankClock::answer() {
  for (int i = 0; i < kRoundTrips; ++i) {
    Index ping = 0;
    comm_->start_receive(kChannel, 0, as_buffer(std::span(&ping, 1)))->wait();
    Index now = clock_.now();
    comm_->start_send(kChannel, 0, as_buffer(std::span(&now, 1)))->wait();
  }
}

std::int64_t RankClock::common(std::int64_t own) const {
  const std::int64_t plain = own + last_.offset;
  if (!before_ || last_.own - before_->own < kSecond) return plain;
  const auto passed = static_cast<double>(last_.own - before_->own);
  const double drift = static_cast<double>(last_.offset - before_->offset) / passed;
  if (std::abs(drift) > kMaxDrift) return plain;
  return plain + std::llround(drift * static_cast<double>(own - last_.own));
}

}  // namespace lockstep
