#include "lockstep/report/live/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/log.h"
#include "lockstep/base/terminal.h"
#include "lockstep/base/text.h"
#include "lockstep/train/evaluation/prediction.h"

namespace lockstep {
namespace {

constexpr double kRedrawSeconds = 0.2;
// Between two plain lines: a tenth of the time so far, within these limits. A log of a day then has 1,500 of
// them.
constexpr double kMinLineSeconds = 5;
constexpr double kMaxLineSeconds = 60;
// Steps that take so long that metrics are due more rarely have lines of their own.
constexpr double kMaxSilentSeconds = 90;
constexpr double kLossMemory = 0.95;
constexpr int kBarWidth = 24;
constexpr int kLeastBarWidth = 6;

constexpr double kFirstEstimateSeconds = 0.5;
constexpr double kRounding = 1e-9;
constexpr std::size_t kSampleBytes = 160;

std::size_t index_of(Split split) {
  return split == Split::kValidation ? 0 : 1;
}

}  // namespace

std::string bar(double share, int width) {
  const int filled = std::clamp(static_cast<int>(share * width), 0, width);
  std::string text(static_cast<std::size_t>(width), ' ');
  std::fill_n(text.begin(), filled, '=');
  if (filled < width) at(text, filled) = '>';
  return "[" + text + "]";
}

ProgressLine::ProgressLine(ProgressStyle style, const Progress& whole, const EvaluationSchedule& evaluations,
                           Measure measure)
    : live_(style == ProgressStyle::kLive ||
            (style == ProgressStyle::kAuto && output_is_live() && rows_can_be_redrawn())),
      plain_(!live_ && style != ProgressStyle::kNone),
      whole_(whole),
      estimate_(whole, evaluations),
      split_(evaluations.validation ? Split::kValidation : Split::kTest),
      keeps_best_(evaluations.keeps_best),
      best_(std::move(measure)) {}

void ProgressLine::go_on(const RunRecord& earlier) {
  const auto found = earlier.deciding.find(to_string(split_));
  if (found == earlier.deciding.end() || found->second.measure != best_.measure().name()) return;
  best_.state()[0] = found->second.value;
  best_.state()[1] = static_cast<double>(found->second.step);
}

void ProgressLine::on_step(const Progress& progress, double loss) {
  smooth_loss_ = has_loss_ ? kLossMemory * smooth_loss_ + (1 - kLossMemory) * loss : loss;
  has_loss_ = true;
  if (!live_ && !plain_) return;
  estimate_.on_step(progress, since_start_.seconds());
  if (plain_ && since_line_.seconds() >= kMaxSilentSeconds) print_step(progress);
  if (!live_ || since_redraw_.seconds() < kRedrawSeconds) return;
  since_redraw_.lap();
  redraw(progress);
}

void ProgressLine::redraw(const Progress& progress) {
  std::string numbers =
      fmt::format(" epoch {:.2f}/{:.2f}  loss {:.5g}", progress.epochs, whole_.epochs, smooth_loss_);
  if (const std::optional<double> rate = estimate_.rate()) {
    numbers += fmt::format("  {} samples/s{}", count_text(*rate), time_left());
  }
  // One row only: a longer one would wrap, and the next redraw would leave its first part behind.
  const int columns = terminal_columns() - 1;
  const std::string evaluated = evaluation();
  if (static_cast<int>(numbers.size() + evaluated.size()) <= columns) numbers += evaluated;
  const int left = columns - static_cast<int>(numbers.size());
  const double share = static_cast<double>(progress.samples) / static_cast<double>(whole_.samples);
  const std::string drawn = left >= kLeastBarWidth + 2 ? bar(share, std::min(kBarWidth, left - 2)) : "";
  draw_live_row((drawn + numbers).substr(0, static_cast<std::size_t>(columns)));
}

std::string ProgressLine::evaluation() const {
  if (!latest_) return "";
  const std::string name = to_string(split_) + " " + best_.measure().name();
  const std::string best = keeps_best_ ? fmt::format(" (best {:.5g})", best_.value()) : "";
  return fmt::format("  {} {:.5g}{}", name, *latest_, best);
}

std::string ProgressLine::time_left() const {
  const std::optional<double> seconds = estimate_.seconds_left();
  return seconds ? fmt::format("  {} left", human_seconds(*seconds)) : "";
}

void ProgressLine::print_step(const Progress& progress) {
  since_line_.lap();
  log_info("step {}/{}  epoch {:.2f}  loss {:.5g}{}", with_commas(progress.steps), with_commas(whole_.steps),
           progress.epochs, smooth_loss_, time_left());
}

void ProgressLine::on_train_metrics(const TrainMetrics& metrics) {
  const bool last = metrics.progress.steps == whole_.steps;
  if (last) erase_live_row();
  const double pause = std::clamp(since_start_.seconds() / 10, kMinLineSeconds, kMaxLineSeconds);
  if (!last && since_line_.seconds() < pause) return;
  since_line_.lap();
  const std::string accuracy = metrics.accuracy ? fmt::format("  accuracy {:.5g}", *metrics.accuracy) : "";
  // The log file has these lines in any case.
  write_log(plain_ ? LogLevel::kInfo : LogLevel::kDebug,
            fmt::format("step {}/{}  epoch {:.2f}  loss {:.5g}{}  lr {:.5g}  {} samples/s{}",
                        with_commas(metrics.progress.steps), with_commas(whole_.steps),
                        metrics.progress.epochs, metrics.loss, accuracy, metrics.lr,
                        count_text(metrics.samples_per_second), last ? "" : time_left()));
}

void ProgressLine::on_evaluation(const EvalMetrics& metrics) {
  estimate_.on_evaluation(metrics.split, metrics.seconds);
  if (metrics.split == split_) {
    best_.improves(metrics);
    latest_ = best_.measure().of(metrics);
  }
  const std::string accuracy = metrics.accuracy ? fmt::format("  accuracy {:.5g}", *metrics.accuracy) : "";
  const std::string top_k =
      metrics.top_k_accuracy ? fmt::format("  top-{} {:.5g}", metrics.top_k, *metrics.top_k_accuracy) : "";
  std::string others;
  for (const MetricValue& other : metrics.others) others += "  " + to_string(other, metrics.positive());
  log_info("epoch {:.2f}  {} {}{}{}{}  ({}, {})", metrics.progress.epochs, to_string(metrics.split),
           describe_loss(metrics), accuracy, top_k, others, metrics.counted(),
           human_seconds(metrics.seconds));
  if (metrics.crossed > 0)
    log_info("{} set: {}", to_string(metrics.split),
             describe_crossed(metrics.crossed, metrics.positions > 0));
  if (metrics.sample.empty()) return;
  std::string line = metrics.sample;
  std::ranges::replace(line, '\n', ' ');
  log_info("sample: {}", excerpt(line, kSampleBytes));
}

Index EvaluationSchedule::still_due(Split split, const Progress& progress, const Progress& whole) const {
  if (!(split == Split::kValidation ? validation : test)) return 0;
  const bool in_between = split == Split::kValidation || !validation;
  if (!in_between || !every) return 1;
  // An evaluation that is due with the last step is the one at the end.
  const double before_end = std::ceil(every->measure(whole) / every->value - kRounding) - 1;
  const double done = std::floor(every->measure(progress) / every->value + kRounding);
  return static_cast<Index>(std::max(before_end - done, 0.0)) + 1;
}

void TimeEstimate::on_step(const Progress& progress, double seconds) {
  if (!first_) {
    first_ = progress;
  } else {
    seconds_ += std::max(seconds - end_of_last_ - evaluating_, 0.0);
  }
  last_ = progress;
  end_of_last_ = seconds;
  evaluating_ = 0;
}

void TimeEstimate::on_evaluation(Split split, double seconds) {
  Evaluated& evaluated = evaluated_.at(index_of(split));
  ++evaluated.times;
  evaluated.seconds += seconds;
  evaluating_ += seconds;
}

std::optional<double> TimeEstimate::rate() const {
  if (!first_ || seconds_ < kFirstEstimateSeconds || last_.samples <= first_->samples) return std::nullopt;
  return static_cast<double>(last_.samples - first_->samples) / seconds_;
}

std::optional<double> TimeEstimate::seconds_left() const {
  const std::optional<double> samples_per_second = rate();
  if (!samples_per_second) return std::nullopt;
  double left = static_cast<double>(whole_.samples - last_.samples) / *samples_per_second;
  for (const Split split : {Split::kValidation, Split::kTest}) {
    left += static_cast<double>(evaluations_.still_due(split, last_, whole_)) * evaluation_seconds(split);
  }
  return left;
}

// The mean so far; that of the other set where this one was not evaluated yet.
double TimeEstimate::evaluation_seconds(Split split) const {
  const Evaluated& own = evaluated_.at(index_of(split));
  const Evaluated& other = evaluated_.at(1 - index_of(split));
  const Evaluated& seen = own.times > 0 ? own : other;
  return seen.times > 0 ? seen.seconds / static_cast<double>(seen.times) : 0;
}

}  // namespace lockstep
