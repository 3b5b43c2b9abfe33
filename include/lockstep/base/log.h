// The log: rank 0 tells the story, one line per event; other ranks speak only on warnings, with their number.
// Everyone writes through spdlog's default logger; this file only sets it up.
#pragma once

#include <filesystem>

namespace lockstep {

/// The stream that lines below `warn` go to.
enum class LogTarget { kStandardOutput, kStandardError };

/// Lines go to `target` (warnings and errors to standard error), rank 0 from `info` on, others from `warn`
/// on.
void start_log(int rank, LogTarget target = LogTarget::kStandardOutput);

/// From now on the same lines, with the time, go to this file too, and those of level `debug`, which go
/// nowhere else. Rank 0 only. A line that cannot be written, as on a full disk, is lost: the first is a
/// warning. Errors: DataError.
void add_log_file(const std::filesystem::path& path);

/// Whether a line of the log file was lost.
bool log_file_lost_lines();

}  // namespace lockstep
