// Events as they were recorded may overlap by a little: an exchange begins inside the backward pass of the
// layer whose gradient was the last. Such a span is cut where the other ends, so that all nest.
//
// A rank alone does not know what it waited for: inside an exchange, it is the time until the last of all
// ranks has arrived.
#include <algorithm>
#include <limits>
#include <set>

#include "lockstep/report/trace.h"

namespace lockstep {
namespace {

struct Later {
  bool operator()(const TraceSpanOf& a, const TraceSpanOf& b) const {
    if (a.begin != b.begin) return a.begin < b.begin;
    if (a.end != b.end) return a.end > b.end;
    return (a.waits_for >= 0) < (b.waits_for >= 0);
  }
};

// The spans of one thread.
std::vector<TraceSpanOf> nest(std::vector<TraceSpanOf> spans) {
  std::multiset<TraceSpanOf, Later> left(spans.begin(), spans.end());
  std::vector<TraceSpanOf> nested;
  std::vector<std::size_t> around;  // spans that hold the next one
  while (!left.empty()) {
    TraceSpanOf span = *left.begin();
    left.erase(left.begin());
    while (!around.empty() && nested[around.back()].end <= span.begin) around.pop_back();
    if (!around.empty() && span.end > nested[around.back()].end) {
      TraceSpanOf rest = span;
      rest.begin = span.end = nested[around.back()].end;
      left.insert(rest);
    }
    span.own = span.end - span.begin;
    if (!around.empty()) nested[around.back()].own -= span.own;
    around.push_back(nested.size());
    nested.push_back(span);
  }
  return nested;
}

bool is_point(const TraceEvent& event) {
  return event.kind == TraceKind::kSync || event.kind == TraceKind::kExchange;
}

// The last rank at a point of a step, and when it arrived.
struct LastArrival {
  int rank = -1;
  std::int64_t time = std::numeric_limits<std::int64_t>::min();
};

LastArrival last_arrival(const RunTrace& trace, Index step, std::int32_t point) {
  LastArrival last;
  for (const RankTrace& rank : trace.ranks) {
    const auto found = std::ranges::lower_bound(rank.steps, step, {}, &TracedStep::step);
    if (found == rank.steps.end() || found->step != step) return {};  // nobody knows
    for (const auto& [thread, event] : found->events) {
      if (is_point(event) && event.detail == point && event.begin > last.time)
        last = {rank.rank, event.begin};
    }
  }
  return last;
}

}  // namespace

StepSpans spans_of(const RunTrace& trace, std::size_t rank, std::size_t position) {
  const TracedStep& step = trace.ranks[rank].steps[position];
  std::vector<std::vector<TraceSpanOf>> by_thread;
  StepSpans result;
  for (const auto& [thread, event] : step.events) {
    if (event.kind == TraceKind::kBucket) {
      result.buckets.push_back(event);
      continue;
    }
    if (by_thread.size() <= static_cast<std::size_t>(thread))
      by_thread.resize(static_cast<std::size_t>(thread) + 1);
    TraceSpanOf span{
        .thread = thread, .kind = event.kind, .detail = event.detail, .begin = event.begin, .end = event.end};
    at(by_thread, thread).push_back(span);
    if (!is_point(event) || trace.ranks.size() < 2) continue;
    const LastArrival last = last_arrival(trace, step.step, event.detail);
    if (last.rank < 0 || last.rank == trace.ranks[rank].rank || last.time <= event.begin) continue;
    span.waits_for = last.rank;
    span.end = std::min(last.time, event.end);
    at(by_thread, thread).push_back(span);
  }
  for (std::vector<TraceSpanOf>& spans : by_thread) {
    const std::vector<TraceSpanOf> nested = nest(std::move(spans));
    result.spans.insert(result.spans.end(), nested.begin(), nested.end());
  }
  return result;
}

}  // namespace lockstep
