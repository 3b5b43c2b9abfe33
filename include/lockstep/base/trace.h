// Moments of a program's work for a timeline. Each thread writes its events into a ring of its own, which one
// other thread empties: no lock is taken, and while nothing is recorded an event costs the look at one flag.
// All rings belong to the process.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

enum class TraceKind : std::uint8_t {
  kStep,
  kData,      ///< the main thread waits for the loader, or prepares samples itself
  kPrepare,   ///< samples of a replica are prepared
  kForward,   ///< of the op `detail`
  kLoss,      ///< loss and its gradient
  kBackward,  ///< of the op `detail`
  kBucket,    ///< bucket `detail` is under way, beside whatever the thread does
  kSync,      ///< ranks add statistics in the middle of a step
  kExchange,  ///< backward is over, and the exchange is not
  kOptimizer,
  kEvaluation,
  kCheckpoint
};

inline constexpr std::array<std::string_view, 12> kTraceNames{
    "step",   "data", "prepare",  "forward",   "loss",       "backward",
    "bucket", "sync", "exchange", "optimizer", "evaluation", "checkpoint"};

/// Nanoseconds on the steady clock.
std::int64_t trace_clock();

struct TraceEvent {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int32_t detail = -1;
  TraceKind kind = TraceKind::kStep;
};

/// In nanoseconds: when a rank's own clock showed `own`, that of rank 0 showed own + offset, within `error`.
struct ClockReading {
  std::int64_t own = 0;
  std::int64_t offset = 0;
  std::int64_t error = 0;
};

/// An event of the thread with this number; threads are numbered as they come, the first is the main one.
struct ThreadEvent {
  int thread = 0;
  TraceEvent event = {};
};

namespace trace_detail {
extern std::atomic<bool> records;
void add(const TraceEvent& event);
}  // namespace trace_detail

/// *Any thread.* Whether events are recorded now.
inline bool trace_records() {
  return trace_detail::records.load(std::memory_order_relaxed);
}
/// *Main thread.* The first call makes the caller thread 0.
void set_trace_records(bool on);

/// *Any thread.* A thread whose ring is full loses the event.
inline void trace_event(TraceKind kind, std::int64_t begin, std::int64_t end, Index detail = -1) {
  if (trace_records()) trace_detail::add({begin, end, static_cast<std::int32_t>(detail), kind});
}

/// *Main thread.* Moves what all rings hold behind `events`. Events of one thread come in the order of their
/// ends.
void drain_trace(std::vector<ThreadEvent>& events);
/// *Main thread.* Events that were lost so far.
Index lost_trace_events();
/// *Main thread.* The names of the threads so far, by their numbers.
std::vector<std::string> trace_threads();
/// *Any thread.* The name of the calling thread from its first event on; it has to live on.
void name_trace_thread(const char* name);

/// An event from here to the end of the scope.
class TraceSpan : NoCopy {
 public:
  explicit TraceSpan(TraceKind kind, Index detail = -1)
      : begin_(trace_records() ? trace_clock() : 0), detail_(detail), kind_(kind) {}
  ~TraceSpan() {
    if (begin_ != 0) trace_event(kind_, begin_, trace_clock(), detail_);
  }

 private:
  std::int64_t begin_;
  Index detail_;
  TraceKind kind_;
};

}  // namespace lockstep
