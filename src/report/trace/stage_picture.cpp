// The schedule of a pipeline, as papers draw it: a line for each stage, time from left to right. The events
// of a step do not name micro-batches, but each passes once through an operation, in order: the n-th forward
// pass of an operation is that of micro-batch n, and so for backward.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "lockstep/base/text.h"
#include "trace_parts.h"

namespace lockstep {
namespace {

constexpr std::int64_t kColumns = 96;
constexpr std::string_view kForward = "0123456789";
constexpr std::string_view kBackward = "abcdefghij";

// A step of the ranks of one group, in order of the stages.
struct GroupStep {
  Index step = 0;
  std::vector<std::vector<TraceEvent>> stages;  // of the main threads, ordered by begin
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// The ranks of the first group; empty if the model is not divided, or the file of a rank is missing.
std::vector<std::size_t> first_group(const RunTrace& trace) {
  if (trace.ranks.empty()) return {};
  const Index stages = std::ranges::max_element(trace.ranks, {}, &RankTrace::stage)->stage + 1;
  // Either the stages of a group follow one another, or the groups of a stage do.
  const bool neighbours = std::ranges::all_of(
      trace.ranks, [&](const RankTrace& rank) { return rank.stage == rank.rank % stages; });
  const Index between = neighbours ? 1 : trace.ranks_of_run / stages;
  std::vector<std::size_t> group;
  for (std::size_t i = 0; i < trace.ranks.size() && std::ssize(group) < stages; ++i) {
    if (trace.ranks[i].rank == std::ssize(group) * between) group.push_back(i);
  }
  return std::ssize(group) == stages && stages > 1 ? group : std::vector<std::size_t>();
}

std::optional<GroupStep> step_of_group(const RunTrace& trace, const std::vector<std::size_t>& group,
                                       Index step) {
  GroupStep found{.step = step, .stages = {}};
  for (const std::size_t rank : group) {
    const std::vector<TracedStep>& steps = trace.ranks[rank].steps;
    const auto own = std::ranges::find(steps, step, &TracedStep::step);
    if (own == steps.end()) return std::nullopt;
    std::vector<TraceEvent>& events = found.stages.emplace_back();
    for (const auto& [thread, event] : own->events) {
      if (thread != 0 || event.kind == TraceKind::kBucket) continue;
      events.push_back(event);
      if (event.kind != TraceKind::kStep) continue;
      found.begin = found.stages.size() == 1 ? event.begin : std::min(found.begin, event.begin);
      found.end = std::max(found.end, event.end);
    }
    // An event comes before those inside it.
    std::ranges::sort(events, {}, [](const TraceEvent& event) { return std::pair(event.begin, -event.end); });
  }
  return found;
}

// The step of median length: the first of a run makes kernels, and the slowest say little about the others.
std::optional<GroupStep> typical_step(const RunTrace& trace, const std::vector<std::size_t>& group) {
  std::vector<GroupStep> steps;
  for (const TracedStep& step : trace.ranks[group.front()].steps) {
    if (auto found = step_of_group(trace, group, step.step)) steps.push_back(std::move(*found));
  }
  if (steps.empty()) return std::nullopt;
  const auto middle = steps.begin() + std::ssize(steps) / 2;
  std::ranges::nth_element(steps, middle, {}, [](const GroupStep& step) { return step.end - step.begin; });
  return *middle;
}

// Tells to which micro-batch a pass through an operation belongs. An operation may take the rows of a
// micro-batch in several pieces, so that it has several events for each; some operation has one.
class MicroBatches {
 public:
  explicit MicroBatches(const std::vector<TraceEvent>& events) {
    for (const TraceEvent& event : events) {
      if (is_pass(event)) ++pieces_[key(event)].all;
    }
    for (const auto& [operation, pieces] : pieces_) {
      count_ = count_ == 0 ? pieces.all : std::min(count_, pieces.all);
    }
  }

  static bool is_pass(const TraceEvent& event) {
    return event.kind == TraceKind::kForward || event.kind == TraceKind::kBackward ||
           event.kind == TraceKind::kLoss;
  }
  // The micro-batch of the next event. Requires is_pass().
  std::size_t next(const TraceEvent& event) {
    Pieces& pieces = pieces_[key(event)];
    return pieces.seen++ * count_ / pieces.all;
  }

 private:
  struct Pieces {
    std::size_t all = 0;
    std::size_t seen = 0;
  };
  // The detail of a loss is its replica.
  static std::pair<TraceKind, Index> key(const TraceEvent& event) {
    return {event.kind, event.kind == TraceKind::kLoss ? -1 : event.detail};
  }

  std::map<std::pair<TraceKind, Index>, Pieces> pieces_;
  std::size_t count_ = 0;
};

char sign_of(const TraceEvent& event, MicroBatches& micro_batches) {
  if (MicroBatches::is_pass(event)) {
    const std::string_view signs = event.kind == TraceKind::kForward ? kForward : kBackward;
    return signs[micro_batches.next(event) % signs.size()];
  }
  if (event.kind == TraceKind::kSync || event.kind == TraceKind::kExchange) return '=';
  return event.kind == TraceKind::kOptimizer ? '+' : '.';
}

std::string line_of(const std::vector<TraceEvent>& stage, const GroupStep& step) {
  std::string line(kColumns, ' ');
  MicroBatches micro_batches(stage);
  const auto column = [&](std::int64_t time) {
    return kColumns * (time - step.begin) / std::max<std::int64_t>(step.end - step.begin, 1);
  };
  for (const TraceEvent& event : stage) {
    const char sign = sign_of(event, micro_batches);
    const std::int64_t end = std::clamp(column(event.end), std::int64_t{0}, kColumns);
    for (std::int64_t i = std::max(column(event.begin), std::int64_t{0}); i < end; ++i) {
      line[static_cast<std::size_t>(i)] = sign;
    }
  }
  return line;
}

}  // namespace

std::string draw_stages(const RunTrace& trace) {
  const std::vector<std::size_t> group = first_group(trace);
  if (group.empty()) return "";
  const std::optional<GroupStep> step = typical_step(trace, group);
  if (!step) return "";
  std::string text =
      fmt::format("stages of the first group in step {} ({:.2f} ms):\n", with_commas(step->step + 1),
                  1e-6 * static_cast<double>(step->end - step->begin));
  for (std::size_t i = 0; i < step->stages.size(); ++i) {
    text += fmt::format("  {} |{}|\n", i, line_of(step->stages[i], *step));
  }
  return text +
         "  0 1 2: forward, a b c: backward of the first, second, third micro-batch; = exchange, "
         "+ optimizer, . idle\n";
}

}  // namespace lockstep
