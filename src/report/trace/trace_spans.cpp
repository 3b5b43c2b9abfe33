// Events as they were recorded may overlap by a little: an exchange begins inside the backward pass of the
// layer whose gradient was the last. Such a span is cut where the other ends, so that all nest.
//
// A rank alone does not know what it waited for: inside an exchange, it is the time until the last rank has
// arrived. Of a model that is divided into stages, ranks of one stage exchange with each other alone, and
// each stage numbers its exchanges from 0: so arrivals are compared within a stage.
#include <algorithm>
#include <map>
#include <set>

#include "lockstep/report/trace/trace.h"
#include "trace_parts.h"

namespace lockstep {
namespace {

struct BeginsFirst {
  bool operator()(const NestedSpan& a, const NestedSpan& b) const {
    if (a.begin != b.begin) return a.begin < b.begin;
    if (a.end != b.end) return a.end > b.end;
    return (a.waits_for >= 0) < (b.waits_for >= 0);
  }
};

// The spans of one thread.
std::vector<NestedSpan> nest(std::vector<NestedSpan> spans) {
  std::multiset<NestedSpan, BeginsFirst> left(spans.begin(), spans.end());
  std::vector<NestedSpan> nested;
  std::vector<std::size_t> around;  // spans that hold the next one
  while (!left.empty()) {
    NestedSpan span = *left.begin();
    left.erase(left.begin());
    while (!around.empty() && nested[around.back()].end <= span.begin) around.pop_back();
    if (!around.empty() && span.end > nested[around.back()].end) {
      NestedSpan rest = span;
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

bool is_sync_point(const TraceEvent& event) {
  return event.kind == TraceKind::kSync || event.kind == TraceKind::kExchange;
}

}  // namespace

LastArrivals find_last_arrivals(const std::vector<RankTrace>& ranks) {
  std::map<Index, Index> ranks_of_stage;
  std::map<std::pair<Index, Index>, Index> recorded_by;  // by step and stage: how many ranks
  LastArrivals last;
  for (const RankTrace& rank : ranks) {
    ++ranks_of_stage[rank.stage];
    for (const TracedStep& step : rank.steps) {
      ++recorded_by[{step.step, rank.stage}];
      for (const auto& [thread, event] : step.events) {
        if (!is_sync_point(event)) continue;
        const LastArrival arrival{.rank = rank.rank, .time = event.begin};
        const auto [found, is_new] = last.try_emplace({step.step, rank.stage, event.detail}, arrival);
        if (!is_new && arrival.time > found->second.time) found->second = arrival;
      }
    }
  }
  std::erase_if(last, [&](const auto& each) {
    const auto& [step, stage, point] = each.first;
    return recorded_by[{step, stage}] < ranks_of_stage[stage];
  });
  return last;
}

StepSpans spans_of(const RunTrace& trace, std::size_t rank, std::size_t position) {
  const TracedStep& step = trace.ranks[rank].steps[position];
  std::vector<std::vector<NestedSpan>> by_thread;
  StepSpans result;
  for (const auto& [thread, event] : step.events) {
    if (event.kind == TraceKind::kBucket) {
      result.buckets.push_back(event);
      continue;
    }
    if (by_thread.size() <= static_cast<std::size_t>(thread))
      by_thread.resize(static_cast<std::size_t>(thread) + 1);
    NestedSpan span{
        .thread = thread, .kind = event.kind, .detail = event.detail, .begin = event.begin, .end = event.end};
    at(by_thread, thread).push_back(span);
    if (!is_sync_point(event)) continue;
    const auto found = trace.last_arrivals.find({step.step, trace.ranks[rank].stage, event.detail});
    if (found == trace.last_arrivals.end()) continue;
    const LastArrival& last = found->second;
    if (last.rank == trace.ranks[rank].rank || last.time <= event.begin) continue;
    span.waits_for = last.rank;
    span.end = std::min(last.time, event.end);
    at(by_thread, thread).push_back(span);
  }
  for (std::vector<NestedSpan>& spans : by_thread) {
    const std::vector<NestedSpan> nested = nest(std::move(spans));
    result.spans.insert(result.spans.end(), nested.begin(), nested.end());
  }
  return result;
}

}  // namespace lockstep
