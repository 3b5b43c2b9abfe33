// The log: rank 0 tells the story, one line per event; other ranks speak only on warnings, with their number.
// The lines are formatted here and handed to spdlog's default logger in log.cpp: files that log compile
// neither spdlog nor all of fmt.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/types.h"

namespace spdlog {
class logger;
}

namespace lockstep {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// One event, which may have several lines.
void write_log(LogLevel level, std::string_view text);

template <class... Values>
void log_info(fmt::format_string<Values...> text, Values&&... values) {
  write_log(LogLevel::kInfo, fmt::vformat(text, fmt::make_format_args(values...)));
}
template <class... Values>
void log_warning(fmt::format_string<Values...> text, Values&&... values) {
  write_log(LogLevel::kWarning, fmt::vformat(text, fmt::make_format_args(values...)));
}
template <class... Values>
void log_error(fmt::format_string<Values...> text, Values&&... values) {
  write_log(LogLevel::kError, fmt::vformat(text, fmt::make_format_args(values...)));
}

/// The stream that lines below `warn` go to.
enum class LogTarget { kStandardOutput, kStandardError };

/// Lines go to `target` (warnings and errors to standard error), rank 0 from `info` on, others from `warn`
/// on.
void start_log(int rank, LogTarget target = LogTarget::kStandardOutput);

/// From now on the same lines, with the time, go to this file too, and those of level `debug`, which go
/// nowhere else. Rank 0 only. A line that cannot be written, as on a full disk, is lost: the first is a
/// warning. Errors: DataError.
void add_log_file(const std::filesystem::path& path);

/// While it lives, the lines are those of one of several runs of this process: below `error` they go to the
/// file of add_log_file() alone (on ranks but the run's first, warnings to standard error), what stands on
/// standard error begins with the name of the run, and a log file from before gets nothing. No other thread
/// may write lines when it begins and ends.
class RunLog : NoCopy {
 public:
  RunLog(const std::string& run, int rank);
  ~RunLog();

 private:
  std::shared_ptr<spdlog::logger> before_;
};

/// Whether a line of the log file was lost.
bool log_file_lost_lines();

/// The warnings since add_log_file(), of which at most the first thousand.
std::vector<std::string> logged_warnings();

}  // namespace lockstep
