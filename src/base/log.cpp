#include "lockstep/base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>

#include "lockstep/base/errors.h"
#include "lockstep/base/terminal.h"

namespace lockstep {
namespace {

// Standard output for the story (unless it is wanted for a result), standard error for warnings and errors:
// one line never appears on both. On a terminal lines are broken at spaces, before the terminal breaks them
// anywhere.
class SplitSink final : public spdlog::sinks::sink {
 public:
  explicit SplitSink(LogTarget target)
      : wraps_output_(target == LogTarget::kStandardOutput && output_is_live()) {
    if (target == LogTarget::kStandardError) {
      output_ = std::make_unique<spdlog::sinks::stderr_sink_mt>();
    } else {
      output_ = std::make_unique<spdlog::sinks::stdout_sink_mt>();
    }
  }
  void log(const spdlog::details::log_msg& message) override {
    const bool is_error = message.level >= spdlog::level::warn;
    spdlog::sinks::sink& chosen = is_error ? static_cast<spdlog::sinks::sink&>(error_) : *output_;
    if (!(is_error ? wraps_errors_ : wraps_output_)) {
      print_above_live_row([&] { chosen.log(message); });
      return;
    }
    const auto level = is_error ? spdlog::level::to_string_view(message.level).size() + 2 : 0;
    const std::string wrapped = wrap_lines({message.payload.data(), message.payload.size()},
                                           terminal_columns(), static_cast<int>(level));
    spdlog::details::log_msg broken = message;
    broken.payload = wrapped;
    print_above_live_row([&] { chosen.log(broken); });
  }
  void flush() override {
    output_->flush();
    error_.flush();
  }
  void set_pattern(const std::string& pattern) override {
    output_->set_pattern("%v");
    error_.set_pattern(pattern);
  }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    error_.set_formatter(std::move(formatter));
  }

 private:
  std::unique_ptr<spdlog::sinks::sink> output_;
  bool wraps_output_;
  const bool wraps_errors_ = output_is_live() && ::isatty(STDERR_FILENO) != 0;
  spdlog::sinks::stderr_sink_mt error_;
};

}  // namespace

void start_log(int rank, LogTarget target) {
  auto sink = std::make_shared<SplitSink>(target);
  sink->set_pattern(rank == 0 ? "%l: %v" : fmt::format("rank {}: %l: %v", rank));
  auto logger = std::make_shared<spdlog::logger>("lockstep", sink);
  sink->set_level(rank == 0 ? spdlog::level::info : spdlog::level::warn);
  logger->set_level(spdlog::level::debug);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
}

void add_log_file(const std::filesystem::path& path) {
  spdlog::sink_ptr sink;
  try {
    sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string());
  } catch (const spdlog::spdlog_ex& error) {
    throw DataError(error.what());
  }
  sink->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  spdlog::default_logger()->sinks().push_back(std::move(sink));
}

}  // namespace lockstep
