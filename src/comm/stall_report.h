// The report on the ranks that did not come: a pure function of what is known of each rank.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep {

/// One rank, as seen when others had waited for too long.
struct RankStatus {
  int rank = 0;
  std::string host = {};
  int pid = 0;
  bool known = false;        ///< its node has reported it
  bool answered = false;     ///< its watcher did
  std::string process = {};  ///< "stopped", "gone" or "", as its node sees the process
  Phase phase = Phase::kStart;
  Index step = -1;
  Index first_sample = 0;
  Index end_sample = 0;
  Index bucket = -1;  ///< or micro-batch: see Activity
  Index stage = -1;
  Call call = Call::kNone;
  Index call_number = 0;
  Index communicator = 0;
  double stuck = 0;  ///< seconds since it last got on

  bool waits() const { return known && answered && call != Call::kNone; }
};

/// The ranks that others wait for: those that are in no call, or do not answer; where all wait, those that
/// are at another call than most, and where there is no majority, all. Empty: all wait in the same call.
std::vector<int> missing_ranks(std::span<const RankStatus> ranks);

/// Several lines, for the log; the last one without an end.
std::string describe_stall(std::span<const RankStatus> ranks, double waited);

/// One line of JSON, and back. Errors of the latter: none if there is no such text.
std::string to_json(std::span<const RankStatus> ranks);
std::vector<RankStatus> statuses_from_json(const std::string& text);

}  // namespace lockstep
