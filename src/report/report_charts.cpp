// A curve chart has one measure, such as the loss, of all runs and of the training, validation and test sets:
// each is a series with its own points, chosen by kept_points(). The table of a chart joins the series by
// their steps.
#include "report_charts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "chart_json.h"
#include "html.h"
#include "kept_points.h"
#include "lockstep/base/text.h"
#include "report_predictions.h"
#include "run_numbers.h"

namespace lockstep {
namespace {

struct Series {
  std::string label;
  std::size_t run = 0;
  std::string split;
  MetricsTable table;  // without columns
  std::vector<double> values;
};

// Norms are measured now and then: lines without them are no gaps.
bool is_measured_rarely(const std::string& name) {
  return name == "gradient_norm" || name == "weight_norm";
}

Series make_series(const std::string& label, std::size_t run, const std::string& split,
                   const MetricsTable& table, const MetricsTable::Column& column) {
  Series series{.label = label, .run = run, .split = split, .table = {}, .values = {}};
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (is_measured_rarely(column.name) && std::isnan(column.values[row])) continue;
    series.table.steps.push_back(table.steps[row]);
    series.table.samples.push_back(table.samples[row]);
    series.table.seconds.push_back(table.seconds[row]);
    series.values.push_back(column.values[row]);
  }
  return series;
}

// Numbers of metrics.jsonl that are no curves.
bool is_curve(const std::string& name) {
  return is_measure(name) && !name.starts_with("time.");
}

std::string series_json(const Series& series, std::size_t max_points) {
  constexpr int kCountDigits = 15;
  const std::vector<std::size_t> points = kept_points(series.values, max_points);
  const MetricsTable& table = series.table;
  return fmt::format(R"({{"label":{},"run":{},"split":{},"step":{},"samples":{},"seconds":{},"y":{}}})",
                     json_text(series.label), series.run, json_text(series.split),
                     json_numbers(table.steps, points, kCountDigits),
                     json_numbers(table.samples, points, kCountDigits),
                     json_numbers(table.seconds, points, 5), json_numbers(series.values, points, 6));
}

std::vector<Series> series_of(const std::vector<RunDescription>& runs, const std::string& measure) {
  std::vector<Series> all;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const std::string prefix = runs.size() == 1 ? "" : runs[run].short_name() + ", ";
    const auto add = [&](const std::string& split, const MetricsTable& table) {
      const MetricsTable::Column* column = table.find(measure);
      if (column == nullptr) return;
      all.push_back(make_series(prefix + split, run, split, table, *column));
      if (all.back().values.empty()) all.pop_back();
    };
    add("train", runs[run].metrics.train);
    for (const EvaluationHistory& each : runs[run].metrics.evaluations) add(each.split, each.table);
  }
  return all;
}

std::string curve_table(const std::string& title, const std::vector<Series>& all, std::size_t max_rows) {
  std::map<double, std::vector<std::string>> rows;
  std::size_t shown = 0;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::vector<std::size_t> points = kept_points(all[i].values, max_rows);
    longest = std::max(longest, all[i].values.size());
    shown = std::max(shown, points.size());
    for (const std::size_t point : points) {
      std::vector<std::string>& row = rows[all[i].table.steps[point]];
      row.resize(all.size());
      row[i] = short_number(all[i].values[point]);
    }
  }
  HtmlTable table{.caption = shown == longest
                                 ? fmt::format("{} by step", title)
                                 : fmt::format("{} by step: {} of {} points, with the least and the greatest",
                                               title, with_commas(static_cast<Index>(shown)),
                                               with_commas(static_cast<Index>(longest))),
                  .head = {"step"}};
  for (const Series& series : all) table.head.push_back(series.label);
  for (const auto& [step, cells] : rows) {
    table.rows.push_back({count_text(step)});
    table.rows.back().insert(table.rows.back().end(), cells.begin(), cells.end());
  }
  return to_html(table);
}

// Each run's kept step, to be marked.
std::string kept_json(const std::vector<RunDescription>& runs) {
  std::vector<std::string> all;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    if (!runs[run].kept) continue;
    const double step = runs[run].kept->step;
    const MetricsTable& train = runs[run].metrics.train;
    const double samples = runs[run].steps > 0 ? runs[run].samples * step / runs[run].steps : 0;
    const double seconds = train.rows() > 0 ? runs[run].metrics.seconds_at(samples) : 0;
    all.push_back(fmt::format(R"({{"run":{},"step":{:.15g},"samples":{:.15g},"seconds":{:.5g}}})", run, step,
                              std::round(samples), seconds));
  }
  return fmt::format("[{}]", fmt::join(all, ","));
}

std::string describe_ends(const std::string& title, const std::vector<Series>& all) {
  std::string text = title + ":";
  std::size_t told = 0;
  for (const Series& series : all) {
    if (told++ == 6) return text + " and so on.";
    text += fmt::format(" {} from {} to {};", series.label, short_number(series.values.front()),
                        short_number(series.values.back()));
  }
  text.back() = '.';
  return text;
}

ChartPart curve_chart(const std::vector<RunDescription>& runs, const std::string& measure,
                      const ChartLimits& limits) {
  const std::vector<Series> all = series_of(runs, measure);
  const bool speed = measure == "lr" || measure == "samples_per_second" || is_measured_rarely(measure);
  const std::string title = title_of(measure);
  std::vector<std::string> json;
  for (const Series& series : all) json.push_back(series_json(series, limits.points));
  return {.section = speed ? "speed" : "curves",
          .title = title,
          .summary = describe_ends(title, all),
          .json = fmt::format(R"({{"kind":"curve","title":{},"series":[{}],"kept":{}}})", json_text(title),
                              fmt::join(json, ","), speed ? "[]" : kept_json(runs)),
          .table = curve_table(title, all, limits.rows)};
}

// Measures of any run, those of the training first.
std::vector<std::string> measures_of(const std::vector<RunDescription>& runs) {
  std::vector<std::string> names;
  const auto add = [&](const MetricsTable& table) {
    for (const MetricsTable::Column& column : table.columns) {
      if (is_curve(column.name) && std::ranges::find(names, column.name) == names.end())
        names.push_back(column.name);
    }
  };
  for (const RunDescription& run : runs) {
    add(run.metrics.train);
    for (const EvaluationHistory& each : run.metrics.evaluations) add(each.table);
  }
  return names;
}

void add_time(const std::vector<RunDescription>& runs, std::vector<ChartPart>& parts) {
  Bars bars{.section = "time",
            .title = "Where the time of the steps went, averaged over the ranks",
            .of_names = "run",
            .series = {"compute", "communication", "waiting for other ranks", "data"},
            .percent = true,
            .across = true};
  if (std::ranges::any_of(runs, [](const RunDescription& run) { return run.time && run.time->idle > 0; })) {
    bars.series.emplace_back("idle for other stages");
  }
  bars.values.resize(bars.series.size());
  for (const RunDescription& run : runs) {
    if (!run.time) continue;
    bars.names.push_back(run.short_name());
    const TimeOfRun& time = *run.time;
    const std::vector<double> shares{time.compute, time.communication, time.waiting, time.data, time.idle};
    for (std::size_t i = 0; i < bars.values.size(); ++i) bars.values[i].push_back(100 * shares[i]);
  }
  if (!bars.names.empty()) parts.push_back(bar_chart(bars));
}

// Seconds of each rank; of many, those that wait least, as the others wait for them.
void add_ranks(const RunDescription& run, const std::string& title, std::vector<ChartPart>& parts) {
  constexpr std::size_t kMaxBars = 64;
  const std::vector<RankTime>& ranks = run.metrics.ranks.ranks;
  if (ranks.size() < 2) return;
  const std::vector<std::size_t> shown = ranks_waiting_least(ranks, kMaxBars);
  Bars bars{.section = "time",
            .title = shown.size() == ranks.size()
                         ? title
                         : fmt::format("{}: the {} of {} ranks that waited least", title, shown.size(),
                                       with_commas(std::ssize(ranks))),
            .of_names = "rank",
            .series = {"compute", "exchange", "waiting for other ranks", "data"},
            .values = std::vector<std::vector<double>>(4),
            .seconds = true};
  for (const std::size_t rank : shown) {
    const RankTime& time = ranks[rank];
    bars.names.push_back(fmt::format("{} ({})", rank, excerpt(time.host, 40)));
    const std::vector<double> values{time.compute, time.exchange, time.waiting, time.data};
    for (std::size_t i = 0; i < values.size(); ++i) bars.values[i].push_back(values[i]);
  }
  parts.push_back(bar_chart(bars));
}

// How often each staleness was seen: all above the last bar are in it.
void add_staleness(const RunDescription& run, const std::string& title, std::vector<ChartPart>& parts) {
  constexpr std::size_t kMaxBars = 33;
  constexpr std::size_t kMaxWorkers = 16;
  const std::vector<WorkerHistory>& workers = run.metrics.workers;
  std::size_t bins = 0;
  for (const WorkerHistory& worker : workers) bins = std::max(bins, worker.staleness.size());
  if (bins == 0) return;
  Bars bars{.section = "workers", .title = title, .of_names = "staleness"};
  const std::size_t shown = std::min(bins, kMaxBars);
  for (std::size_t bin = 0; bin < shown; ++bin) {
    bars.names.push_back(fmt::format("{}{}", bin, bin + 1 == shown && shown < bins ? " and more" : ""));
  }
  for (std::size_t worker = 0; worker < workers.size(); ++worker) {
    const std::size_t slot = std::min(worker, kMaxWorkers - 1);
    if (bars.values.size() <= slot) {
      const bool rest = slot + 1 == kMaxWorkers && workers.size() > kMaxWorkers;
      bars.series.push_back(fmt::format("worker {}{}", slot, rest ? " and above" : ""));
      bars.values.emplace_back(shown, 0.0);
    }
    for (std::size_t bin = 0; bin < workers[worker].staleness.size(); ++bin) {
      bars.values[slot][std::min(bin, shown - 1)] += static_cast<double>(workers[worker].staleness[bin]);
    }
  }
  parts.push_back(bar_chart(bars));
}

}  // namespace

std::string title_of(const std::string& measure) {
  static const std::map<std::string, std::string> kTitles{
      {"loss", "Loss"},
      {"accuracy", "Accuracy"},
      {"lr", "Learning rate"},
      {"samples_per_second", "Throughput, in samples per second"},
      {"gradient_norm", "Norm of the gradient"},
      {"weight_norm", "Norm of the weights"},
      {"auc", "AUC"},
      {"log_loss", "Log loss"},
      {"precision", "Precision"},
      {"recall", "Recall"},
      {"r2", "R²"},
      {"mean_absolute_error", "Mean absolute error"},
      {"mean_squared_error", "Mean squared error"},
      {"root_mean_squared_error", "Root mean squared error"},
      {"mean_absolute_percentage_error", "Mean absolute percentage error"},
      {"average_precision", "Average precision"},
      {"brier", "Brier score"},
      {"ece", "Expected calibration error"},
      {"f1", "F1"},
      {"mcc", "Matthews correlation"},
      {"balanced_accuracy", "Balanced accuracy"},
      {"spearman", "Rank correlation"},
      {"top_k_accuracy", "Top-K accuracy"}};
  const auto found = kTitles.find(measure);
  return found == kTitles.end() ? measure : found->second;
}

std::vector<ChartPart> make_charts(const std::vector<RunDescription>& runs, const ChartLimits& limits) {
  std::vector<ChartPart> parts;
  for (const std::string& measure : measures_of(runs)) parts.push_back(curve_chart(runs, measure, limits));
  add_time(runs, parts);
  add_prediction_charts(runs, limits, parts);
  add_importance_charts(runs, parts);
  for (const RunDescription& run : runs) {
    const char* const title = "Where the time of each rank went, in seconds";
    add_ranks(run, runs.size() == 1 ? title : fmt::format("{}: {}", title, run.short_name()), parts);
  }
  for (const RunDescription& run : runs) {
    add_staleness(run,
                  runs.size() == 1 ? "Gradients by staleness"
                                   : fmt::format("Gradients by staleness: {}", run.short_name()),
                  parts);
  }
  return parts;
}

}  // namespace lockstep
