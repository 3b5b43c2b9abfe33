#include "findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

using Counted = std::vector<ValueCounts::Entry>;

// The labels of the records in which a column had some value: classes, or numbers.
struct Seen {
  std::unordered_map<std::uint64_t, Index> classes;
  std::uint64_t most_frequent = 0;  // the least of several
  Index most = 0;
  double sum = 0;
  Index count = 0;

  void add(const SketchValue& label, bool is_class) {
    sum += label.number;
    ++count;
    if (!is_class) return;
    const Index of_class = ++classes[label.text];
    if (of_class < most || (of_class == most && label.text > most_frequent)) return;
    most = of_class;
    most_frequent = label.text;
  }
  double mean() const { return sum / static_cast<double>(count); }
};

// Predicts a label from the value of one column: from the nearest number, or the same text.
struct Predictor {
  bool numeric;
  bool has_classes;
  Seen all = {};
  Seen missing = {};
  std::map<double, Seen> by_number = {};
  std::unordered_map<std::uint64_t, Seen> by_text = {};

  void learn(const SketchValue& value, const SketchValue& label) {
    all.add(label, has_classes);
    (value.missing ? missing
     : numeric     ? by_number[value.number]
                   : by_text[value.text])
        .add(label, has_classes);
  }
  // The labels of such a value, or of all.
  const Seen& look_up(const SketchValue& value) const {
    if (value.missing) return missing.count > 0 ? missing : all;
    if (!numeric) {
      const auto found = by_text.find(value.text);
      return found == by_text.end() ? all : found->second;
    }
    if (by_number.empty()) return all;
    const auto above = by_number.lower_bound(value.number);
    if (above == by_number.begin()) return above->second;
    const auto below = std::prev(above);
    const bool nearer_below =
        above == by_number.end() || value.number - below->first < above->first - value.number;
    return nearer_below ? below->second : above->second;
  }
};

// How well a column predicts the label by itself: learnt from one half of the sample, and tried on the other.
struct AlonePrediction {
  Index tried = 0;
  Index right = 0;       // records whose class it predicts
  Index most_often = 0;  // records of the class that is the most frequent
  double explained = 0;  // share of the variance of numbers

  // It predicts nearly all, and far more than a guess.
  bool gives_away(bool classes) const {
    constexpr Index kMinTried = 50;
    constexpr double kShare = 0.99;
    constexpr Index kMinGuessedWrong = 10;
    constexpr Index kFewer = 10;  // wrong ones than those of the guess
    if (tried < kMinTried) return false;
    if (!classes) return explained >= kShare;
    const Index guessed_wrong = tried - most_often;
    return guessed_wrong >= kMinGuessedWrong && kFewer * (tried - right) <= guessed_wrong &&
           static_cast<double>(right) >= kShare * static_cast<double>(tried);
  }
};

AlonePrediction predict_alone(const RecordSketch& sketch, bool numeric, std::size_t feature,
                              std::size_t label, bool has_classes) {
  constexpr std::size_t kMinSampled = 100;
  Predictor predictor{numeric, has_classes};
  for (const SketchedRecord& record : sketch.sample()) {
    if (record.in_first_half() && !record.values[label].missing)
      predictor.learn(record.values[feature], record.values[label]);
  }
  AlonePrediction found;
  if (sketch.sample().size() < kMinSampled || predictor.all.count == 0) return found;
  const std::uint64_t guess = predictor.all.most_frequent;
  double errors = 0;
  double spread = 0;
  for (const SketchedRecord& record : sketch.sample()) {
    const SketchValue& truth = record.values[label];
    if (record.in_first_half() || truth.missing) continue;
    const Seen& seen = predictor.look_up(record.values[feature]);
    ++found.tried;
    found.right += seen.most_frequent == truth.text ? 1 : 0;
    found.most_often += guess == truth.text ? 1 : 0;
    errors += std::pow(truth.number - seen.mean(), 2);
    spread += std::pow(truth.number - predictor.all.mean(), 2);
  }
  if (spread > 0) found.explained = 1 - errors / spread;
  return found;
}

double days_of(double number, DateForm form) {
  return parse_date(fmt::format("{:.17g}", number), form).value_or(std::numeric_limits<double>::quiet_NaN());
}

// The form by which all numbers of a column, in ascending order, are plausible times: dates that are written
// as one number, or counts of the last decades. Days of spreadsheets look like other numbers: `of_time` says
// that more speaks for times.
std::optional<DateForm> find_times(const std::vector<double>& numbers, bool of_time) {
  const std::pair decades{7305.0, today() + 3653};  // from 1990 on
  if (numbers.empty() || numbers.back() - numbers.front() < 2) return std::nullopt;
  using enum DateForm;
  for (const DateForm form : {kYmd, kEpoch, kEpochMs, kEpochUs, kExcel}) {
    const std::pair plausible = form == kYmd ? kPlausibleDays : decades;
    const bool all = std::ranges::all_of(numbers, [&](double number) {
      const double days = days_of(number, form);
      return number == std::floor(number) && days >= plausible.first && days < plausible.second;
    });
    if (all && (of_time || form != kExcel)) return form;
  }
  return std::nullopt;
}

bool is_named_as_time(std::string_view name) {
  const std::string lower = in_lower_case(name);
  return std::ranges::any_of(std::array{"date", "time", "day", "when", "stamp"},
                             [&lower](const char* word) { return lower.find(word) != std::string::npos; });
}

class FindingList {
 public:
  FindingList(const TableInspection& inspection, const RecordSketch& sketch)
      : inspection_(inspection), sketch_(sketch) {
    if (std::ranges::count_if(inspection.columns, &TableColumn::label) != 1) return;
    label_ = static_cast<std::size_t>(std::ranges::find_if(inspection.columns, &TableColumn::label) -
                                      inspection.columns.begin());
    has_classes_ = holds_classes(column(*label_), summary(*label_));
  }

  std::vector<Finding> take() {
    for (std::size_t i = 0; i < inspection_.columns.size(); ++i) {
      const bool feature = column(i).is_feature();
      const Counted values = summary(i).values();
      if (column(i).label || feature) look_at_rounding(i);
      if (column(i).label) look_at_balance(i, values);
      if (column(i).label || feature) look_at_sentinels(i);
      if (column(i).kind == ColumnKind::kCategorical) {
        look_at_spelling(i, values);
        look_at_number_texts(i, values);
      }
      if (!feature) continue;
      look_at_constancy(i, values);
      if (!look_at_times(i)) look_at_identity(i);
      look_at_years(i);
      look_at_far_dates(i);
      if (label_) look_at_leak(i, *label_);
    }
    look_at_duplicates();
    return std::move(findings_);
  }

 private:
  // A finding on column i.
  void add(FindingKind kind, std::size_t i, Index count, std::string fact, std::string setting = "") {
    findings_.push_back({kind, column(i).name, count, std::move(fact), std::move(setting)});
  }
  const TableColumn& column(std::size_t i) const { return inspection_.columns[i]; }
  const ColumnSummary& summary(std::size_t i) const { return inspection_.scan.columns[i]; }

  // Numbers as they are read become single precision without being scaled before.
  void look_at_rounding(std::size_t i) {
    const NumberStats& numbers = summary(i).numbers;
    if (!column(i).is_number() || !numbers.merge_in_single_precision()) return;
    const bool same = static_cast<Scalar>(numbers.min) == static_cast<Scalar>(numbers.max);
    const bool scaled = column(i).scale != Scale::kNone;
    add(FindingKind::kRounding, i, numbers.count,
        fmt::format("its {} numbers, from {:.17g} to {:.17g}, {} in single precision{}",
                    with_commas(numbers.count), numbers.min, numbers.max,
                    same ? "are all the same" : "lose what tells them apart",
                    scaled ? ", in which an exported model takes them: subtract a number before" : ""),
        scaled ? "" : fmt::format("columns = [{}]", toml_string(column(i).name + ": standard")));
  }

  void look_at_balance(std::size_t i, const Counted& classes) {
    constexpr double kRarePercent = 10;  // of the share that each class would have
    constexpr std::size_t kMaxClasses = 100;
    if (classes.empty() || classes.size() > kMaxClasses || !holds_classes(column(i), summary(i))) return;
    const Index all = summary(i).present();
    const ValueCounts::Entry& first = classes.front();
    const ValueCounts::Entry& rarest = classes.back();
    if (percent(rarest.count, all) * static_cast<double>(classes.size()) >= kRarePercent) return;
    add(FindingKind::kImbalance, i, rarest.count,
        fmt::format("{:.3g} % of the records are {} and {:.3g} % ({}) are {}: always guessing the first is "
                    "right as often, so look at the auc or the recall rather than at the accuracy",
                    percent(first.count, all), in_quotes(first.text), percent(rarest.count, all),
                    with_commas(rarest.count), in_quotes(rarest.text)),
        "train.class_weights = \"balanced\"");
  }

  void look_at_constancy(std::size_t i, const Counted& values) {
    constexpr double kNearlyPercent = 99;
    const Index records = inspection_.scan.good;
    if (values.size() < 2 || percent(values.front().count, records) < kNearlyPercent) return;
    add(FindingKind::kNearlyConstant, i, values.front().count,
        fmt::format("it is {} in {} of {} records ({:.3g} %); another value is {}",
                    in_quotes(values.front().text), with_commas(values.front().count), with_commas(records),
                    percent(values.front().count, records), in_quotes(values[1].text)),
        ignore_line(column(i).name));
  }

  // Least or greatest numbers of nines alone, such as -999, that are further from all others than these are
  // from each other, and there more than once.
  void look_at_sentinels(std::size_t i) {
    std::set<double> ends;
    for (const double end : {summary(i).numbers.min, summary(i).numbers.max}) {
      if (is_nines(end)) ends.insert(end);
    }
    if (!column(i).is_number() || ends.empty()) return;
    const std::vector<double> all = numbers_of(sketch_, i);
    std::vector<double> rest = all;
    std::erase_if(rest, [&ends](double number) { return ends.contains(number); });
    if (rest.empty()) return;
    for (const double end : ends) {
      const Index count = std::ranges::count(all, end);
      const double gap = std::max(rest.front() - end, end - rest.back());
      if (count < 2 || gap <= rest.back() - rest.front()) continue;
      const std::string value = fmt::format("{}", end);
      add(FindingKind::kSentinel, i, count,
          fmt::format("{} of {} numbers are {}, far from all others, which are {:.6g} to {:.6g}",
                      with_commas(count), with_commas(std::ssize(all)), value, rest.front(), rest.back()),
          fmt::format("columns = [{}]", toml_string(fmt::format("{}: missing({})", column(i).name, value))));
      findings_.back().value = value;
      findings_.back().question = "does it stand for a missing value?";
    }
  }

  static bool is_nines(double number) {
    const std::string digits = fmt::format("{}", std::abs(number));
    return digits.size() > 1 && digits.find_first_not_of('9') == std::string::npos;
  }

  // Texts that differ in case or blanks only, and yes and no in more than one word each.
  void look_at_spelling(std::size_t i, const Counted& values) {
    static const std::set<std::string> kYesOrNo{"yes",   "y",   "true", "t",    "1",   "ja",
                                                "j",     "oui", "si",   "on",   "no",  "n",
                                                "false", "f",   "0",    "nein", "non", "off"};
    std::map<std::string, std::vector<std::string>> folded;
    Index other = 0;
    for (const ValueCounts::Entry& value : values) {
      std::vector<std::string>& alike = folded[fold_case(value.text)];
      alike.push_back(in_quotes(value.text));
      other += alike.size() > 1 ? value.count : 0;
    }
    const auto most =
        std::ranges::max_element(folded, {}, [](const auto& each) { return each.second.size(); });
    if (most == folded.end()) return;
    if (other > 0) {
      add(FindingKind::kSpelling, i, other,
          fmt::format("{} differ in case or blanks only, and are taken for different values "
                      "({} records have another spelling than most){}",
                      listed(most->second, 4), with_commas(other),
                      column(i).label ? "; write each in one way in the file" : ""),
          column(i).label ? "" : fmt::format("columns = [{}]", toml_string(column(i).name + ": fold_case")));
    }
    const bool answers =
        std::ranges::all_of(folded, [](const auto& each) { return kYesOrNo.contains(each.first); });
    if (!answers || folded.size() < 3) return;
    std::vector<std::string> words;
    for (const ValueCounts::Entry& value : values) words.push_back(in_quotes(value.text));
    add(FindingKind::kSpelling, i, summary(i).present(),
        fmt::format("yes and no are written in {} ways, {}: each is a value of its own; write "
                    "them in one way in the file",
                    words.size(), listed(words, 8)));
  }

  // '1' and '1.0', as programs write numbers once one of them is missing.
  void look_at_number_texts(std::size_t i, const Counted& values) {
    std::map<double, std::string> known;
    for (const ValueCounts::Entry& value : values) {
      const auto number = parse_number(value.text);
      const bool is_code = value.text.size() > 1 && value.text.front() == '0' && value.text[1] != '.';
      if (!number || is_code) continue;
      const auto [entry, is_new] = known.emplace(*number, value.text);
      if (is_new) continue;
      return add(
          FindingKind::kSpelling, i, value.count,
          fmt::format(
              "{} and {} are one number, and are taken for different values: write it in one way in the file",
              in_quotes(entry->second), in_quotes(value.text)));
    }
  }

  void look_at_identity(std::size_t i) {
    constexpr Index kMinRecords = 100;
    const Index different = sketch_.different(i);
    if (!column(i).is_number() || different < kMinRecords) return;
    add(FindingKind::kIdentifier, i, different,
        fmt::format("its {} values, such as {:.17g}, are whole numbers and all different (does it name "
                    "the record, so that nothing can be learnt from it?)",
                    with_commas(different), sketch_.example(i)),
        ignore_line(column(i).name));
  }

  bool look_at_times(std::size_t i) {
    const NumberStats& stats = summary(i).numbers;
    const bool of_time = sketch_.different(i) > 0 || is_named_as_time(column(i).name);
    if (!column(i).is_number() || !find_times({stats.min, stats.max}, of_time)) return false;
    const auto form = find_times(numbers_of(sketch_, i), of_time);
    if (!form) return false;
    const std::string word = fmt::format("date({})", to_string(*form));
    add(FindingKind::kTimes, i, stats.count,
        fmt::format("its numbers, such as {:.17g}, look like times: as {} they are from {} to {}", stats.min,
                    word, write_date(days_of(stats.min, *form)), write_date(days_of(stats.max, *form))),
        fmt::format("columns = [{}]", toml_string(column(i).name + ": " + word)));
    return true;
  }

  void look_at_years(std::size_t i) {
    const YearsRemark remark = remark_on_years(column(i), summary(i));
    if (remark.text.empty()) return;
    DateReading date = column(i).date.value_or(DateReading{});
    date.before = remark.before;
    const bool other = remark.future && remark.before > 0;
    add(FindingKind::kYears, i, summary(i).numbers.count, remark.text,
        other ? fmt::format("columns = [{}]", toml_string(column(i).name + ": " + date.term())) : "");
  }

  // A frequent first or last date that is far from all others: 9999-12-31, 1900-01-01.
  void look_at_far_dates(std::size_t i) {
    if (!column(i).date || column(i).date->form == DateForm::kTime) return;
    const std::vector<double> dates = numbers_of(sketch_, i);
    for (const bool last : {false, true}) {
      if (dates.empty()) return;
      const double date = last ? dates.back() : dates.front();
      const auto [begin, end] = std::equal_range(dates.begin(), dates.end(), date);
      const Index count = end - begin;
      const std::span<const double> others =
          last ? std::span(dates.begin(), begin) : std::span(end, dates.end());
      if (!is_far(date, count, others)) continue;
      add(FindingKind::kFarDate, i, count,
          fmt::format("{} of {} dates are {}, far from the others, {} to {}: if it stands for a missing "
                      "one, name it in data.missing_values",
                      with_commas(count), with_commas(std::ssize(dates)), write_date(date),
                      write_date(others.front()), write_date(others.back())));
    }
  }

  static bool is_far(double date, Index count, std::span<const double> others) {
    constexpr Index kFrequent = 5;
    constexpr double kYear = 366;
    const Index all = count + std::ssize(others);
    if (others.empty() || count < kFrequent || percent(count, all) < 1) return false;
    const double gap = date < others.front() ? others.front() - date : date - others.back();
    const Index day = day_of_year(date);
    const bool ends_a_year = day == 0 || day + 1 == kDaysOfYear;
    return gap > kYear && (ends_a_year || gap > others.back() - others.front());
  }

  // The text of a value in the sketch.
  std::string text_of(std::size_t i, const SketchValue& value) const {
    if (value.missing) return "no value";
    if (column(i).date) return write_date(value.number, column(i).date->form);
    if (column(i).kind == ColumnKind::kNumeric) return fmt::format("{}", value.number);
    for (const ValueCounts::Entry& entry : summary(i).values()) {
      if (hash_text(entry.text) == value.text) return in_quotes(entry.text);
    }
    return "a text";
  }

  void look_at_leak(std::size_t i, std::size_t label) {
    const bool numeric = column(i).kind == ColumnKind::kNumeric;
    const AlonePrediction found = predict_alone(sketch_, numeric, i, label, has_classes_);
    if (!found.gives_away(has_classes_)) return;
    const std::string how =
        has_classes_
            ? fmt::format("it predicts {} of {} records right, where the most frequent class does {}",
                          with_commas(found.right), with_commas(found.tried), with_commas(found.most_often))
            : fmt::format("it explains {:.1f} % of the variance of {} records", 100 * found.explained,
                          with_commas(found.tried));
    add(FindingKind::kLeak, i, has_classes_ ? found.right : found.tried,
        fmt::format("it alone gives the label {} away: {}, such as {} with {} (will it be known when you "
                    "predict?)",
                    in_quotes(column(label).name), how, text_of(i, sketch_.sample().front().values[i]),
                    text_of(label, sketch_.sample().front().values[label])),
        ignore_line(column(i).name));
  }

  void look_at_duplicates() {
    const HashCounts& counts = sketch_.whole();
    Index repeated = 0;
    const HashCounts::Entry* example = nullptr;
    for (const auto& [hash, entry] : counts.entries()) {
      repeated += entry.count - 1;
      if (entry.count > 1 && (example == nullptr || entry.second < example->second)) example = &entry;
    }
    if (example == nullptr) return;
    const auto all = static_cast<Index>(std::llround(static_cast<double>(repeated) / counts.share()));
    findings_.push_back(
        {FindingKind::kDuplicates, "", all,
         fmt::format("{}{} of {} records ({:.3g} %) are the same as an earlier one in all columns that are "
                     "used, such as records {} and {}: where one is trained on and the other held back, the "
                     "model looks better than it is; remove them from the file",
                     counts.share() < 1 ? "about " : "", with_commas(all), with_commas(sketch_.records()),
                     percent(all, sketch_.records()), with_commas(example->first + 1),
                     with_commas(example->second + 1))});
  }

  const TableInspection& inspection_;
  const RecordSketch& sketch_;
  std::optional<std::size_t> label_;  // if there is one only
  bool has_classes_ = false;          // the label
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<double> numbers_of(const RecordSketch& sketch, std::size_t column) {
  std::vector<double> numbers;
  for (const SketchedRecord& record : sketch.sample()) {
    if (!record.values[column].missing) numbers.push_back(record.values[column].number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::string ignore_line(const std::string& column) {
  constexpr std::size_t kMaxName = 100;
  return column.size() > kMaxName ? "" : fmt::format("ignore = [{}]", toml_string(column));
}

std::vector<Finding> find_suspicious(TableInspection& inspection, const std::vector<FileSet>& others) {
  std::vector<Index> positions(inspection.columns.size());
  std::iota(positions.begin(), positions.end(), 0);
  const RecordSketch sketch =
      sketch_records(inspection.table, inspection.columns, positions, inspection.options.missing_values);
  std::vector<Finding> findings = FindingList(inspection, sketch).take();
  for (const FileSet& other : others) {
    const std::vector<Finding> more = compare_with(inspection, sketch, other);
    findings.insert(findings.end(), more.begin(), more.end());
  }
  return findings;
}

}  // namespace lockstep
