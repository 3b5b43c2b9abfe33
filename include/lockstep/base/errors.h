// The errors a user can see. Each names what was found, what was expected and what to do next; each carries
// the exit code that the guide on troubleshooting lists. Anything else that escapes is a bug of ours and
// exits with kExitInternal.
#pragma once

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

/// The config or the command line is wrong: the user can fix it there.
class ConfigError : public Error {
 public:
  explicit ConfigError(const std::string& message) : Error(message, kExitConfig) {}
};

/// A file is missing, damaged or of the wrong kind: file, record, expected, found.
class DataError : public Error {
 public:
  explicit DataError(const std::string& message) : Error(message, kExitData) {}
};

/// An MPI call failed, or the ranks do not agree: call, class, text.
class CommError : public Error {
 public:
  explicit CommError(const std::string& message) : Error(message, kExitComm) {}
};

}  // namespace lockstep
