// The errors a user can see. Each names what was found, what was expected and what to do next; each carries
// the exit code that the guide on troubleshooting lists. Anything else that escapes is a bug of ours and
// exits with kExitInternal.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>

namespace lockstep {

inline constexpr int kExitInternal = 1;
inline constexpr int kExitConfig = 2;
inline constexpr int kExitData = 3;
inline constexpr int kExitComm = 4;
inline constexpr int kExitTraining = 5;
/// No error: the run was asked to stop, and resumes where it stopped when it is started again.
inline constexpr int kExitStopped = 6;
inline constexpr int kExitStalled = 7;

/// An error with a message for the user and the exit code of the process.
class Error : public std::runtime_error {
 public:
  Error(const std::string& message, int exit_code) : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

/// The message is a text, or a format and its values, as that of a line of the log.
template <int kExitCode>
class ErrorOfCode : public Error {
 public:
  explicit ErrorOfCode(const std::string& message) : Error(message, kExitCode) {}
  template <class Value, class... Values>
  ErrorOfCode(fmt::format_string<Value, Values...> text, Value&& value, Values&&... values)
      : Error(fmt::vformat(text, fmt::make_format_args(value, values...)), kExitCode) {}
};

/// The config or the command line is wrong: the user can fix it there.
class ConfigError : public ErrorOfCode<kExitConfig> {
  using ErrorOfCode::ErrorOfCode;
};

/// A file is missing, damaged or of the wrong kind: file, record, expected, found.
class DataError : public ErrorOfCode<kExitData> {
  using ErrorOfCode::ErrorOfCode;
};

/// An MPI call failed, or the ranks do not agree: call, class, text.
class CommError : public ErrorOfCode<kExitComm> {
  using ErrorOfCode::ErrorOfCode;
};

/// Throws that failure where something is `wrong`. The values are looked at in any case.
template <class Failure = ConfigError, class... Values>
void error_if(bool wrong, fmt::format_string<Values...> text, Values&&... values) {
  if (wrong) throw Failure(fmt::vformat(text, fmt::make_format_args(values...)));
}

}  // namespace lockstep
