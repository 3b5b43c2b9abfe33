// Keeps the timeline of the steps that report.trace names, and appends it to the file of this rank: a line of
// JSON at a time, so that a run that is killed leaves what it has recorded so far. `trainer trace` reads it.
//
// Which steps are the slowest is known only later: a step is kept in memory until the ranks have compared
// their times, and appended if it is among the slowest so far. Whoever reads the file leaves out the steps
// that slower ones have replaced.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/trace.h"
#include "lockstep/base/types.h"
#include "lockstep/comm/rank_clock.h"

namespace lockstep {

/// The steps of which report.trace wants a timeline: how many; a step may count as several.
struct TraceRequest {
  Index first = 0;
  Index last = 0;
  Index slowest = 0;

  bool any() const { return first + last + slowest > 0; }
};

/// "first 20, last 20, slowest 20 steps", or some of these parts; "": none. Errors: ConfigError with `key`.
TraceRequest parse_trace(std::string_view key, std::string_view text);

/// The head of the file of a rank.
struct TraceHead {
  int rank = 0;
  int ranks = 1;
  Index stage = 0;  ///< of the model that this rank runs
  std::string host = {};
  std::vector<std::string> ops = {};  ///< the names of the model's operations
  Range steps = {};                   ///< steps of this start of the run
  TraceRequest request = {};
};

/// All calls are local and of the main thread.
class StepTracer : NoCopy {
 public:
  /// Replaces a file of that name. Errors: DataError.
  StepTracer(const std::filesystem::path& file, TraceHead head);
  ~StepTracer();

  void begin_step(Index step);
  /// A step that took so long; it is pending from now on, if it was recorded.
  void end_step(double seconds);
  /// Nothing is recorded until the next step.
  void pause();
  /// Appends those of the steps since the last call that are to be kept. `seconds`: of all these steps, as
  /// the ranks have agreed; empty: as long as they took here.
  void choose(std::span<const double> seconds = {});
  /// Steps since the last choose().
  Index undecided() const { return std::ssize(own_seconds_); }
  void note_clock(const ClockReading& reading);
  /// Something between two steps.
  void add(TraceKind kind, std::int64_t begin, std::int64_t end);

 private:
  struct Pending {
    Index step = 0;
    std::size_t position = 0;  // among the steps since the last choose()
    std::int64_t begin = 0;
    std::vector<ThreadEvent> events = {};
  };

  bool is_first(Index step) const { return step < head_.steps.begin + head_.request.first; }
  bool is_last(Index step) const { return step >= head_.steps.end - head_.request.last; }
  bool wants(Index step) const { return is_first(step) || is_last(step) || head_.request.slowest > 0; }
  bool enters_slowest(double seconds);
  void keep(const Pending& step, double seconds, const char* why);
  void note_threads();
  void append(const std::string& line);

  TraceHead head_;
  std::filesystem::path path_;
  int descriptor_ = -1;
  Index bytes_ = 0;
  bool failed_ = false;
  std::int64_t start_;
  std::vector<Pending> pending_;
  std::size_t pending_events_ = 0;
  std::vector<std::vector<ThreadEvent>> spare_;
  std::vector<double> own_seconds_;
  std::vector<double> slowest_;  // a heap, the least in front
  std::size_t threads_ = 0;
  Index step_ = -1;
  std::int64_t step_begin_ = 0;
  Index outside_ = 0;
  Index lost_before_ = 0;    // events that others had lost before
  Index dropped_steps_ = 0;  // steps without their events: too many were pending
  std::int64_t last_clock_ = -1;
};

}  // namespace lockstep
