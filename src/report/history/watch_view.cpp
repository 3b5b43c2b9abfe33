#include "lockstep/report/history/watch_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using Lines = std::vector<std::string>;

constexpr int kEighths = 8;
constexpr std::array kBlocks{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::size_t size_of(int count) {
  return static_cast<std::size_t>(std::max(count, 0));
}

// ASCII, as all names are that excerpt() has gone over, so that bytes are characters.
std::string cut(const std::string& text, int columns) {
  return text.substr(0, size_of(columns));
}

// The means of as many equal stretches of a series as there are columns; with fewer values, each is drawn
// over several columns.
std::vector<double> stretches(const std::vector<double>& values, int width) {
  std::vector<double> means;
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < size_of(width) && count > 0; ++i) {
    const std::size_t begin = i * count / size_of(width);
    const std::size_t end = std::max(begin + 1, (i + 1) * count / size_of(width));
    double sum = 0;
    double finite = 0;
    for (std::size_t k = begin; k < end; ++k) {
      if (!std::isfinite(values[k])) continue;
      sum += values[k];
      finite += 1;
    }
    means.push_back(finite > 0 ? sum / finite : std::numeric_limits<double>::quiet_NaN());
  }
  return means;
}

struct Span {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
};

Span span_of(const std::vector<double>& values) {
  Span span;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    span.least = std::min(span.least, value);
    span.most = std::max(span.most, value);
  }
  return span;
}

std::string blocks(double share, int width) {
  const int eighths = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width * kEighths));
  std::string text;
  for (int i = 0; i < width; ++i) {
    // Blocks that grow to the right: U+258F (one eighth) to U+2588 (all).
    static constexpr std::array kParts{" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
    text += at(kParts, std::clamp(eighths - i * kEighths, 0, kEighths));
  }
  return text;
}

// "0.52341 |" beside the first line of a curve, the least beside the last one.
Lines labelled_curve(const std::string& name, const std::vector<double>& values, ViewSize size) {
  constexpr int kLabel = 10;
  const int width = size.columns - kLabel - 2;
  const int height = size.rows - 1;
  if (width < 10 || height < 1 || values.empty()) return {};
  const Span span = span_of(stretches(values, width));
  if (span.least > span.most) return {};
  Lines lines{cut(name, size.columns)};
  const Lines curve = block_curve(values, width, height);
  for (int row = 0; row < height; ++row) {
    const std::string label = row == 0            ? short_number(span.most)
                              : row + 1 == height ? short_number(span.least)
                                                  : "";
    lines.push_back(fmt::format("{:>{}} │{}", label, kLabel, at(curve, row)));
  }
  return lines;
}

std::string progress_bar(const ViewedRun& run, int columns) {
  const auto planned = static_cast<double>(run.record.plan.steps);
  return planned > 0 ? blocks(run.steps() / planned, columns) : "";
}

Lines time_bars(const ViewedRun& run, int columns) {
  constexpr int kTaken = 24;
  const int width = std::min(columns - kTaken, 40);
  if (width < 4 || run.metrics.train.rows() == 0) return {};
  Lines lines;
  for (const char* name : {"data", "compute", "communication", "waiting", "idle"}) {
    const double share = time_share(run, name);
    if (name == std::string_view("idle") && !(share > 0)) continue;
    lines.push_back(fmt::format("{:>13} {} {:5.1f} %", name, blocks(share, width), 100 * share));
  }
  return lines;
}

// Bars of the ranks that wait least, for which the others wait: of their time, the share of data and compute.
Lines rank_bars(const ViewedRun& run, ViewSize size) {
  const std::vector<RankTime>& ranks = run.metrics.ranks.ranks;
  constexpr std::size_t kMaxRanks = 8;
  constexpr int kTaken = 48;
  const int width = std::min(size.columns - kTaken, 40);
  if (ranks.size() < 2 || width < 4) return {};
  Lines lines;
  const std::vector<std::size_t> slow = slow_ranks(run.metrics.ranks);
  for (const std::size_t rank : ranks_waiting_least(ranks, std::min(kMaxRanks, size_of(size.rows / 4)))) {
    const RankTime& time = ranks[rank];
    const double total = time.total();
    if (!(total > 0)) continue;
    const double own = time.own() / total;
    const double waiting = time.waiting / total;
    lines.push_back(fmt::format("rank {:>5} {} compute {:5.1f} %, waiting {:5.1f} %{}", rank,
                                blocks(own, width), 100 * own, 100 * waiting,
                                std::ranges::count(slow, rank) > 0 ? ", slow" : ""));
  }
  return lines;
}

std::string head_of(const ViewedRun& run) {
  std::string text = fmt::format("{}  {}  step {}", excerpt(run.name, 60), run.state(), progress_of(run));
  if (run.record.seconds > 0) {
    text += fmt::format("  {} samples/s  {}", count_text(run.samples() / run.record.seconds),
                        human_seconds(run.record.seconds));
  }
  const double left = seconds_left(run);
  return std::isfinite(left) ? fmt::format("{}  {} left", text, human_seconds(left)) : text;
}

std::string measure_of(const ViewedRun& run) {
  const ShownMeasure shown = shown_measure(run);
  if (std::isnan(shown.best_step)) return "no metrics yet";
  std::string text =
      fmt::format("{} {} at step {}", shown.name(), short_number(shown.value), count_text(shown.best_step));
  // The value that chose the weights is older than a temperature.
  if (run.record.kept.best)
    text += shown.value == shown.best ? " (best)" : fmt::format(" (best: {})", short_number(shown.best));
  if (!has_other_last(run, shown.split)) return text;
  return text + fmt::format("; last: {}", short_number(shown.last));
}

Lines one_run(const ViewedRun& run, ViewSize size) {
  Lines lines{cut(head_of(run), size.columns), progress_bar(run, size.columns),
              cut(measure_of(run), size.columns)};
  if (!run.record.reason.empty())
    lines.push_back(cut(run.state() + ": " + excerpt(run.record.reason, 300), size.columns));
  Lines bars = time_bars(run, size.columns);
  const Lines ranks = rank_bars(run, size);
  bars.insert(bars.end(), ranks.begin(), ranks.end());
  Lines warnings;
  constexpr std::size_t kWarnings = 3;
  for (std::size_t i = run.record.warnings.size() - std::min(kWarnings, run.record.warnings.size());
       i < run.record.warnings.size(); ++i) {
    warnings.push_back(cut("warning: " + excerpt(run.record.warnings[i], 300), size.columns));
  }
  const int left = size.rows - static_cast<int>(lines.size() + bars.size() + warnings.size());
  const MetricsTable::Column* loss = run.metrics.train.find("loss");
  const ShownMeasure shown = shown_measure(run);
  const bool two = shown.values != nullptr && shown.split != "train" && left >= 8;
  const ViewSize half{.columns = size.columns, .rows = two ? left / 2 : left};
  const auto add = [&lines](const Lines& more) { lines.insert(lines.end(), more.begin(), more.end()); };
  if (loss != nullptr && left >= 3) add(labelled_curve("train loss", loss->values, half));
  if (two) add(labelled_curve(shown.name(), shown.values->values, half));
  add(bars);
  add(warnings);
  return lines;
}

Lines several_runs(const std::vector<ViewedRun>& runs, ViewSize size) {
  constexpr int kCurve = 16;
  Lines lines{cut(fmt::format("{:<28} {:<10} {:<22} {:<26} {}", "run", "state", "steps", "measure", "loss"),
                  size.columns)};
  for (const ViewedRun& run : runs) {
    if (static_cast<int>(lines.size()) + 1 == size.rows && runs.size() > lines.size()) {
      lines.push_back(cut(fmt::format("... and {} more", runs.size() - lines.size() + 1), size.columns));
      break;
    }
    const ShownMeasure shown = shown_measure(run);
    const std::string name = excerpt(run.name, 200);
    const std::string text = fmt::format(
        "{:<28} {:<10} {:<22} {:<26}", name.size() > 28 ? "..." + name.substr(name.size() - 25) : name,
        run.state(), progress_of(run), shown.name() + " " + short_number(shown.value));
    const MetricsTable::Column* loss = run.metrics.train.find("loss");
    const int room = std::min(size.columns - static_cast<int>(text.size()) - 1, kCurve);
    lines.push_back(loss == nullptr || room < 4 ? cut(text, size.columns)
                                                : text + " " + block_curve(loss->values, room, 1).front());
  }
  return lines;
}

}  // namespace

std::vector<std::string> block_curve(const std::vector<double>& values, int width, int height) {
  const std::vector<double> means = stretches(values, width);
  const Span span = span_of(means);
  Lines lines(size_of(height));
  for (int row = 0; row < height; ++row) {
    for (const double mean : means) {
      // The least value is drawn, too: as the thinnest block.
      const double share = span.most > span.least ? (mean - span.least) / (span.most - span.least) : 1;
      const int filled =
          std::isfinite(mean) ? 1 + static_cast<int>(std::lround(share * (height * kEighths - 1))) : 0;
      at(lines, row) += at(kBlocks, std::clamp(filled - (height - 1 - row) * kEighths, 0, kEighths));
    }
  }
  return lines;
}

std::string to_json(const std::vector<ViewedRun>& runs) {
  Json all = Json::array();
  for (const ViewedRun& run : runs) {
    const RunRecord& record = run.record;
    const ShownMeasure shown = shown_measure(run);
    Json json{{"run", run.name},
              {"state", run.state()},
              {"reason", record.reason},
              {"exit_code", record.exit_code ? Json(*record.exit_code) : Json(nullptr)},
              {"steps", record.progress.steps},
              {"planned_steps", record.plan.steps},
              {"samples_seen", record.progress.samples},
              {"epochs", record.progress.epochs},
              {"seconds", record.seconds},
              {"seconds_left", json_number(seconds_left(run))},
              {"split", shown.split},
              {"measure", shown.measure},
              {"value", json_number(shown.value)},
              {"last", json_number(shown.last)},
              {"best", json_number(shown.best)},
              {"best_step", json_number(shown.best_step)},
              {"kept", {{"weights", record.kept.best ? "best" : "last"}, {"step", record.kept.step}}},
              {"heartbeat", record.heartbeat.time},
              {"warnings", record.warnings}};
    all.push_back(json);
  }
  return indented(all);
}

std::vector<std::string> watch_view(const std::vector<ViewedRun>& runs, ViewSize size) {
  Lines lines = runs.size() == 1 ? one_run(runs.front(), size) : several_runs(runs, size);
  lines.resize(std::min(lines.size(), size_of(size.rows)));
  return lines;
}

}  // namespace lockstep
