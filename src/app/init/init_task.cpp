// The choice of the task. Labels that are texts are classes. Numbers may be either: whole ones are classes if
// they look like it, in arrays also if they are more and count from 0.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "init.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr Index kMaxClasses = 10'000;

Index different(const LabelFacts& label) {
  return std::ssize(label.values);
}

// The labels are 0, 1, ... without a gap.
bool count_from_zero(const LabelFacts& label) {
  return label.texts == 0 && label.whole && label.numbers.min == 0 &&
         label.numbers.max == static_cast<double>(different(label) - 1);
}

bool are_classes(const LabelFacts& label, Index labels, bool array) {
  constexpr Index kMaxCounted = 1000;
  constexpr Index kRecordsOfAClass = 5;
  if (label.texts > 0 || look_like_classes(label.values)) return true;
  const Index count = different(label);
  const bool often = count > 0 && labels >= kRecordsOfAClass * count;
  return array && often && count <= kMaxCounted && count_from_zero(label);
}

void check_classes(const InitData& data) {
  const LabelFacts& label = data.label;
  const Index count = different(label);
  if (count == 1) {
    throw DataError("{} is {} in every record: there is nothing to learn", label.name,
                    in_quotes(label.values.front().text));
  }
  constexpr Index kFewValues = 20;
  const bool rare =
      count == 0 || count > kMaxClasses || (count > kFewValues && count > data.label_count() / 2);
  if (!rare) return;
  const std::string number = count == 0 ? "very many" : with_commas(count);
  if (label.texts > 0) {
    throw DataError("{} has {} different texts in {}, too many for classes: is it the column to learn?",
                    label.name, number, plural(data.records, "record"));
  }
  throw DataError("{} has {} different values in {}, too many for classes: --task numbers", label.name,
                  number, plural(data.records, "record"));
}

std::string describe_classes(const InitData& data) {
  constexpr std::size_t kMaxShown = 4;
  return list_shares(data.label.values, "classes", data.label_count(), kMaxShown);
}

Task classes(const InitData& data, bool keeps_two) {
  const LabelFacts& label = data.label;
  Task task{.outputs = different(label), .text = describe_classes(data)};
  const std::vector<std::string>& positive = data.options.table.positive;
  if (label.can_be_named) {
    task.named = !count_from_zero(label) || !positive.empty();
  } else if (!label.whole || label.numbers.min < 0 || label.numbers.max >= kMaxClasses) {
    throw DataError(
        "{}: found numbers from {:g} to {:g}, expected the classes 0, 1, ...: number them "
        "so, or give --task numbers",
        label.name, label.numbers.min, label.numbers.max);
  } else {
    task.outputs = static_cast<Index>(label.numbers.max) + 1;
  }
  if (task.outputs == 2) {
    task.yes = ordered_classes(label.values, positive.empty() ? "" : positive.front(), label.name).back();
    task.text += fmt::format("; yes is {}", in_quotes(task.yes));
  }
  if (task.outputs == 2 && !keeps_two) {
    task.kind = TaskKind::kBinary;
    task.outputs = 1;
  }
  return task;
}

Task numbers(const InitData& data, const std::optional<OutputForm>& form) {
  const LabelFacts& label = data.label;
  if (label.texts > 0) {
    throw ConfigError("{}: {} of {} values of {} are no numbers, such as {}",
                      form ? "--train.loss is a loss of numbers" : "--task numbers", with_commas(label.texts),
                      with_commas(label.texts + label.numbers.count), label.name,
                      in_quotes(label.values.empty() ? "" : label.values.front().text));
  }
  if (label.numbers.min == label.numbers.max)
    throw DataError("{} is {:g} in every record: there is nothing to learn", label.name, label.numbers.min);
  return {.kind = TaskKind::kNumbers,
          .outputs = label.columns,
          .text = fmt::format("numbers from {:g} to {:g}, mean {:.4g}, deviation {:.4g}", label.numbers.min,
                              label.numbers.max, label.numbers.mean, label.numbers.deviation())};
}

// Several labels: yes or no of each, or a number of each.
Task several(const InitData& data, const std::string& wanted, const std::optional<OutputForm>& form) {
  const LabelFacts& label = data.label;
  const bool of_classes = form && form->targets == TargetKind::kClass;
  if (label.texts > 0 || of_classes || wanted == "classes" || wanted == "images")
    throw ConfigError(
        "{} labels of a record are learned together only if they are numbers, or 0 and 1 each: "
        "give one --label for classes",
        label.columns);
  Task task = numbers(data, form);
  if (wanted == "numbers" || !(label.whole && label.numbers.min == 0 && label.numbers.max == 1)) return task;
  task.kind = TaskKind::kBinary;
  task.text = fmt::format("{} labels that are 0 or 1", label.columns);
  return task;
}

bool looks_like_image(const Shape& shape) {
  constexpr Index kMinSide = 8;
  constexpr Index kMaxChannels = 4;
  const std::optional<ImageShape> image = as_image(shape);
  return image && image->height >= kMinSide && image->width >= kMinSide && image->channels <= kMaxChannels;
}

Task forecast(const InitData& data, const std::string& wanted, const std::optional<OutputForm>& form) {
  if (!wanted.empty() && wanted != "numbers")
    throw ConfigError("--task {} with --horizon: a forecast is of numbers", wanted);
  Task task = numbers(data, form);
  task.outputs *= data.forecast->horizon;
  task.text = fmt::format("a forecast of {} from {} before, series: {}; {}",
                          plural(data.forecast->horizon, "position"), data.forecast->window,
                          with_commas(data.table->series->series), task.text);
  return task;
}

Task suiting_task(const InitData& data, const std::string& wanted, const std::optional<OutputForm>& form) {
  if (data.label.columns > 1) return several(data, wanted, form);
  if (data.label.texts + data.label.numbers.count == 0)
    throw DataError("{} has no value in any record", data.label.name);
  const bool as_classes = !wanted.empty() ? wanted != "numbers"
                          : form          ? true
                                          : are_classes(data.label, data.label_count(), !data.table);
  if (!as_classes) return numbers(data, form);
  check_classes(data);
  const bool of_yes = form && form->targets == TargetKind::kBinary;
  if ((wanted == "binary" || of_yes) && different(data.label) != 2) {
    throw ConfigError("{}: {} has {}, expected two",
                      of_yes ? "--train.loss is a loss of yes or no" : "--task binary", data.label.name,
                      describe_classes(data));
  }
  // Two classes of positions are learned as any number of them: an output for each.
  const bool two_outputs = form ? !of_yes : data.label.positions > 0;
  Task task = classes(data, wanted == "classes" || (wanted.empty() && two_outputs));
  task.images = wanted == "images" || (wanted.empty() && looks_like_image(data.features));
  return task;
}

Task task_of(const InitData& data, const std::string& wanted, const std::optional<OutputForm>& form) {
  if (data.text) {
    return {.outputs = data.text->outputs,
            .text = fmt::format("the next of {} ({}), from {} before at most",
                                with_commas(data.text->outputs), data.text->tokens, data.text->window)};
  }
  if (data.label.columns == 0) throw DataError("'{}' has no labels to learn", data.options.train);
  if (data.forecast) return forecast(data, wanted, form);
  const bool of_numbers = form && form->targets == TargetKind::kValue;
  Task task = suiting_task(data, wanted.empty() && of_numbers ? "numbers" : wanted, form);
  if (data.label.positions > 0) task.text = "at each position " + task.text;
  if (data.features.size() == 0)
    throw DataError("no column of '{}' is left as a feature: {}", data.options.train,
                    fmt::join(data.doubts, "; "));
  return task;
}

}  // namespace

Task choose_task(const InitData& data, const std::string& wanted, const std::optional<OutputForm>& form) {
  const std::vector<std::string> names{"classes", "binary", "images", "numbers"};
  if (!wanted.empty() && std::ranges::count(names, wanted) == 0) throw_unknown_name("task", wanted, names);
  error_if(data.text && !wanted.empty(),
           "--task {}: a text has one task, to predict its next token: leave it out", wanted);
  if (wanted == "images" && !as_image(data.features)) {
    throw ConfigError("--task images: a record has the shape {}, expected height x width x channels",
                      to_string(data.features));
  }
  Task task = task_of(data, wanted, form);
  if (form) task.outputs *= form->outputs_per_target();
  task.form = form;
  return task;
}

}  // namespace lockstep
