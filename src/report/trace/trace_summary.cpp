#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <span>

#include "lockstep/base/text.h"
#include "lockstep/report/trace/trace.h"

namespace lockstep {
namespace {

constexpr std::size_t kTopLayers = 10;
constexpr std::size_t kSlowSteps = 5;

template <class Value>
std::span<const Value> first_of(const std::vector<Value>& values, std::size_t count) {
  return std::span(values).first(std::min(values.size(), count));
}

struct LayerTime {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
  std::int64_t both() const { return forward + backward; }
};

// Nanoseconds, over all ranks.
struct Sums {
  std::map<std::string, std::int64_t> main = {};  // time of the main threads by what they do
  std::map<int, std::int64_t> waits_for = {};     // time of the main threads by the rank they wait for
  std::map<Index, LayerTime> layers = {};         // of all threads
  std::int64_t layer_time = 0;
  std::int64_t steps = 0;    // of the main threads
  std::int64_t buckets = 0;  // while at least one is under way
  std::int64_t hidden = 0;   // of that, beside forward, backward or loss
  std::int64_t team = 0;     // the steps, for each thread beside the main one that computes
  std::int64_t team_busy = 0;

  std::int64_t main_time(const char* reason) const {
    const auto found = main.find(reason);
    return found == main.end() ? 0 : found->second;
  }
};

bool computes(TraceKind kind) {
  return kind == TraceKind::kForward || kind == TraceKind::kBackward || kind == TraceKind::kLoss;
}

std::string reason_of(const NestedSpan& span) {
  if (span.waits_for >= 0) return "waiting";
  switch (span.kind) {
    case TraceKind::kStep:
      return "rest";
    case TraceKind::kData:
    case TraceKind::kPrepare:
      return "data";
    case TraceKind::kSync:
    case TraceKind::kExchange:
      return "exchange";
    default:
      return std::string(at(kTraceNames, static_cast<Index>(span.kind)));
  }
}

// How long buckets are under way, and how much of that the main thread computes.
void add_overlap(const StepSpans& step, Sums& sums) {
  std::vector<TraceEvent> under_way = step.buckets;
  std::ranges::sort(under_way, {}, &TraceEvent::begin);
  std::vector<std::pair<std::int64_t, std::int64_t>> busy;
  for (const TraceEvent& bucket : under_way) {
    if (busy.empty() || bucket.begin > busy.back().second) {
      busy.emplace_back(bucket.begin, bucket.end);
    } else {
      busy.back().second = std::max(busy.back().second, bucket.end);
    }
  }
  for (const auto& [begin, end] : busy) {
    sums.buckets += end - begin;
    for (const NestedSpan& span : step.spans) {
      if (span.thread != 0 || !computes(span.kind)) continue;
      sums.hidden += std::max(std::min(end, span.end) - std::max(begin, span.begin), std::int64_t{0});
    }
  }
}

void add_spans(const StepSpans& step, Sums& sums) {
  std::int64_t length = 0;
  std::map<int, std::int64_t> busy;
  for (const NestedSpan& span : step.spans) {
    if (span.kind == TraceKind::kForward || span.kind == TraceKind::kBackward) {
      LayerTime& layer = sums.layers[span.detail];
      (span.kind == TraceKind::kForward ? layer.forward : layer.backward) += span.own;
      sums.layer_time += span.own;
    }
    if (span.thread != 0) {
      if (computes(span.kind)) busy[span.thread] += span.own;
      continue;
    }
    if (span.kind == TraceKind::kStep) length += span.end - span.begin;
    sums.main[reason_of(span)] += span.own;
    if (span.waits_for >= 0) sums.waits_for[span.waits_for] += span.own;
  }
  sums.steps += length;
  for (const auto& [thread, time] : busy) {
    sums.team += length;
    sums.team_busy += time;
  }
}

Sums add_up(const RunTrace& trace) {
  Sums sums;
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
    for (std::size_t i = 0; i < trace.ranks[rank].steps.size(); ++i) {
      const StepSpans step = spans_of(trace, rank, i);
      add_overlap(step, sums);
      add_spans(step, sums);
    }
  }
  return sums;
}

double percent(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string milliseconds(std::int64_t nanoseconds) {
  return fmt::format("{:.3f} ms", 1e-6 * static_cast<double>(nanoseconds));
}

std::string describe_main_threads(const Sums& sums) {
  std::string text = "main threads of all ranks:\n";
  for (const char* name :
       {"forward", "loss", "backward", "optimizer", "rest", "exchange", "waiting", "data"}) {
    const std::int64_t time = sums.main_time(name);
    if (time == 0) continue;
    text += fmt::format("  {:<10} {:5.1f} %  {:>14}\n", name, percent(time, sums.steps), milliseconds(time));
  }
  return text;
}

std::string describe_layers(const RunTrace& trace, const Sums& sums) {
  std::vector<std::pair<Index, LayerTime>> layers(sums.layers.begin(), sums.layers.end());
  std::ranges::stable_sort(layers,
                           [](const auto& a, const auto& b) { return a.second.both() > b.second.both(); });
  std::string text = "top layers, of the time that all threads spend in layers:\n";
  for (const auto& [op, time] : first_of(layers, kTopLayers)) {
    const std::string name =
        op >= 0 && op < std::ssize(trace.ops) ? at(trace.ops, op) : fmt::format("operation {}", op);
    text += fmt::format("  {:5.1f} %  {} (forward {}, backward {})\n", percent(time.both(), sums.layer_time),
                        name, milliseconds(time.forward), milliseconds(time.backward));
  }
  return text;
}

std::string describe_idle(const Sums& sums) {
  std::string text = "idle by reason, of the time of the main threads:\n";
  for (const char* name : {"data", "exchange", "waiting"}) {
    text += fmt::format("  {:<10} {:5.1f} %{}\n", name, percent(sums.main_time(name), sums.steps),
                        name == std::string_view("exchange") ? "  that nothing hides" : "");
  }
  std::vector<std::pair<int, std::int64_t>> waits(sums.waits_for.begin(), sums.waits_for.end());
  std::ranges::stable_sort(waits, std::greater(), &std::pair<int, std::int64_t>::second);
  for (const auto& [rank, time] : first_of(waits, 5)) {
    text += fmt::format("    for rank {}: {:.1f} %\n", rank, percent(time, sums.steps));
  }
  if (sums.team > 0) {
    text += fmt::format("  other threads that compute are idle {:.1f} % of the time\n",
                        100 - percent(sums.team_busy, sums.team));
  }
  return text;
}

// The rank whose own work is longest, where all ranks have the same to do: of a short run nothing else names
// it. The step in the middle is not one that makes kernels, or in which something else ran.
std::string describe_slow_rank(const RunTrace& trace) {
  constexpr double kTelling = 1.5;
  constexpr std::size_t kFewSteps = 3;
  std::vector<std::pair<double, std::size_t>> own;  // milliseconds in the middle step, rank
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
    std::vector<double> steps;
    for (std::size_t i = 0; i < trace.ranks[rank].steps.size(); ++i) {
      std::int64_t time = 0;
      for (const NestedSpan& span : spans_of(trace, rank, i).spans) {
        const std::string reason = reason_of(span);
        if (span.thread == 0 && reason != "waiting" && reason != "exchange") time += span.own;
      }
      steps.push_back(1e-6 * static_cast<double>(time));
    }
    if (steps.size() < kFewSteps || trace.ranks[rank].stage != trace.ranks.front().stage) return "";
    const auto middle = steps.begin() + std::ssize(steps) / 2;
    std::ranges::nth_element(steps, middle);
    own.emplace_back(*middle, rank);
  }
  if (own.size() < 2) return "";
  const auto [fastest, slowest] = std::ranges::minmax(own);
  if (slowest.first < kTelling * fastest.first) return "";
  return fmt::format(
      "slow: rank {}, whose own work takes {:.2f} ms in the middle one of its steps, {:.1f} times that of "
      "the fastest rank\n",
      trace.ranks[slowest.second].rank, slowest.first, slowest.first / std::max(fastest.first, 1e-6));
}

std::string describe_slow_steps(const RunTrace& trace) {
  std::vector<std::string> steps;
  const auto slowest = slowest_first(trace.ranks);
  for (const auto& [step, seconds] : first_of(slowest, kSlowSteps)) {
    steps.push_back(fmt::format("{} ({:.2f} ms)", with_commas(step + 1), 1e3 * seconds));
  }
  return fmt::format("slowest steps: {}\n", fmt::join(steps, ", "));
}

}  // namespace

std::string summarise_trace(const RunTrace& trace) {
  const Sums sums = add_up(trace);
  std::string text =
      describe_trace(trace) + "\n" + describe_main_threads(sums) + describe_layers(trace, sums);
  if (sums.buckets > 0) {
    text += fmt::format("overlap: {:.1f} % of the time in which buckets are exchanged, the rank computes\n",
                        percent(sums.hidden, sums.buckets));
  }
  return text + describe_idle(sums) + describe_slow_rank(trace) + describe_slow_steps(trace);
}

}  // namespace lockstep
