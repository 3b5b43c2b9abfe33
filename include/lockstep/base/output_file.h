// A result under a name that a user gives. Under the name of a file, or of nothing yet, the whole result
// appears at its end, or nothing does; a symbolic link is followed and stays. A device, a FIFO and standard
// output ("-" or "/dev/stdout") are streams: they are never replaced, and get what is written at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"

namespace lockstep {

/// Whether the name stands for standard output.
bool is_standard_output(const std::string& name);

/// Whether the name stands for standard output, a device or a FIFO.
bool is_stream(const std::string& name);

/// "standard output", or the name.
std::string describe_output(const std::string& name);

struct OutputRequest {
  std::string flag;  ///< the flag that gave the name, for errors: "--output"
  std::string name;
  std::vector<std::string> inputs = {};  ///< files that are read: none of them may be written
  bool overwrite = false;                ///< an existing file may be replaced
  bool binary = false;                   ///< the result is no text
};

/// To be called before the work whose result is to be written. Errors: ConfigError if the name is that of a
/// directory, a socket or an input, of a file or block device that may not be overwritten, or if a terminal
/// would get what is no text; DataError if no file can be made there.
void check_output(const OutputRequest& request);

class OutputFile : NoCopy {
 public:
  /// A FIFO blocks until somebody reads from it. Errors, of every call: DataError with the name and the
  /// system's reason.
  explicit OutputFile(const std::string& name);
  /// A file that was not committed is removed.
  ~OutputFile();

  void write(std::string_view bytes);
  /// Nothing may be written afterwards.
  void commit();
  /// Written so far.
  std::int64_t bytes() const { return bytes_; }

 private:
  std::string name_;
  std::optional<AtomicFile> file_;  // none: a stream
  int stream_ = -1;
  std::int64_t bytes_ = 0;
};

/// The whole result at once. Errors: DataError.
void write_output(const std::string& name, std::string_view text);

}  // namespace lockstep
