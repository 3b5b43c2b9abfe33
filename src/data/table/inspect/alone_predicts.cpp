#include "alone_predicts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

namespace lockstep {
namespace {

constexpr std::size_t kMinTried = 50;

// The labels of the records in which a column had some value.
struct Seen {
  std::map<std::uint64_t, Index> classes;
  double sum = 0;
  Index count = 0;

  void add(const SketchValue& label) {
    ++classes[label.text];
    sum += label.number;
    ++count;
  }
  std::uint64_t most_frequent() const {
    return std::ranges::max_element(classes, {}, [](const auto& each) { return each.second; })->first;
  }
  double mean() const { return sum / static_cast<double>(count); }
};

class Predictor {
 public:
  explicit Predictor(bool numeric) : numeric_(numeric) {}

  void learn(const SketchValue& value, const SketchValue& label) {
    all_.add(label);
    if (value.missing) {
      missing_.add(label);
    } else if (numeric_) {
      by_number_[value.number].add(label);
    } else {
      by_text_[value.text].add(label);
    }
  }
  const Seen& all() const { return all_; }
  /// The labels of such a value, or of all.
  const Seen& look_up(const SketchValue& value) const {
    if (value.missing) return missing_.count > 0 ? missing_ : all_;
    if (!numeric_) {
      const auto found = by_text_.find(value.text);
      return found == by_text_.end() ? all_ : found->second;
    }
    if (by_number_.empty()) return all_;
    const auto above = by_number_.lower_bound(value.number);
    if (above == by_number_.end()) return std::prev(above)->second;
    if (above == by_number_.begin()) return above->second;
    const auto below = std::prev(above);
    return value.number - below->first < above->first - value.number ? below->second : above->second;
  }

 private:
  bool numeric_;
  Seen all_;
  Seen missing_;
  std::map<double, Seen> by_number_;
  std::unordered_map<std::uint64_t, Seen> by_text_;
};

}  // namespace

std::optional<AlonePrediction> predict_alone(const RecordSketch& sketch,
                                             const std::vector<TableColumn>& columns, std::size_t feature,
                                             std::size_t label, bool classes) {
  if (sketch.sampled() < 2 * kMinTried) return std::nullopt;
  Predictor predictor(columns[feature].kind == ColumnKind::kNumeric);
  for (std::size_t i = 0; i < sketch.sampled(); ++i) {
    if (sketch.in_first_half(i) && !sketch.value(i, label).missing)
      predictor.learn(sketch.value(i, feature), sketch.value(i, label));
  }
  if (predictor.all().count == 0) return std::nullopt;
  AlonePrediction found;
  const std::uint64_t guess = predictor.all().most_frequent();
  double errors = 0;
  double spread = 0;
  for (std::size_t i = 0; i < sketch.sampled(); ++i) {
    const SketchValue& truth = sketch.value(i, label);
    if (sketch.in_first_half(i) || truth.missing) continue;
    const Seen& seen = predictor.look_up(sketch.value(i, feature));
    ++found.tried;
    found.right += seen.most_frequent() == truth.text ? 1 : 0;
    found.most_often += guess == truth.text ? 1 : 0;
    errors += std::pow(truth.number - seen.mean(), 2);
    spread += std::pow(truth.number - predictor.all().mean(), 2);
  }
  if (!classes && spread > 0) found.explained = 1 - errors / spread;
  return found;
}

bool gives_away(const AlonePrediction& prediction, bool classes) {
  constexpr double kShare = 0.99;
  constexpr Index kMinGuessedWrong = 10;
  constexpr Index kFewer = 10;  // wrong ones than those of the guess
  if (prediction.tried < Index{kMinTried}) return false;
  if (!classes) return prediction.explained >= kShare;
  const Index wrong = prediction.tried - prediction.right;
  const Index guessed_wrong = prediction.tried - prediction.most_often;
  return guessed_wrong >= kMinGuessedWrong && kFewer * wrong <= guessed_wrong &&
         static_cast<double>(prediction.right) >= kShare * static_cast<double>(prediction.tried);
}

}  // namespace lockstep
