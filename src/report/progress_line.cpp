#include "lockstep/report/progress_line.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr double kRedrawSeconds = 0.2;
constexpr double kPlainLineSeconds = 5;
constexpr double kLossMemory = 0.95;
constexpr int kBarWidth = 24;
constexpr int kLeastBarWidth = 6;

int terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col : 80;
}

}  // namespace

bool output_is_live() {
  if (::isatty(STDOUT_FILENO) == 0) return false;
  std::error_code error;
  const std::string parent =
      std::filesystem::read_symlink(fmt::format("/proc/{}/fd/1", ::getppid()), error).string();
  return parent.starts_with("/dev/pts/") || parent.starts_with("/dev/tty");
}

std::string bar(double share, int width) {
  const int filled = std::clamp(static_cast<int>(share * width), 0, width);
  std::string text(static_cast<std::size_t>(width), ' ');
  std::fill_n(text.begin(), filled, '=');
  if (filled < width) text[static_cast<std::size_t>(filled)] = '>';
  return "[" + text + "]";
}

ProgressLine::ProgressLine(ProgressStyle style, const Progress& whole)
    : live_(style == ProgressStyle::kLive || (style == ProgressStyle::kAuto && output_is_live())),
      plain_(!live_ && style != ProgressStyle::kNone),
      whole_(whole) {}

void ProgressLine::on_step(const Progress& progress, double loss) {
  if (!has_loss_) samples_before_ = progress.samples;
  smooth_loss_ = has_loss_ ? kLossMemory * smooth_loss_ + (1 - kLossMemory) * loss : loss;
  has_loss_ = true;
  if (!live_ || since_redraw_.seconds() < kRedrawSeconds) return;
  since_redraw_.lap();
  redraw(progress);
}

void ProgressLine::redraw(const Progress& progress) {
  const double share = static_cast<double>(progress.samples) / static_cast<double>(whole_.samples);
  const double seconds = since_start_.seconds();
  const double rate = static_cast<double>(progress.samples - samples_before_) / seconds;
  const double left = static_cast<double>(whole_.samples - progress.samples) / std::max(rate, 1e-9);
  const std::string numbers =
      fmt::format(" epoch {:.2f}/{:.2f}  loss {:.4f}  {} samples/s  {} left", progress.epochs, whole_.epochs,
                  smooth_loss_, with_commas(static_cast<Index>(rate)), human_seconds(left));
  // One line only: a longer one would wrap, and the next redraw would leave its first part behind.
  const int room = terminal_columns() - 1 - static_cast<int>(numbers.size());
  const std::string drawn = room >= kLeastBarWidth + 2 ? bar(share, std::min(kBarWidth, room - 2)) : "";
  fmt::print("\r\033[K{}", (drawn + numbers).substr(0, static_cast<std::size_t>(terminal_columns() - 1)));
  std::fflush(stdout);
  drawn_ = true;
}

void ProgressLine::clear() {
  if (!drawn_) return;
  fmt::print("\r\033[K");
  std::fflush(stdout);
  drawn_ = false;
}

void ProgressLine::on_train_metrics(const TrainMetrics& metrics) {
  const bool last = metrics.progress.steps == whole_.steps;
  if (last) clear();
  if (!last && since_line_.seconds() < kPlainLineSeconds) return;
  since_line_.lap();
  const std::string accuracy = metrics.accuracy ? fmt::format("  accuracy {:.4f}", *metrics.accuracy) : "";
  // The log file has these lines in any case.
  spdlog::log(plain_ ? spdlog::level::info : spdlog::level::debug,
              "step {}/{}  epoch {:.2f}  loss {:.4f}{}  lr {:.4g}  {} samples/s",
              with_commas(metrics.progress.steps), with_commas(whole_.steps), metrics.progress.epochs,
              metrics.loss, accuracy, metrics.lr,
              with_commas(static_cast<Index>(metrics.samples_per_second)));
}

void ProgressLine::on_evaluation(const EvalMetrics& metrics) {
  clear();
  const std::string accuracy = metrics.accuracy ? fmt::format("  accuracy {:.4f}", *metrics.accuracy) : "";
  const std::string top_k =
      metrics.top_k_accuracy ? fmt::format("  top-{} {:.4f}", metrics.top_k, *metrics.top_k_accuracy) : "";
  std::string others;
  for (const MetricValue& other : metrics.others) others += "  " + to_string(other);
  spdlog::info("epoch {:.2f}  {} loss {:.4f}{}{}{}  ({} samples, {})", metrics.progress.epochs,
               to_string(metrics.split), metrics.loss, accuracy, top_k, others, with_commas(metrics.samples),
               human_seconds(metrics.seconds));
}

}  // namespace lockstep
