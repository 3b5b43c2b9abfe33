// The commands of `trainer` and their own flags, as data: the command line, the help, the man page and the
// completions are made of them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/config/command_line.h"

namespace lockstep {

/// A way to call a command, and what it then does.
struct Usage {
  std::string words;  ///< "mpirun -np N trainer --config FILE"
  std::string help;
};

/// Operands that may stand after the name of a command.
enum class Operand { kNone, kData, kRuns, kTopic };

struct CommandEntry {
  CommandLine::Command command;
  std::optional<std::string> name;      ///< none trains
  std::vector<Usage> usages;            ///< never empty
  std::vector<std::string_view> needs;  ///< flags that it cannot do without
  std::vector<std::string_view> reads;  ///< flags that it may have
  std::string example;                  ///< a command line, with files that the project has
  std::string guide;                    ///< name of the guide to read on in
  /// After its name: a data file, one or more directories, or perhaps a topic of the help.
  Operand operand = Operand::kNone;
  /// The names that its --format takes; null if it has no such flag.
  std::vector<std::string> (*formats)(const KnownNames& names) = nullptr;

  bool has_flag(std::string_view flag) const;
};

/// Names of the formats that export-metrics writes.
std::vector<std::string> metrics_formats();
/// Names of the files that predict writes.
std::vector<std::string> prediction_formats();

std::span<const CommandEntry> command_catalog();
/// Names of all commands but training, which has none.
std::vector<std::string> command_names();

/// The kind of value that a flag takes, for completion.
enum class FlagValue { kNone, kConfigFile, kFile, kDirectory, kFormat, kText };

/// A flag of the program itself, which is no option of a run.
struct OwnFlag {
  std::string_view name;
  FlagValue value;
  std::string_view value_name;  ///< "FILE"; empty for kNone
  std::string_view help;
  std::string_view meant;  ///< advice if it is given to a command that does not take it
  bool common = false;     ///< shown on the short page of the help
};

std::span<const OwnFlag> own_flags();

/// "--config FILE"
std::string flag_words(const OwnFlag& flag);

struct ExitCode {
  int code;
  std::string_view word;  ///< "config"
  std::string_view help;
};

std::span<const ExitCode> exit_codes();

}  // namespace lockstep
