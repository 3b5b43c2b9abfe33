#include "lockstep/report/history/viewed_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using Lines = std::vector<std::string>;

constexpr int kEighths = 8;
// A character of Braille has dots in two columns and four rows, and a bit for each.
constexpr int kDotRows = 4;
constexpr int kDotBits[2][kDotRows] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};

std::size_t size_of(int count) {
  return static_cast<std::size_t>(std::max(count, 0));
}

// At most so many characters, with control characters as excerpt() has them.
std::string cut(std::string_view text, int columns) {
  const std::string shown = excerpt(text, std::string::npos);
  std::size_t end = 0;
  for (int column = 0; column < columns && end < shown.size(); ++column)
    end += std::max<std::size_t>(1, utf8_length(std::string_view(shown).substr(end)));
  return shown.substr(0, end);
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
  constexpr int kLabel = 11;
  const int width = size.columns - kLabel - 2;
  const int height = size.rows - 1;
  if (width < 10 || height < 1 || values.empty()) return {};
  const Span span = span_of(stretches(values, width));
  if (span.least > span.most) return {};
  Lines lines{cut(name, size.columns)};
  const Lines curve = braille_curve(values, width, height);
  for (int row = 0; row < height; ++row) {
    const std::string label = row == 0            ? short_number(span.most)
                              : row + 1 == height ? short_number(span.least)
                                                  : "";
    lines.push_back(fmt::format("{:>{}} │{}", label, kLabel, at(curve, row)));
  }
  return lines;
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
  constexpr int kTaken = 50;
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

std::string pace_of(const ViewedRun& run) {
  std::string text = fmt::format("step {}", progress_of(run));
  if (run.record.seconds > 0) {
    text += fmt::format("  {} samples/s  {}", rate_text(run.samples() / run.record.seconds),
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
  const auto planned = static_cast<double>(run.record.plan.steps);
  const std::string reason = run.record.reason.empty() ? "" : ": " + run.record.reason;
  Lines lines{cut(fmt::format("{}  {}{}", end_of(run.name, 48), run.state(), reason), size.columns),
              cut(pace_of(run), size.columns), blocks(planned > 0 ? run.steps() / planned : 0, size.columns),
              cut(measure_of(run), size.columns)};
  Lines bars = time_bars(run, size.columns);
  const Lines ranks = rank_bars(run, size);
  bars.insert(bars.end(), ranks.begin(), ranks.end());
  Lines warnings;
  constexpr std::size_t kWarnings = 3;
  const std::span all(run.record.warnings);
  for (const std::string& warning : all.last(std::min(kWarnings, all.size())))
    warnings.push_back(cut("warning: " + warning, size.columns));
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

// 79 characters with a curve of 8: the name, the state, how far and how fast the run is, and how good.
Lines several_runs(const std::vector<ViewedRun>& runs, ViewSize size) {
  constexpr int kMaxCurve = 24;
  const auto row = [](const auto&... cells) {
    return fmt::format("{:<18} {:<8} {:>5} {:>9} {:>8} {:<19}", cells...);
  };
  const std::string head = row("run", "state", "done", "samples/s", "left", "measure") + " loss";
  const std::size_t directory = common_directory(runs).size();
  Lines lines{cut(head, size.columns)};
  for (const ViewedRun& run : runs) {
    if (static_cast<int>(lines.size()) + 1 == size.rows && runs.size() > lines.size()) {
      lines.push_back(cut(fmt::format("... and {} more", runs.size() - lines.size() + 1), size.columns));
      break;
    }
    const ShownMeasure shown = shown_measure(run);
    const auto planned = static_cast<double>(run.record.plan.steps);
    const double left = seconds_left(run);
    const std::string text =
        row(end_of(run.name.substr(directory), 18), cut(run.state(), 8),
            planned > 0 ? fmt::format("{:.0f} %", 100 * run.steps() / planned) : "-",
            cut(run.record.seconds > 0 ? rate_text(run.samples() / run.record.seconds) : "-", 9),
            cut(std::isfinite(left) ? human_seconds(left) : "-", 8),
            cut(fmt::format("{} {}", short_number(shown.value), shown.measure), 19));
    const MetricsTable::Column* loss = run.metrics.train.find("loss");
    const int room = std::min(size.columns - 73, kMaxCurve);
    lines.push_back(loss == nullptr || room < 4 ? cut(text, size.columns)
                                                : text + " " + braille_curve(loss->values, room, 1).front());
  }
  return lines;
}

}  // namespace

std::vector<std::string> braille_curve(const std::vector<double>& values, int width, int height) {
  const std::vector<double> means = stretches(values, 2 * width);
  const Span span = span_of(means);
  std::vector<std::vector<int>> dots(size_of(height), std::vector<int>(size_of(width)));
  std::optional<int> before;  // how high the curve was in the column before
  for (int column = 0; column < static_cast<int>(means.size()); ++column) {
    const double mean = at(means, column);
    if (!std::isfinite(mean)) before.reset();
    if (!std::isfinite(mean)) continue;
    const double share = span.most > span.least ? (mean - span.least) / (span.most - span.least) : 0;
    const int level = static_cast<int>(std::lround(share * (height * kDotRows - 1)));
    const int from = before.value_or(level);
    for (int dot = std::min(level, from + 1); dot <= std::max(level, from - 1); ++dot) {
      at(at(dots, height - 1 - dot / kDotRows), column / 2) |=
          kDotBits[column % 2][kDotRows - 1 - dot % kDotRows];
    }
    before = level;
  }
  Lines lines;
  for (const std::vector<int>& row : dots) {
    std::string& line = lines.emplace_back();
    // U+2800 and the bits, in UTF-8.
    for (const int bits : row)
      line += {'\xe2', static_cast<char>(0xa0 | bits >> 6), static_cast<char>(0x80 | (bits & 0x3f))};
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
