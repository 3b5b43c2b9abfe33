#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lockstep/base/text.h"
#include "lockstep/report/trace/trace.h"
#include "trace_parts.h"

namespace lockstep {
namespace {

constexpr std::size_t kTopLayers = 10;
constexpr std::size_t kSlowSteps = 5;

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

void add_layers(const StepSpans& step, Sums& sums) {
  for (const NestedSpan& span : step.spans) {
    const bool forward = span.kind == TraceKind::kForward;
    if ((!forward && span.kind != TraceKind::kBackward) || span.waits_for >= 0) continue;
    LayerTime& layer = sums.layers[span.detail];
    (forward ? layer.forward : layer.backward) += span.own;
    sums.layer_time += span.own;
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

void add_threads(const StepSpans& step, Sums& sums) {
  std::int64_t length = 0;
  std::map<int, std::int64_t> busy;
  for (const NestedSpan& span : step.spans) {
    if (span.thread == 0) {
      if (span.kind == TraceKind::kStep) length += span.end - span.begin;
      sums.main[reason_of(span)] += span.own;
      if (span.waits_for >= 0) sums.waits_for[span.waits_for] += span.own;
    } else if (computes(span.kind)) {
      busy[span.thread] += span.own;
    }
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
      add_layers(step, sums);
      add_overlap(step, sums);
      add_threads(step, sums);
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
    const auto found = sums.main.find(name);
    if (found == sums.main.end()) continue;
    text += fmt::format("  {:<10} {:5.1f} %  {:>14}\n", name, percent(found->second, sums.steps),
                        milliseconds(found->second));
  }
  return text;
}

std::string describe_layers(const RunTrace& trace, const Sums& sums) {
  std::vector<std::pair<Index, LayerTime>> layers(sums.layers.begin(), sums.layers.end());
  std::ranges::stable_sort(layers,
                           [](const auto& a, const auto& b) { return a.second.both() > b.second.both(); });
  std::string text = "top layers, of the time that all threads spend in layers:\n";
  for (std::size_t i = 0; i < std::min(layers.size(), kTopLayers); ++i) {
    const auto& [op, time] = layers[i];
    const std::string name =
        op >= 0 && op < std::ssize(trace.ops) ? at(trace.ops, op) : fmt::format("operation {}", op);
    text += fmt::format("  {:5.1f} %  {} (forward {}, backward {})\n", percent(time.both(), sums.layer_time),
                        name, milliseconds(time.forward), milliseconds(time.backward));
  }
  return text;
}

std::string describe_idle(const Sums& sums) {
  std::string text = "idle by reason, of the time of the main threads:\n";
  const auto time = [&](const char* name) {
    const auto found = sums.main.find(name);
    return found == sums.main.end() ? 0 : found->second;
  };
  text += fmt::format("  data       {:5.1f} %\n", percent(time("data"), sums.steps));
  text += fmt::format("  exchange   {:5.1f} %  that nothing hides\n", percent(time("exchange"), sums.steps));
  text += fmt::format("  waiting    {:5.1f} %\n", percent(time("waiting"), sums.steps));
  std::vector<std::pair<std::int64_t, int>> waited_for;
  for (const auto& [rank, waited] : sums.waits_for) waited_for.emplace_back(-waited, rank);
  std::ranges::sort(waited_for);
  for (std::size_t i = 0; i < std::min<std::size_t>(waited_for.size(), 5); ++i) {
    text += fmt::format("    for rank {}: {:.1f} %\n", waited_for[i].second,
                        percent(-waited_for[i].first, sums.steps));
  }
  if (sums.team > 0) {
    text += fmt::format("  other threads that compute are idle {:.1f} % of the time\n",
                        100 - percent(sums.team_busy, sums.team));
  }
  return text;
}

std::string describe_slow_steps(const RunTrace& trace) {
  std::vector<SlowStep> times;
  for (const RankTrace& rank : trace.ranks) {
    for (const TracedStep& step : rank.steps) times.push_back({step.step, step.seconds});
  }
  const std::vector<SlowStep> order = slowest_first(times);
  std::string text = "slowest steps:";
  for (std::size_t i = 0; i < std::min(order.size(), kSlowSteps); ++i) {
    text += fmt::format("{} {} ({:.2f} ms)", i == 0 ? "" : ",", with_commas(order[i].step + 1),
                        1e3 * order[i].seconds);
  }
  return text + "\n";
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
  return text + describe_idle(sums) + describe_slow_steps(trace) + draw_stages(trace);
}

}  // namespace lockstep
