// Tables of series of time: what is in them, and the windows that they allow.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "init.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/parts/validation_split.h"

namespace lockstep {
DataOptions options_of_series(const DataOptions& options, const CommandLine& line) {
  DataOptions data = options;
  WindowOptions& windows = data.table.windows;
  if (line.has("time")) windows.time = line.text("time");
  data.train = line.operands.front();
  const bool asks = windows.horizon > 0 || (windows.window > 0 && choose_format(data).name != "text") ||
                    !windows.series.empty() || !windows.future.empty();
  if (windows.time.empty() && asks)
    throw ConfigError(
        "--horizon, --window, --series and --future need --time: the column of the time of each record");
  if (std::ranges::count(data.table.label, windows.time) > 0)
    throw ConfigError("--time names the label, and a label is no time");
  return data;
}

std::optional<SeriesSummary> summarise_series_of(const TableInspection& table, const DataOptions& options) {
  if (options.table.windows.time.empty()) return std::nullopt;
  DataOptions data = options;
  data.format = "csv";
  data.train = table.path;
  data.table = table.options;
  data.table.windows.window = 1;  // a record may lack its label
  data.table.windows.horizon = 1;
  data.table.on_bad_record = OnBadRecord::kSkip;
  data.table.max_bad_share = 1;
  const DataOptions opened = data_of_files(data);
  ColumnTexts texts(dividing_columns({}, opened.table));
  const TableQuestions questions{.texts = texts};
  const std::unique_ptr<RecordSource> source = choose_format(opened).open(
      {.options = opened, .split = Split::kTrain, .peers = alone(), .questions = &questions});
  return summarise_series(*source, opened.table.windows, texts);
}

ForecastPlan plan_forecast(const TableInspection& table, const WindowOptions& options) {
  const SeriesSummary& summary = *table.series;
  const Index all = summary.median;
  const Index horizon = options.horizon;
  const Index least = options.window > 0 ? options.window : horizon;
  static constexpr double kRounding = 1e-6;
  const auto share_of = [horizon](double usual, Index of) {
    const double least_share = static_cast<double>(horizon) / static_cast<double>(std::max<Index>(1, of));
    return std::max(usual, std::ceil(1e3 * least_share - kRounding) / 1e3);
  };
  const auto without = [](Index of, double share) {
    return of - static_cast<Index>(std::ceil(share * static_cast<double>(of) - kRounding));
  };
  ForecastPlan plan{.window = options.window, .horizon = horizon, .season = {options.season, 0}};
  Index train = 0;  // positions before the horizon of the last window
  Index most = 0;   // positions of a window; unless it is given, there are as many windows to train on
  for (const auto& [test, validation] : {std::pair(0.15, 0.2), std::pair(1e-3, 0.0), std::pair(0.0, 0.0)}) {
    plan.test = test > 0 ? share_of(test, all) : 0;
    const Index rest = without(all, plan.test);
    plan.validation = share_of(validation, rest);
    train = without(rest, plan.validation) - horizon;
    most = options.window > 0 ? std::min(options.window, train) : train / 2;
    if (most >= least) break;
  }
  if (most < least)
    throw ConfigError("'{}' has {} in a series, too few for a window of {} and a horizon of {}: {} would fit",
                      table.path, plural(all, "position"), least, horizon,
                      options.window > 0 ? fmt::format("--window {}", std::max<Index>(0, all - 2 * horizon))
                                         : fmt::format("--horizon {}", all / 4));
  for (const Season& season : summary.seasons) {
    if (plan.season.positions == 0 && season.positions <= most) plan.season = season;
  }
  if (plan.window == 0) {
    const Index season = std::max<Index>(1, plan.season.positions);
    plan.window = std::max(std::min(most, std::max(3 * horizon, 2 * season)), season);
    plan.window -= plan.window % season;
  }
  plan.windows = summary.series * (train - plan.window + 1);
  return plan;
}

}  // namespace lockstep
