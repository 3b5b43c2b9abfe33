#include "lockstep/base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

// Standard output for the story (unless it is wanted for a result), standard error for warnings and errors:
// one line never appears on both.
class SplitSink final : public spdlog::sinks::sink {
 public:
  explicit SplitSink(std::unique_ptr<spdlog::sinks::sink> output) : output_(std::move(output)) {}
  void log(const spdlog::details::log_msg& message) override {
    spdlog::sinks::sink& chosen =
        message.level >= spdlog::level::warn ? static_cast<spdlog::sinks::sink&>(error_) : *output_;
    chosen.log(message);
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
  spdlog::sinks::stderr_sink_mt error_;
};

}  // namespace

void start_log(int rank, LogTarget target) {
  std::unique_ptr<spdlog::sinks::sink> output;
  if (target == LogTarget::kStandardError) {
    output = std::make_unique<spdlog::sinks::stderr_sink_mt>();
  } else {
    output = std::make_unique<spdlog::sinks::stdout_sink_mt>();
  }
  auto sink = std::make_shared<SplitSink>(std::move(output));
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
