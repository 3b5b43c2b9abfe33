// The commands of `trainer` with their flags, as configs/texts/commands.txt says them, and the command line:
// the command that is meant, its own flags, and the keys of the config that other flags set. From it a config
// comes about: defaults, then the file, then the flags. No MPI here: each rank parses the command line that
// all of them got, rank 0 reads the file and hands out its text.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/config/option.h"

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
  /// Keys of the config that it uses, "data.*" for all that begin so, "-data.label" for one but that; empty:
  /// any.
  std::vector<std::string> keys;
  /// After its name: "file", "model" or "run" (one), "runs" (one or more), perhaps "topic"; "" for nothing.
  std::string operand;
  std::vector<std::string> otherwise;  ///< "output=-": what flags are that are not given
  std::string example;                 ///< a command line, with files that the project has
  std::string guide;                   ///< name of the guide to read on in

  bool has_flag(std::string_view flag) const;
  bool uses_key(std::string_view key) const;
};

std::span<const CommandEntry> command_catalog();
/// Names of all commands but training, which has none.
std::vector<std::string> command_names();

/// A flag of the program itself, which is no option of a run.
struct OwnFlag {
  std::string name;        ///< "config"
  std::string value_name;  ///< "FILE"; "" for a flag without value
  std::string kind;        ///< "file", "directory", "config" (files of TOML), "format" or "" for other texts
  std::vector<std::string> values;  ///< texts that it may be, where they are few
  std::string help;
  std::string also;     ///< words that mean it, too: ",-c"
  bool common = false;  ///< shown on the short page of the help

  /// "--config FILE"
  std::string words() const { return "--" + name + (value_name.empty() ? "" : " " + value_name); }
};

std::span<const OwnFlag> own_flags();

struct CommandLine {
  /// Its name, "" to train; or the flag that asks for a text: "--help", "--help-all" or "--version".
  std::string command;
  /// The words after its name, as many as CommandEntry::operand says, but for the model, which is the flag
  /// then; for --help the command it is about.
  std::vector<std::string> operands = {};
  /// Own flags with their values, in order; "true" for one that takes none.
  std::map<std::string, std::vector<std::string>, std::less<>> flags = {};
  std::vector<Setting> settings = {};  ///< keys of the config that flags set; the last one of a key counts
  std::set<std::string> without = {};  ///< keys that load_config leaves at their defaults, whoever sets them

  // Own flags.

  /// Whether it is given, and not as an empty text.
  bool has(std::string_view flag) const { return !text(flag).empty(); }
  std::vector<std::string> values(std::string_view flag) const;
  /// The last one counts.
  std::optional<std::string> value(std::string_view flag) const;
  /// "" if it is not given.
  std::string text(std::string_view flag) const { return value(flag).value_or(""); }
  /// Its whole number, `otherwise` if it is not given. Errors: ConfigError unless it is in `allowed`.
  Index count(std::string_view flag, Range allowed, Index otherwise) const;
  /// Its number, likewise; the end is allowed, too.
  double number(std::string_view flag, Range allowed, double otherwise) const;
};

/// Numbers of ranks, of all nodes together.
inline constexpr Range kAnyRanks{1, (Index{1} << 20) + 1};

/// `arguments`: those of main without the program's name. Values of options are checked here already, those
/// of its own flags by the command. Errors: ConfigError naming the argument.
CommandLine parse_command_line(const std::vector<std::string>& arguments, std::span<const Option> options);

/// A config file's text and its name in errors; both empty for none.
struct ConfigText {
  std::string file;
  std::string text;
};

/// Rank 0 only. Errors: ConfigError with the system's reason, and the nearest name in that directory.
ConfigText read_config_file(const std::string& file);

/// Defaults, overridden by the file, overridden by the flags.
/// Errors: ConfigError with one line "FILE:LINE: ..." for each thing that is wrong in the file.
Config load_config(const CommandLine& line, const ConfigText& file, std::span<const Option> options);

}  // namespace lockstep
