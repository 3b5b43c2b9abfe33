// The commands of `trainer` and their own flags, as configs/texts/commands.txt says them: the command line,
// the help, the man page and the completions are made of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A way to call a command, and what it then does.
struct Usage {
  std::string words;  ///< "mpirun -np N trainer --config FILE"
  std::string help;
};

struct CommandEntry {
  std::string name;                ///< "" trains
  std::vector<Usage> usages;       ///< never empty
  std::vector<std::string> needs;  ///< flags that it cannot do without
  std::vector<std::string> takes;  ///< flags that it may have
  std::string operand;  ///< after its name: "file", "runs" (one or more), perhaps "topic"; "" for nothing
  std::string example;  ///< a command line, with files that the project has
  std::string guide;    ///< name of the guide to read on in

  bool has_flag(std::string_view flag) const;
};

std::span<const CommandEntry> command_catalog();
/// Names of all commands but training, which has none.
std::vector<std::string> command_names();

/// Names of the formats that export-metrics writes.
std::vector<std::string> metrics_formats();

/// A flag of the program itself, which is no option of a run.
struct OwnFlag {
  std::string name;        ///< "config"
  std::string value_name;  ///< "FILE"; "" for a flag without value
  std::string kind;        ///< "file", "directory", "config" (files of TOML), "format" or "" for other texts
  std::vector<std::string> values;  ///< texts that it may be, where they are few
  std::string help;
  std::string elsewhere;  ///< advice if it is given to a command that does not take it
  bool common = false;    ///< shown on the short page of the help

  /// "--config FILE"
  std::string words() const;
};

std::span<const OwnFlag> own_flags();

struct ExitCode {
  int code;
  std::string_view word;  ///< "config"
  std::string_view help;
};

std::span<const ExitCode> exit_codes();

}  // namespace lockstep
