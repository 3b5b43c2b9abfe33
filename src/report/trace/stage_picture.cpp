// The schedule of a pipeline, as papers draw it: a line for each stage, time from left to right. The events
// of a step do not name micro-batches, but each passes once through an operation, in order: the n-th forward
// pass of an operation is that of micro-batch n, and so for backward.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

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
  std::vector<StepSpans> stages;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// The ranks of the first group; empty if the model is not divided, or the file of a rank is missing.
std::vector<std::size_t> first_group(const RunTrace& trace) {
  std::vector<std::size_t> group;
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    const RankTrace& rank = trace.ranks[i];
    const auto next = std::ssize(group);
    if (rank.rank != next || rank.stage != next) break;
    group.push_back(i);
  }
  return group.size() > 1 ? group : std::vector<std::size_t>();
}

std::optional<GroupStep> step_of_group(const RunTrace& trace, const std::vector<std::size_t>& group,
                                       Index step) {
  GroupStep found{.step = step, .stages = {}};
  for (const std::size_t rank : group) {
    const std::vector<TracedStep>& steps = trace.ranks[rank].steps;
    const auto own = std::ranges::find(steps, step, &TracedStep::step);
    if (own == steps.end()) return std::nullopt;
    found.stages.push_back(spans_of(trace, rank, static_cast<std::size_t>(own - steps.begin())));
    for (const NestedSpan& span : found.stages.back().spans) {
      if (span.kind != TraceKind::kStep) continue;
      found.begin = found.stages.size() == 1 ? span.begin : std::min(found.begin, span.begin);
      found.end = std::max(found.end, span.end);
    }
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

char sign_of(const NestedSpan& span, std::map<std::pair<TraceKind, Index>, std::size_t>& passes) {
  const auto pass = [&](std::string_view signs) {
    const std::size_t micro_batch = passes[{span.kind, span.detail}]++;
    return signs[micro_batch % signs.size()];
  };
  switch (span.kind) {
    case TraceKind::kForward:
      return pass(kForward);
    case TraceKind::kLoss:
    case TraceKind::kBackward:
      return pass(kBackward);
    case TraceKind::kSync:
    case TraceKind::kExchange:
      return '=';
    case TraceKind::kOptimizer:
      return '+';
    default:
      return '.';
  }
}

std::string line_of(const StepSpans& stage, const GroupStep& step) {
  std::string line(kColumns, ' ');
  std::map<std::pair<TraceKind, Index>, std::size_t> passes;
  const auto column = [&](std::int64_t time) {
    return kColumns * (time - step.begin) / std::max<std::int64_t>(step.end - step.begin, 1);
  };
  for (const NestedSpan& span : stage.spans) {
    if (span.thread != 0 || span.waits_for >= 0) continue;
    const char sign = sign_of(span, passes);
    const std::int64_t end = std::clamp(column(span.end), std::int64_t{0}, kColumns);
    for (std::int64_t i = std::max(column(span.begin), std::int64_t{0}); i < end; ++i) {
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
         "  0 1 2: forward, a b c: backward of the first, second, third micro-batch; = exchange, + "
         "optimizer, . "
         "idle\n";
}

}  // namespace lockstep
