#include "lockstep/config/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <sstream>

#include "front_end.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/config/commands.h"
#include "sweep_flags.h"

namespace lockstep {
namespace {

using Command = CommandLine::Command;

void add_own_flags(FrontEnd& front) {
  for (const OwnFlag& flag : own_flags()) front.add_own_flag(flag.name, flag.value != FlagValue::kNone);
}

const CommandEntry& find_command(const std::optional<std::string>& wanted) {
  for (const CommandEntry& words : command_catalog()) {
    if (words.name == wanted) return words;
  }
  const std::string name = wanted.value_or("");
  if (name.ends_with(".toml")) {
    throw ConfigError(
        fmt::format("unexpected {}; did you mean --config {}?", in_quotes(name), excerpt(name)));
  }
  if (name.find('=') != std::string::npos && !name.starts_with('-')) {
    throw ConfigError(fmt::format("unexpected {}; did you mean --{}?", in_quotes(name), excerpt(name)));
  }
  const std::vector<std::string> known = command_names();
  throw ConfigError(fmt::format("unknown command {}{} (known: {}; to train, give no command)",
                                in_quotes(name), suggestion(name, known), fmt::join(known, ", ")));
}

// "--np belongs to 'trainer plan'; mpirun -np sets the number of ranks of a run"
std::string describe_misplaced(const OwnFlag& flag) {
  std::vector<std::string> owners;
  for (const CommandEntry& words : command_catalog()) {
    if (words.has_flag(flag.name)) owners.push_back(fmt::format("'trainer {}'", words.name.value_or("")));
  }
  return fmt::format("--{} belongs to {}; {}", flag.name, fmt::join(owners, ", "), flag.meant);
}

void check_operands(const CommandEntry& words, const std::vector<std::string>& operands) {
  const bool wanted = words.operand == Operand::kData || words.operand == Operand::kRuns;
  const std::size_t most = words.operand == Operand::kNone ? 0 : 1;
  if (operands.size() > most && words.operand != Operand::kRuns) {
    throw ConfigError(
        fmt::format("unexpected argument {}; 'trainer --help' shows the usage", in_quotes(operands[most])));
  }
  if (wanted && operands.empty()) {
    throw ConfigError(fmt::format("the {} is missing; usage: {}",
                                  words.operand == Operand::kRuns ? "directory of a run" : "file",
                                  words.usages.front().words));
  }
}

void check_command(const CommandEntry& words, const FrontEnd& front) {
  check_operands(words, front.operands());
  for (const OwnFlag& flag : own_flags()) {
    if (front.value(flag.name) && !words.has_flag(flag.name)) throw ConfigError(describe_misplaced(flag));
  }
  for (const std::string_view flag : words.needs) {
    if (!front.value(flag).value_or("").empty()) continue;
    throw ConfigError(fmt::format("--{} is missing; usage: {}{}", flag, words.usages.front().words,
                                  flag == "config"
                                      ? "\nconfigs/ has examples, and 'trainer --help' shows the options"
                                  : flag == "model" ? ", where RUN is the directory of a run"
                                                    : ""));
  }
}

// After --version, --json alone is enough: the text goes to standard output.
std::vector<std::string> complete_json_of_version(std::vector<std::string> arguments) {
  if (std::ranges::find(arguments, "--version") == arguments.end()) return arguments;
  const auto json = std::ranges::find(arguments, "--json");
  if (json == arguments.end()) return arguments;
  const bool has_value = json + 1 != arguments.end() && !(json + 1)->starts_with("--");
  if (!has_value) arguments.insert(json + 1, "-");
  return arguments;
}

std::vector<Index> parse_world_sizes(const std::string& text) {
  std::vector<Index> sizes;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    const auto size = ValueType<Index>::parse(item);
    sizes.push_back(size.value_or(0));
  }
  constexpr Index kMaxRanks = 1 << 20;
  const bool fits =
      std::all_of(sizes.begin(), sizes.end(), [](Index size) { return size >= 1 && size <= kMaxRanks; });
  if (sizes.empty() || !fits || text.ends_with(',')) {
    throw ConfigError(fmt::format("--np: expected numbers of ranks from 1 to {}, such as 1,2,4,8, found {}",
                                  kMaxRanks, in_quotes(text)));
  }
  return sizes;
}

// The flags that one question about columns has, and the other has not.
void parse_importance(const FrontEnd& front, CommandLine& line) {
  line.metric = front.value("metric").value_or("");
  line.partial = front.value("partial").value_or("");
  line.repeats = parse_count(front, "repeats", {1, 1001}, line.repeats);
  line.points = parse_count(front, "points", {2, 10'001}, line.points);
  const bool partial = front.value("partial").has_value();
  for (const char* flag : {"metric", "repeats", "points"}) {
    const bool of_partial = std::string_view(flag) == "points";
    if (!front.value(flag) || of_partial == partial) continue;
    throw ConfigError(of_partial ? "--points belongs to --partial COLUMN: name the column, or leave it out"
                                 : fmt::format("--{} has no effect with --partial: leave out one", flag));
  }
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments, const KnownNames& names) {
  Config defaults;
  const std::vector<Option> options = declare_options(defaults, names);
  FrontEnd front(options);
  add_own_flags(front);
  front.parse(complete_json_of_version(arguments));
  CommandLine line;
  line.arguments = arguments;
  const std::optional<std::string> command = front.command();
  if (const std::optional<Command> text = front.wanted_text()) {
    line.command = *text;
    line.json = front.value("json").value_or("");
    if (command && std::ranges::count(command_names(), *command) > 0) line.topic = *command;
    return line;
  }
  front.check_flags();
  const CommandEntry& words = find_command(command);
  check_command(words, front);
  line.command = words.command;
  if (words.operand == Operand::kData) line.data = front.operands().front();
  if (words.operand == Operand::kRuns) line.runs = front.operands();
  if (words.operand == Operand::kTopic && !front.operands().empty()) line.topic = front.operands().front();
  line.config_file = front.value("config").value_or("");
  line.model = front.value("model").value_or("");
  line.input = front.value("input").value_or("");
  line.output = front.value("output").value_or("");
  line.json = front.value("json").value_or("");
  line.task = front.value("task").value_or("");
  line.sort = front.value("sort").value_or("");
  line.csv = front.value("csv").value_or("");
  line.overwrite = front.value("overwrite").has_value();
  line.once = front.value("once").has_value();
  line.allow_nan = front.value("allow-nan").has_value();
  line.format = front.value("format").value_or("");
  if (front.value("np")) line.plan_np = parse_world_sizes(*front.value("np"));
  line.planned = parse_planned_nodes(front, line.config_file);
  line.sweep = parse_sweep(front, line.command);
  line.predict = parse_predict(front);
  if (line.command == Command::kImportance) parse_importance(front, line);
  return line;
}

ConfigText read_config_file(const std::string& file) {
  constexpr std::uintmax_t kMaxBytes = 16 << 20;
  std::error_code ignored;  // reading the file gives the reason
  const std::uintmax_t bytes = std::filesystem::file_size(file, ignored);
  if (!ignored && bytes > kMaxBytes) {
    throw ConfigError(fmt::format("--config: '{}' has {}, expected at most {} in a config", file,
                                  human_bytes(bytes), human_bytes(kMaxBytes)));
  }
  try {
    return {file, read_file(file)};
  } catch (const DataError& error) {
    if (std::filesystem::exists(file, ignored)) throw ConfigError(fmt::format("--config: {}", error.what()));
    const std::string nearest = nearest_path(file, std::filesystem::file_type::regular);
    const std::string hint =
        nearest.empty() ? "; configs/ has examples" : fmt::format("; did you mean '{}'?", nearest);
    throw ConfigError(fmt::format("--config: {}{}", error.what(), hint));
  }
}

LoadedConfig load_config(const CommandLine& line, const ConfigText& file, const KnownNames& names) {
  LoadedConfig loaded;
  const std::vector<Option> options = declare_options(loaded.config, names);
  FrontEnd front(options);
  add_own_flags(front);
  front.parse(line.arguments);
  front.check_flags();
  front.read_file(file);
  loaded.given = front.assign_all(line.without);
  loaded.flagged = front.flagged();
  return loaded;
}

}  // namespace lockstep
