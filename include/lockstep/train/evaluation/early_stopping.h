// Early stopping: a run ends before its last step once evaluations of the validation set get no better
// (Prechelt 1998, "Early stopping - but when?").
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/train/evaluation/best_measure.h"

namespace lockstep {

/// The time that evaluations may take to get better: "5 evaluations", or a Duration.
class Patience {
 public:
  /// Errors: ConfigError naming `key` and the text, also for no time at all.
  Patience(std::string_view key, std::string_view text);

  /// Whether so much training, or so many evaluations, are as long or longer. All of `before` is behind
  /// `now`.
  bool is_over(const Progress& before, const Progress& now, Index evaluations) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::optional<Duration> duration_;  // none: in evaluations
  double evaluations_ = 0;
};

/// All ranks decide alike, since their evaluations are the same.
class EarlyStopping {
 public:
  /// `least`: the change of the measure that counts as better; at least 0.
  EarlyStopping(Measure measure, Patience patience, double least);

  /// Takes note of an evaluation of the validation set. Another one after the same step, as a resumed run
  /// makes it, changes nothing.
  void look(const EvalMetrics& evaluation);
  /// True once the run is to end.
  bool is_due() const;
  /// Counts the time anew, from the last evaluation on; what is better stays the same.
  void wait_again();
  /// "no better loss of the validation set for 5 epochs; the best was 0.3035 after step 2,321".
  std::string describe() const;
  /// Its first half.
  std::string waited() const;

  /// The numbers that a resumed run needs.
  std::span<double> state() { return state_; }

 private:
  // Offsets in the state; a Progress takes three numbers.
  enum { kValue, kBest, kLast = kBest + 3, kEvaluations = kLast + 3, kCount };

  Progress progress_at(std::size_t offset) const;
  void note_progress(std::size_t offset, const Progress& progress);

  Measure measure_;
  Patience patience_;
  double least_;
  std::array<double, kCount> state_{};
};

}  // namespace lockstep
