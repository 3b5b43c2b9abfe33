#include "lockstep/base/log.h"

#include <fcntl.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "lockstep/base/file.h"
#include "lockstep/base/terminal.h"

namespace lockstep {
namespace {

// Select Graphic Rendition, of ECMA-48: bold; bold and red; all as before.
constexpr std::string_view kBold = "\033[1m";
constexpr std::string_view kBoldRed = "\033[1;31m";
constexpr std::string_view kPlain = "\033[0m";

// A line that begins with a word and a colon, such as "done: ..." and "plan: ...".
std::string with_bold_head(const std::string& text) {
  const std::size_t colon = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz");
  if (colon == std::string::npos || colon == 0 || text[colon] != ':') return text;
  return fmt::format("{}{}{}{}", kBold, text.substr(0, colon + 1), kPlain, text.substr(colon + 1));
}

// The pattern of lines with a level: "warning: ...", "rank 3: error: ...".
std::string with_bold_level(std::string pattern) {
  const std::size_t level = pattern.find("%l:");
  return pattern.replace(level, 3, fmt::format("{}%l:{}", kBoldRed, kPlain));
}

// Standard output for the story (unless it is wanted for a result), standard error for warnings and errors:
// one line never appears on both. On a terminal lines are broken at spaces, before the terminal breaks them
// anywhere, and the words that lines begin with are coloured.
class SplitSink final : public spdlog::sinks::sink {
 public:
  explicit SplitSink(LogTarget target)
      : wraps_output_(target == LogTarget::kStandardOutput && output_is_live()) {
    colours_output_ = target == LogTarget::kStandardOutput ? output_has_colours() : errors_have_colours();
    if (target == LogTarget::kStandardError) {
      output_ = std::make_unique<spdlog::sinks::stderr_sink_mt>();
    } else {
      output_ = std::make_unique<spdlog::sinks::stdout_sink_mt>();
    }
  }
  void log(const spdlog::details::log_msg& message) override {
    const bool is_error = message.level >= spdlog::level::warn;
    spdlog::sinks::sink& chosen = is_error ? static_cast<spdlog::sinks::sink&>(error_) : *output_;
    std::string text(message.payload.data(), message.payload.size());
    if (is_error ? wraps_errors_ : wraps_output_) {
      const auto level = is_error ? spdlog::level::to_string_view(message.level).size() + 2 : 0;
      text = wrap_lines(text, terminal_columns(), static_cast<int>(level));
    }
    if (!is_error && colours_output_) text = with_bold_head(text);
    spdlog::details::log_msg shown = message;
    shown.payload = text;
    print_above_live_row([&] { chosen.log(shown); });
  }
  void flush() override {
    output_->flush();
    error_.flush();
  }
  void set_pattern(const std::string& pattern) override {
    output_->set_pattern("%v");
    error_.set_pattern(errors_have_colours() ? with_bold_level(pattern) : pattern);
  }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    error_.set_formatter(std::move(formatter));
  }

 private:
  std::unique_ptr<spdlog::sinks::sink> output_;
  bool wraps_output_;
  bool colours_output_ = false;
  const bool wraps_errors_ = output_is_live() && ::isatty(STDERR_FILENO) != 0;
  spdlog::sinks::stderr_sink_mt error_;
};

std::atomic<bool> file_lost_lines = false;

std::mutex warnings_mutex;
std::vector<std::string> warnings;

void note_warning(std::string text) {
  constexpr std::size_t kMaxWarnings = 1000;
  const std::lock_guard lock(warnings_mutex);
  if (warnings.size() < kMaxWarnings) warnings.push_back(std::move(text));
}

// Whole lines, as they happen. Unlike spdlog's own file sink this one keeps no line back that could not be
// written, to be written again with the next.
class LogFileSink final : public spdlog::sinks::base_sink<std::mutex>, NoCopy {
 public:
  explicit LogFileSink(std::filesystem::path path)
      : path_(std::move(path)), descriptor_(open_to_append(path_)), bytes_(file_bytes(path_)) {}
  ~LogFileSink() override { ::close(descriptor_); }

 private:
  // Exceptions that it throws go to the logger's error handler.
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (message.level == spdlog::level::warn) note_warning({message.payload.data(), message.payload.size()});
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (append_whole(descriptor_, bytes_, {line.data(), line.size()}) == Appended::kWhole) {
      bytes_ += static_cast<std::int64_t>(line.size());
      return;
    }
    const std::string reason = std::strerror(errno);
    if (file_lost_lines.exchange(true)) return;
    throw spdlog::spdlog_ex(
        fmt::format("cannot write '{}': {}; the run goes on without these lines", path_.string(), reason));
  }
  void flush_() override {}

  std::filesystem::path path_;
  int descriptor_;
  std::int64_t bytes_;
};

// `pattern`: of what goes to standard error; `least`: the level from which on lines go to the sink.
std::shared_ptr<spdlog::logger> make_logger(LogTarget target, const std::string& pattern,
                                            spdlog::level::level_enum least) {
  auto sink = std::make_shared<SplitSink>(target);
  sink->set_pattern(pattern);
  sink->set_level(least);
  auto logger = std::make_shared<spdlog::logger>("lockstep", sink);
  logger->set_level(spdlog::level::debug);
  logger->flush_on(spdlog::level::info);
  logger->set_error_handler([](const std::string& problem) { log_warning("{}", problem); });
  return logger;
}

}  // namespace

void write_log(LogLevel level, std::string_view text) {
  static constexpr std::array kLevels{spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                      spdlog::level::err};
  spdlog::default_logger_raw()->log(kLevels[static_cast<std::size_t>(level)], printable_lines(text));
}

void start_log(int rank, LogTarget target) {
  spdlog::set_default_logger(make_logger(target, rank == 0 ? "%l: %v" : fmt::format("rank {}: %l: %v", rank),
                                         rank == 0 ? spdlog::level::info : spdlog::level::warn));
}

void add_log_file(const std::filesystem::path& path) {
  auto sink = std::make_shared<LogFileSink>(path);
  sink->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  {
    const std::lock_guard lock(warnings_mutex);
    warnings.clear();
  }
  file_lost_lines = false;
  spdlog::default_logger()->sinks().push_back(std::move(sink));
}

RunLog::RunLog(const std::string& name, int rank) : before_(spdlog::default_logger()) {
  std::string run = printable_lines(name);
  for (std::size_t at = 0; (at = run.find('%', at)) != std::string::npos; at += 2) run.insert(at, 1, '%');
  const std::string pattern = rank == 0 ? run + ": %l: %v" : fmt::format("{}: rank {}: %l: %v", run, rank);
  spdlog::set_default_logger(
      make_logger(LogTarget::kStandardError, pattern, rank == 0 ? spdlog::level::err : spdlog::level::warn));
}

RunLog::~RunLog() {
  spdlog::set_default_logger(before_);
}

bool log_file_lost_lines() {
  return file_lost_lines;
}

std::vector<std::string> logged_warnings() {
  const std::lock_guard lock(warnings_mutex);
  return warnings;
}

}  // namespace lockstep
