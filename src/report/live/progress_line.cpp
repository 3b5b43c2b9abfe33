#include "lockstep/report/live/run_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/log.h"
#include "lockstep/base/process.h"
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
constexpr std::size_t kSampleBytes = 160;

}  // namespace

std::string bar(double share, int width) {
  const int filled = std::clamp(static_cast<int>(share * width), 0, width);
  std::string text(static_cast<std::size_t>(width), ' ');
  std::fill_n(text.begin(), filled, '=');
  if (filled < width) at(text, filled) = '>';
  return "[" + text + "]";
}

ProgressLine::ProgressLine(ProgressStyle style, const Progress& whole, const ShownProgress& shown,
                           Measure measure)
    : live_(style == ProgressStyle::kLive ||
            (style == ProgressStyle::kAuto && output_is_live() && rows_can_be_redrawn())),
      plain_(!live_ && style != ProgressStyle::kNone),
      every_line_(shown.every_line && style != ProgressStyle::kNone),
      tokens_(shown.tokens),
      whole_(whole),
      split_(shown.validation ? Split::kValidation : Split::kTest),
      keeps_best_(shown.keeps_best),
      best_(std::move(measure)),
      line_of_evaluation_(-kMaxLineSeconds) {}

void ProgressLine::go_on(const RunRecord& earlier) {
  const auto found = earlier.deciding.find(to_string(split_));
  if (found == earlier.deciding.end() || found->second.measure != best_.measure().name()) return;
  best_.state()[0] = found->second.value;
  best_.state()[1] = static_cast<double>(found->second.step);
}

void ProgressLine::on_step(const Progress& progress, double loss) {
  if (std::isfinite(loss)) {
    smooth_loss_ = has_loss_ ? kLossMemory * smooth_loss_ + (1 - kLossMemory) * loss : loss;
    has_loss_ = true;
  }
  if (!live_ && !plain_) return;
  if (!first_) {
    first_ = progress;
    first_seconds_ = since_start_.seconds();
  }
  if (plain_ && since_line_.seconds() >= kMaxSilentSeconds) print_step(progress);
  if (!live_ || since_redraw_.seconds() < kRedrawSeconds) return;
  since_redraw_.lap();
  redraw(progress);
}

void ProgressLine::redraw(const Progress& progress) {
  std::string numbers = fmt::format(" epoch {:.2f}/{:.2f}  loss {:.5g}{}", progress.epochs, whole_.epochs,
                                    smooth_loss_, pace(progress, true));
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

// By the time so far, of which evaluations are a part, but not of the rate.
std::string ProgressLine::pace(const Progress& progress, bool rate) const {
  const double seconds = since_start_.seconds() - first_seconds_;
  const double trained = seconds - evaluating_;
  if (!first_ || trained < kFirstEstimateSeconds || progress.samples <= first_->samples) return "";
  const auto done = static_cast<double>(progress.samples - first_->samples);
  const auto left = static_cast<double>(whole_.samples - progress.samples);
  return (rate ? "  " + sample_rate(done / trained, tokens_) : "") +
         fmt::format("  {} left", human_seconds(seconds * left / done));
}

void ProgressLine::print_step(const Progress& progress) {
  since_line_.lap();
  log_info("step {}/{}  epoch {:.2f}  loss {:.5g}{}", with_commas(progress.steps), with_commas(whole_.steps),
           progress.epochs, smooth_loss_, pace(progress, false));
}

void ProgressLine::on_train_metrics(const TrainMetrics& metrics) {
  const bool last = metrics.progress.steps == whole_.steps;
  if (last) erase_live_row();
  const double pause = std::clamp(since_start_.seconds() / 10, kMinLineSeconds, kMaxLineSeconds);
  if (!last && !every_line_ && since_line_.seconds() < pause) return;
  since_line_.lap();
  const std::string accuracy = metrics.accuracy ? fmt::format("  accuracy {:.5g}", *metrics.accuracy) : "";
  // The log file has these lines in any case.
  write_log(
      plain_ || every_line_ ? LogLevel::kInfo : LogLevel::kDebug,
      fmt::format("step {}/{}  epoch {:.2f}  loss {:.5g}{}  lr {:.5g}  {}{}",
                  with_commas(metrics.progress.steps), with_commas(whole_.steps), metrics.progress.epochs,
                  metrics.loss, accuracy, metrics.lr, sample_rate(metrics.samples_per_second, tokens_),
                  last ? "" : pace(metrics.progress, false)));
}

void ProgressLine::on_evaluation(const EvalMetrics& metrics) {
  if (first_) evaluating_ += metrics.seconds;
  if (metrics.split == split_) {
    best_.improves(metrics);
    latest_ = best_.measure().of(metrics);
  }
  const std::string accuracy = metrics.accuracy ? fmt::format("  accuracy {:.5g}", *metrics.accuracy) : "";
  const std::string top_k =
      metrics.top_k_accuracy ? fmt::format("  top-{} {:.5g}", metrics.top_k, *metrics.top_k_accuracy) : "";
  std::string others;
  for (const MetricValue& other : metrics.others) others += "  " + to_string(other, metrics.positive());
  // Short epochs would fill a terminal, or the file of a batch job.
  const double pause = live_ ? 1 : environment_number("SLURM_JOB_ID") ? kMaxLineSeconds : 0;
  const bool shown = every_line_ || metrics.progress.steps == whole_.steps ||
                     since_start_.seconds() >= line_of_evaluation_ + pause;
  if (shown) line_of_evaluation_ = since_start_.seconds();
  write_log(shown ? LogLevel::kInfo : LogLevel::kDebug,
            fmt::format("epoch {:.2f}  {} {}{}{}{}  ({}, {})", metrics.progress.epochs,
                        to_string(metrics.split), describe_loss(metrics), accuracy, top_k, others,
                        metrics.counted(), human_seconds(metrics.seconds)));
  if (metrics.crossed > 0)
    log_info("{} set: {}", to_string(metrics.split),
             describe_crossed(metrics.crossed, metrics.positions > 0));
  if (metrics.sample.empty()) return;
  std::string line = metrics.sample;
  std::ranges::replace(line, '\n', ' ');
  log_info("sample: {}", excerpt(line, kSampleBytes));
}

}  // namespace lockstep
