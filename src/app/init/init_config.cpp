#include "init.h"

#include <fmt/args.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/embedded_text.h"
#include "lockstep/base/text.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/train/evaluation/metric.h"

namespace lockstep {
namespace {

constexpr double kShareOfMany = 0.1;
constexpr double kShareOfFew = 0.2;
constexpr Index kMany = 1000;
constexpr Index kManyOfPresets = 300;  // what they learn from few records is worth more than a sure choice
constexpr Index kTooFewToHoldBack = 50;

// Sizes of a run, chosen by the number of records.
struct Sizes {
  double held = 0;  // share of the records
  Index batch = 1;
  Index replicas = 8;
  Index epochs = 1;
  Index patience = 1;
};

// Presets for which init has settings of their own.
bool is_tabular(std::string_view preset) {
  return preset == "tabular" || preset == "tabular_large";
}

Sizes choose_sizes(const InitData& data, const Task& task, std::string_view preset) {
  constexpr Index kSteps = 5000;
  constexpr Index kStepsOfTabular = 3000;
  constexpr Index kStepsOfLarge = 6000;
  constexpr Index kStepsOfImages = 4000;
  constexpr Index kMinEpochs = 5;
  constexpr Index kMaxEpochs = 100;
  constexpr Index kMaxEpochsOfTabular = 150;
  Sizes sizes;
  const bool tabular = is_tabular(preset);
  const Index many = tabular ? kManyOfPresets : kMany;
  if (!data.validation && data.records >= kTooFewToHoldBack)
    sizes.held = data.records < many ? kShareOfFew : kShareOfMany;
  const Index rows = data.forecast
                         ? data.forecast->windows
                         : data.records - static_cast<Index>(sizes.held * static_cast<double>(data.records));
  sizes.batch = rows < 2000 ? 32 : rows < 20'000 ? 64 : rows < 200'000 ? 256 : 512;
  if (task.images) sizes.batch = rows < 10'000 ? 32 : 128;
  while (sizes.batch > 1 && 2 * sizes.batch > rows) sizes.batch /= 2;
  while (sizes.replicas > sizes.batch || (sizes.replicas > 1 && sizes.replicas * 4 > rows))
    sizes.replicas /= 2;
  const Index steps_of_epoch = (rows + sizes.batch - 1) / sizes.batch;
  const Index steps = task.images                 ? kStepsOfImages
                      : preset == "tabular"       ? kStepsOfTabular
                      : preset == "tabular_large" ? kStepsOfLarge
                                                  : kSteps;
  sizes.epochs = std::clamp((steps + steps_of_epoch - 1) / steps_of_epoch, kMinEpochs,
                            tabular ? kMaxEpochsOfTabular : kMaxEpochs);
  sizes.patience = std::max(kMinEpochs, tabular ? (sizes.epochs + 1) / 2 : (sizes.epochs + 2) / 3);
  return sizes;
}

// Convolutions and poolings until an image is small enough for a dense layer.
std::string convolutions(const ImageShape& image, Index outputs) {
  constexpr Index kSmallSide = 8;
  constexpr Index kMaxChannels = 128;
  constexpr Index kMaxDense = 8192;
  std::string layers;
  Index channels = 16;
  Index side = std::min(image.height, image.width);
  Index pixels = image.pixels();
  do {
    channels = std::min(2 * channels, kMaxChannels);
    layers += fmt::format("conv2d({}, 3, padding=same) relu maxpool(2) ", channels);
    side /= 2;
    pixels /= 4;
  } while (side > kSmallSide);
  const bool small = pixels * channels <= kMaxDense;
  return layers + fmt::format("{} dense(128) relu dropout(0.4) dense({})",
                              small ? "flatten" : "global_avgpool", outputs);
}

std::string perceptron(const InitData& data, Index outputs) {
  const Index rows = data.records;
  const std::string hidden = rows < 1000     ? "dense(16) relu "
                             : rows < 10'000 ? "dense(32) relu dense(16) relu "
                             : rows < 30'000 ? "dense(64) relu dense(32) relu "
                                             : "dense(128) relu dense(64) relu ";
  return fmt::format("{}{}dense({})", data.features.dims.size() > 1 ? "flatten " : "", hidden, outputs);
}

// Numbers far from 1 are learned slowly, and a few very large ones decide all. Of tables they can be scaled.
Scale scale_of(const NumberStats& label) {
  const double deviation = label.deviation();
  const bool near_one = deviation > 0.3 && deviation < 3 && std::abs(label.mean) < 3;
  if (near_one) return Scale::kNone;
  return label.min >= 0 && deviation > label.mean ? Scale::kLog : Scale::kStandard;
}

// Dates of several years, so that what happens on the same day of each year can be learned.
bool spans_years(const NumberStats& days) {
  constexpr double kDaysOfTwoYears = 730;
  return days.max - days.min > kDaysOfTwoYears;
}

// Many bins of many columns overfit, and take long.
Index choose_bins(const TableInspection& table) {
  constexpr Index kBinsOfAll = 256;
  constexpr Index kFewest = 8;
  constexpr Index kMost = 48;
  const Index numbers = std::ranges::count_if(
      table.columns, [](const TableColumn& column) { return column.is_feature() && column.is_number(); });
  return std::clamp(kBinsOfAll / std::max<Index>(numbers, 1), kFewest, kMost);
}

// Whether some value is so many deviations from the mean.
bool reaches(const NumberStats& numbers, double deviations) {
  const double far = deviations * numbers.deviation();
  return numbers.max - numbers.mean > far || numbers.mean - numbers.min > far;
}

// A class or number of the record; a long sequence is read by convolutions.
std::string_view preset_of_sequences(const InitData& data) {
  constexpr Index kLong = 500;
  const std::optional<SequenceShape> sequence = as_sequence(data.features);
  if (!sequence || data.label.positions > 0) return "";
  return sequence->positions <= kLong ? "gru_classifier" : "tcn";
}

class Chooser {
 public:
  Chooser(const InitData& data, const Task& task, std::string_view preset)
      : data_(data),
        task_(task),
        preset_(preset.empty() ? preset_of_sequences(data) : preset),
        sizes_(data.text ? Sizes{} : choose_sizes(data, task, preset)) {}

  std::vector<CommentedSetting> choose(const std::string& name) {
    say("dir", toml_string("runs/" + name));
    if (data_.text) {
      add_text(*data_.text);
    } else {
      add_records();
    }
    if (task_.form) suit(*task_.form);
    if (learns_logarithm()) add_block("logarithm");
    return std::move(settings_);
  }

 private:
  void add_records() {
    say("epochs", sizes_.epochs);
    say("batch", sizes_.batch);
    say("replicas", sizes_.replicas);
    say("task", data_.forecast ? plural(data_.forecast->horizon, "position") + " ahead" : task_.text);
    add_block("always");
    if (data_.forecast) {
      add_forecast(*data_.forecast);
      return;
    }
    if (data_.table) {
      add_table();
    } else {
      add_arrays();
    }
    add_sets();
    add_model();
    add_training();
  }

  bool learns_logarithm() const { return task_.form && task_.form->link == Link::kLog; }

  // Measures that the loss does not know make room for those that it does.
  void suit(const OutputForm& form) {
    for (CommentedSetting& setting : settings_) {
      if (setting.key == "data.window_scale" && learns_logarithm())
        setting = {setting.key, "\"none\"", "this loss needs the label as it is"};
      if (setting.key != "eval.metrics") continue;
      std::vector<std::string> fitting;
      std::vector<std::string> usual;
      for (const MetricEntry& entry : metric_catalog()) {
        if (!is_defined(entry, form)) continue;
        const bool chosen = setting.value.find(toml_string(entry.name)) != std::string::npos;
        if (chosen) fitting.push_back(toml_string(entry.name));
        if (!entry.by_name) usual.push_back(toml_string(entry.name));
      }
      setting.value = fmt::format("[{}]", fmt::join(fitting.empty() ? usual : fitting, ", "));
    }
  }

  void add(const std::string& key, const std::string& value, const std::string& comment = "") {
    settings_.push_back({key, value, comment});
  }

  // A value that stands for a name in braces.
  void say(const char* name, const auto& value) { words_.push_back(fmt::arg(name, value)); }
  std::string filled_in(const std::string& text) const { return fmt::vformat(text, words_); }

  const TextEntry& block(std::string_view name) const {
    return *std::ranges::find(texts_, name, &TextEntry::name);
  }

  void add_block(std::string_view name) {
    constexpr std::string_view kBeforeComment = "  # ";
    for (const auto& [key, text] : block(name).fields) {
      const std::size_t end = text.find(kBeforeComment);
      const bool has_comment = end != std::string::npos;
      add(key, filled_in(text.substr(0, end)),
          has_comment ? filled_in(text.substr(end + kBeforeComment.size())) : "");
    }
  }

  void add_table() {
    TableInspection table = *data_.table;
    std::string unit;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      TableColumn& column = table.columns[i];
      if (is_tabular(preset_) && column.date && spans_years(table.scan.columns[i].numbers))
        add_day_of_year(*column.date);
      if (!column.label) continue;
      column.kind = task_.named ? ColumnKind::kCategorical : ColumnKind::kNumeric;
      const bool may_scale = task_.kind == TaskKind::kNumbers && !learns_logarithm();
      if (may_scale && column.scale == Scale::kNone) {
        // The presets never learn a label as it is: the noise of their dropout grows with its mean.
        column.scale = scale_of(table.scan.columns[i].numbers);
        if (data_.forecast || (is_tabular(preset_) && column.scale == Scale::kNone))
          column.scale = Scale::kStandard;
        if (column.scale == Scale::kLog)
          unit = "label: learned as its logarithm, in deviations; predictions are in its own units";
        if (column.scale == Scale::kStandard)
          unit = "label: learned in deviations from its mean; predictions are in its own units";
      }
    }
    if (task_.named) unit = "texts or other values become classes 0, 1, ... in their order";
    for (const DataSetting& setting : data_settings(table)) {
      const std::string key = "data." + setting.name;
      add(key, setting.value, key == "data.columns" ? unit : filled_in(block("comments").get(key)));
    }
    if (!is_tabular(preset_)) {
      if (!data_.forecast && has_far_features()) add_block("far numbers");
      return;
    }
    const bool one_label = data_.label.columns == 1;
    add("data.scale", fmt::format("\"robust bins({}{})\"", choose_bins(table), one_label ? ", by=label" : ""),
        fmt::format("each number, clipped smoothly, and a piecewise linear encoding between {}",
                    one_label ? "values where the label changes" : "its quantiles"));
  }

  // Before the place in the year, unless that is not wanted.
  static void add_day_of_year(DateReading& date) {
    const auto year = std::ranges::find(date.parts, DatePart::kYear);
    const bool has_it = std::ranges::count(date.parts, DatePart::kDayOfYear) > 0;
    if (year != date.parts.end() && !has_it) date.parts.insert(year, DatePart::kDayOfYear);
  }

  void add_arrays() {
    const DataOptions& options = data_.options;
    if (!options.format.empty()) add("data.format", toml_string(options.format));
    add("data.train", toml_string(options.train),
        fmt::format("{} of {}", plural(data_.records, "record"), to_string(data_.features)));
    if (!options.train_labels.empty())
      add("data.train_labels", toml_string(options.train_labels), "to be learned: " + task_.text);
    if (data_.features.sequence && choose_format(options).reads("data.record"))
      add_block("sequences of an array");
    if (!options.train_lengths.empty())
      add("data.train_lengths", toml_string(options.train_lengths), "what stands behind them is padding");
    if (!options.raw_layout.empty()) add("data.raw_layout", toml_string(options.raw_layout));
    if (task_.named) {
      add("data.columns", "[\"label: categorical\"]", "labels become classes 0, 1, ... in their order");
      if (!task_.yes.empty()) add("data.positive", fmt::format("[{}]", toml_string(task_.yes)));
    }
    add_scaling();
  }

  // One number for all features if they are alike, else one for each.
  void add_scaling() {
    constexpr std::size_t kMaxListed = 1000;
    constexpr double kAlike = 10;
    double smallest = 0;
    double largest = 0;
    NumberStats all;
    for (const NumberStats& feature : data_.numbers) {
      const double deviation = feature.deviation();
      if (deviation > 0) smallest = smallest == 0 ? deviation : std::min(smallest, deviation);
      largest = std::max({largest, deviation, std::abs(feature.mean) / kAlike});
      all.merge(feature);
    }
    const bool alike = task_.images || largest < kAlike * smallest || data_.numbers.size() > kMaxListed;
    std::vector<std::string> means;
    std::vector<std::string> deviations;
    for (const NumberStats& each : alike ? std::vector{all} : data_.numbers) {
      means.push_back(fmt::format("{:.4g}", each.mean));
      deviations.push_back(fmt::format("{:.4g}", each.deviation() > 0 ? each.deviation() : 1));
    }
    add("data.mean", fmt::format("[{}]", fmt::join(means, ", ")),
        alike                     ? "of all features, as read (bytes as 0 to 1)"
        : data_.features.sequence ? "of each channel"
                                  : "of each feature");
    add("data.std", fmt::format("[{}]", fmt::join(deviations, ", ")));
  }

  void add_forecast(const ForecastPlan& plan) {
    add_table();
    const WindowOptions& windows = data_.options.table.windows;
    const Index labels = data_.label.columns;
    // Each label is forecast from its own past alone.
    const bool alike = labels > 1 && std::ranges::none_of(data_.table->columns, &TableColumn::is_feature);
    say("window", plan.window);
    say("horizon", plan.horizon);
    say("step", data_.table->series->step);
    say("future", fmt::format("[\"{}\"]", fmt::join(windows.future, "\", \"")));
    say("season", plan.season.positions);
    say("found", plan.season.autocorrelation);
    say("held", toml_string(fmt::format("time({}, {})", windows.time, plan.validation)));
    say("tested", toml_string(fmt::format("time({}, {})", windows.time, plan.test)));
    say("outputs", task_.outputs);
    say("preset", toml_string(preset_));
    const char* const first = learns_logarithm() ? "batch_norm " : "";  // the past is in units of the label
    say("layers",
        alike ? fmt::format("\"{}dense({}, shared={}, init=zero)\"", first, task_.outputs / labels, labels)
              : fmt::format("\"{}dense({}, init=zero)\"", first, task_.outputs));
    say("metric", "loss");
    say("patience", sizes_.patience);
    add_block("windows");
    if (!windows.future.empty()) add_block("future");
    if (plan.season.positions > 0) add_block("season");
    if (data_.table->series->missing_labels > 0) add_block("missing labels");
    if (plan.test > 0) add_block("part for test");
    add_block(preset_.empty() ? "linear map" : "preset");
    add_block("forecast");
    add_block("evaluations");
  }

  void add_text(const TextPlan& plan) {
    if (!data_.options.format.empty()) add("data.format", toml_string(data_.options.format));
    say("train", toml_string(data_.options.train));
    say("count", with_commas(plan.summary.tokens));
    say("tokens", toml_string(plan.tokens));
    say("vocabulary", with_commas(plan.summary.vocabulary));
    say("window", plan.window);
    say("held", toml_string(fmt::format("share({})", plan.held)));
    say("metrics",
        plan.summary.characters > 0 ? R"(["bits_per_character", "perplexity"])" : R"(["perplexity"])");
    say("outputs", plan.outputs);
    say("layers", toml_string(plan.layers));
    say("steps", plan.steps);
    say("reason", plan.reason);
    say("every", plan.every);
    say("batch", plan.batch);
    say("replicas", std::min<Index>(plan.batch, 8));
    say("baseline",
        plan.summary.bits.empty()
            ? ""
            : fmt::format("; counts of three tokens before have {:.2f}{}", plan.summary.bits.back(),
                          plan.summary.characters > 0 ? "" : " bits a token"));
    add_block("text");
    add_block(plan.layers.empty() ? "preset for text" : "layers for text");
    if (plan.replaces) add_block("unknown tokens");
  }

  void add_sets() {
    const DataOptions& options = data_.options;
    say("held", fmt::format("\"share({})\"", sizes_.held));
    say("validation", toml_string(data_.validation.value_or("")));
    say("test", toml_string(data_.test.value_or("")));
    if (data_.validation) add_block("validation set");
    if (!data_.validation && sizes_.held > 0) add_block("held back");
    if (data_.test) add_block("test set");
    for (const auto& [key, path] : {std::pair("data.validation_labels", options.validation_labels),
                                    std::pair("data.validation_lengths", options.validation_lengths),
                                    std::pair("data.test_labels", options.test_labels),
                                    std::pair("data.test_lengths", options.test_lengths)})
      if (!path.empty()) add(key, toml_string(path));
  }

  // Labels of each position may follow from what is behind it.
  void add_model() {
    say("layers", toml_string(task_.images ? convolutions(*as_image(data_.features), task_.outputs)
                              : data_.features.sequence
                                  ? fmt::format("gru(64, bidirectional=true) dense({})", task_.outputs)
                                  : perceptron(data_, task_.outputs)));
    say("preset", toml_string(preset_));
    say("outputs", task_.outputs);
    const bool classes = task_.kind == TaskKind::kClasses;
    say("meaning", classes                           ? "the last layer has an output for each class"
                   : task_.kind == TaskKind::kBinary ? "its output becomes the probability of yes"
                                                     : "the last layer puts out the number");
    add_block(preset_.empty() ? "layers" : classes ? "preset of classes" : "preset");
  }

  void add_training() {
    const bool tabular = is_tabular(preset_);
    const bool classes = task_.kind == TaskKind::kClasses;
    const bool numbers = task_.kind == TaskKind::kNumbers;
    add_block(classes          ? "classes"
              : !numbers       ? "yes or no"
              : has_outliers() ? "numbers with outliers"
                               : "numbers");
    if (!tabular && is_unbalanced()) {
      say("rarest", with_commas(data_.label.values.back().count));
      say("records", with_commas(data_.records));
      add_block("rare class");
    }
    const bool few = data_.records < 10'000;
    say("lr", few ? "0.003" : "0.005");
    say("decay", few && !numbers && !classes ? "1" : "0.1");  // by the tables of scripts/peers/tables.py
    add_block(tabular                   ? "tabular"
              : task_.images            ? "images"
              : data_.features.sequence ? "sequences"
                                        : "perceptron");
    if (sizes_.held == 0 && !data_.validation) return;
    // On few records the loss is less noisy than accuracy and AUC. Without a preset the classes may be
    // weighted, and the loss with them.
    say("metric", tabular || numbers ? "loss" : classes ? "accuracy" : "auc");
    say("patience", sizes_.patience);
    add_block("evaluations");
  }

  // Whether a few labels are so far from the others that their squared errors would rule.
  bool has_outliers() const {
    constexpr double kFarLabel = 6;
    return reaches(data_.label.numbers, kFarLabel);
  }

  // Whether a few numbers of a table are so far from the others that they are hardly right.
  bool has_far_features() const {
    constexpr double kFarFeature = 20;
    for (std::size_t i = 0; i < data_.table->columns.size(); ++i) {
      const TableColumn& column = data_.table->columns[i];
      const bool is_number = column.is_feature() && column.kind == ColumnKind::kNumeric;
      if (is_number && reaches(data_.table->scan.columns[i].numbers, kFarFeature)) return true;
    }
    return false;
  }

  // Whether one class has so few records that a model which never names it is hardly the worse for it.
  bool is_unbalanced() const {
    constexpr Index kTimes = 10;
    constexpr Index kEnough = 10;  // fewer records would each count as thousands do
    const std::vector<ValueCounts::Entry>& classes = data_.label.values;
    if (task_.kind == TaskKind::kNumbers || classes.size() < 2 || data_.label.positions > 0) return false;
    return classes.back().count >= kEnough && classes.front().count > kTimes * classes.back().count;
  }

  const InitData& data_;
  const Task& task_;
  std::string_view preset_;  // model.preset, or ""
  Sizes sizes_;
  const std::vector<TextEntry> texts_ = embedded_entries("texts/init.txt");
  fmt::dynamic_format_arg_store<fmt::format_context> words_;
  std::vector<CommentedSetting> settings_;
};

}  // namespace

std::string doubt_scale(const InitData& data, const Task& task) {
  if (task.kind != TaskKind::kNumbers || data.table || scale_of(data.label.numbers) == Scale::kNone)
    return "";
  return fmt::format("{}: {}; numbers with a mean near 0 and a deviation near 1 are learned sooner",
                     data.label.name, task.text);
}

std::vector<CommentedSetting> choose_settings(const InitData& data, const Task& task, const std::string& name,
                                              std::string_view preset) {
  return Chooser(data, task, preset).choose(name);
}

}  // namespace lockstep
