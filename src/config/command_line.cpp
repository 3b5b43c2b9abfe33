#include "lockstep/config/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "command_flags.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/config/commands.h"

namespace lockstep {
namespace {

const CommandEntry& find_command(const std::optional<std::string>& wanted) {
  const std::string name = wanted.value_or("");
  for (const CommandEntry& words : command_catalog()) {
    if (words.name == name && wanted != "") return words;
  }
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
    if (words.has_flag(flag.name)) owners.push_back(fmt::format("'trainer {}'", words.name));
  }
  return fmt::format("--{} belongs to {}; {}", flag.name, fmt::join(owners, ", "), flag.elsewhere);
}

void check_operands(const CommandEntry& words, const std::vector<std::string>& operands) {
  const bool runs = words.operand == "runs";
  const std::size_t most = words.operand.empty() ? 0 : 1;
  if (operands.size() > most && !runs) {
    throw ConfigError(
        fmt::format("unexpected argument {}; 'trainer --help' shows the usage", in_quotes(operands[most])));
  }
  if ((runs || words.operand == "file") && operands.empty()) {
    throw ConfigError(fmt::format("the {} is missing; usage: {}", runs ? "directory of a run" : "file",
                                  words.usages.front().words));
  }
}

void check_command(const CommandEntry& words, const FrontEnd& front) {
  check_operands(words, front.operands());
  for (const OwnFlag& flag : own_flags()) {
    if (front.value(flag.name) && !words.has_flag(flag.name)) throw ConfigError(describe_misplaced(flag));
  }
  for (const std::string& flag : words.needs) {
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

// Keys of earlier versions become the key of today.
void adopt_earlier(LoadedConfig& loaded, std::span<const Option> options) {
  const bool replaces_share =
      loaded.flagged.contains("data.validation_share") && !loaded.flagged.contains("data.validation");
  adopt_earlier_keys(loaded.config.data, replaces_share);
  for (const Option& option : options) {
    if (!option.earlier || !option.is_default()) continue;  // one that says nothing is left
    for (std::set<std::string>* keys : {&loaded.given, &loaded.flagged}) {
      if (keys->erase(option.key) > 0) keys->insert("data.validation");
    }
    std::ranges::replace(loaded.config.run.resume_allow, option.key, "data.validation");
  }
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments, const KnownNames& names) {
  Config defaults;
  const std::vector<Option> options = declare_options(defaults, names);
  FrontEnd front(options);
  front.parse(complete_json_of_version(arguments));
  const auto text_of = [&front](std::string_view flag) { return front.value(flag).value_or(""); };
  CommandLine line;
  line.arguments = arguments;
  line.command = front.command().value_or("");
  line.json = text_of("json");
  if (const std::optional<std::string> text = front.wanted_text()) {
    if (std::ranges::count(command_names(), line.command) > 0) line.topic = line.command;
    line.command = *text;
    return line;
  }
  front.check_flags();
  const CommandEntry& words = find_command(front.command());
  check_command(words, front);
  if (words.operand == "file") line.data = front.operands().front();
  if (words.operand == "runs") line.runs = front.operands();
  if (words.operand == "topic" && !front.operands().empty()) line.topic = front.operands().front();
  line.config_file = text_of("config");
  line.model = text_of("model");
  line.input = text_of("input");
  line.output = text_of("output");
  line.task = text_of("task");
  line.sort = text_of("sort");
  line.csv = text_of("csv");
  line.format = text_of("format");
  line.overwrite = front.value("overwrite").has_value();
  line.once = front.value("once").has_value();
  line.allow_nan = front.value("allow-nan").has_value();
  line.plan_np = parse_world_sizes(front);
  line.planned = parse_planned_nodes(front, line.command, line.config_file);
  line.sweep = parse_sweep(front, line.command);
  line.predict = parse_predict(front);
  if (line.command == "importance") parse_importance(front, line);
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
  front.parse(line.arguments);
  front.check_flags();
  front.read_file(file);
  loaded.given = front.assign_all(line.without);
  loaded.flagged = front.flagged();
  adopt_earlier(loaded, options);
  return loaded;
}

}  // namespace lockstep
