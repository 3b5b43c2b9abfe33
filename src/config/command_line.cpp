// CLI11 takes the command line apart. Values stay text here: the options say what is a value, in the same
// words as for the file.
#include "lockstep/config/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "lockstep/base/catalog.h"
#include "lockstep/base/embedded_text.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/config/toml.h"
#include "lockstep/config/trials.h"

namespace lockstep {
namespace {

constexpr std::string_view kProgram = "trainer";
constexpr std::string_view kTexts = "texts/commands.txt";

CommandEntry to_command(const TextEntry& entry) {
  const std::vector<std::string> usages = entry.get_all("usage");
  const std::vector<std::string> helps = entry.get_all("does");
  CommandEntry command{.name = entry.name.substr(std::min(kProgram.size() + 1, entry.name.size())),
                       .usages = {},
                       .needs = entry.get_words("needs"),
                       .takes = entry.get_words("takes"),
                       .keys = entry.get_words("keys"),
                       .operand = entry.get("operand"),
                       .otherwise = entry.get_words("otherwise"),
                       .example = entry.get("example"),
                       .guide = entry.get("guide")};
  for (std::size_t i = 0; i < usages.size(); ++i) command.usages.push_back({usages[i], helps.at(i)});
  return command;
}

// Its name is "--config FILE".
OwnFlag to_flag(const TextEntry& entry) {
  constexpr std::array<std::string_view, 5> kKinds{"", "file", "directory", "config", "format"};
  const std::string value = entry.get("value");
  const bool is_kind = std::ranges::count(kKinds, value) > 0;
  const std::size_t end = std::min(entry.name.find(' '), entry.name.size());
  return {.name = entry.name.substr(2, end - 2),
          .value_name = entry.name.substr(std::min(end + 1, entry.name.size())),
          .kind = is_kind ? value : "",
          .values = is_kind ? std::vector<std::string>() : entry.get_words("value"),
          .help = entry.get("help"),
          .also = entry.get("also"),
          .common = !entry.get("common").empty()};
}

// The entries whose names begin so.
template <class Entry>
std::vector<Entry> read_entries(std::string_view beginning, Entry (*convert)(const TextEntry&)) {
  std::vector<Entry> entries;
  for (const TextEntry& entry : embedded_entries(kTexts)) {
    if (entry.name.starts_with(beginning)) entries.push_back(convert(entry));
  }
  return entries;
}

const CommandEntry& find_command(const std::optional<std::string>& wanted) {
  const std::string name = wanted.value_or("");
  for (const CommandEntry& words : command_catalog()) {
    if (words.name == name && wanted != "") return words;
  }
  error_if(name.ends_with(".toml"), "unexpected {}; did you mean --config {}?", in_quotes(name),
           excerpt(name));
  error_if(name.find('=') != std::string::npos && !name.starts_with('-'), "unexpected {}; did you mean --{}?",
           in_quotes(name), excerpt(name));
  const std::vector<std::string> known = command_names();
  throw ConfigError("unknown command {}{} (known: {}; to train, give no command)", in_quotes(name),
                    suggestion(name, known), fmt::join(known, ", "));
}

// "--np belongs to 'trainer plan'; mpirun -np sets the number of ranks of a run", or which flag of the
// command was meant instead.
std::string describe_misplaced(const OwnFlag& flag, const CommandEntry& command) {
  const std::vector<TextEntry> entries = embedded_entries(kTexts);
  const TextEntry& entry = *std::ranges::find(entries, flag.words(), &TextEntry::name);
  if (const std::string advice = entry.get("in " + command.name); !advice.empty()) {
    return fmt::format("'trainer {}' has no --{}: {}", command.name, flag.name, advice);
  }
  std::vector<std::string> owners;
  for (const CommandEntry& words : command_catalog()) {
    if (words.has_flag(flag.name)) owners.push_back(fmt::format("'trainer {}'", words.name));
  }
  return fmt::format("--{} belongs to {}; {}", flag.name, fmt::join(owners, ", "), entry.get("elsewhere"));
}

// A run as the first word is the value of --model.
void take_operands(const CommandEntry& words, CommandLine& line) {
  std::vector<std::string>& operands = line.operands;
  if (words.operand == "model" && !operands.empty()) {
    error_if(line.has("model"), "the run is given twice, as {} and by --model {}: leave one of them out",
             in_quotes(operands.front()), in_quotes(line.text("model")));
    line.flags["model"] = {operands.front()};
    operands.erase(operands.begin());
  }
  const bool runs = words.operand == "runs";
  const std::size_t most = runs || words.operand == "topic"                    ? operands.size()
                           : words.operand.empty() || words.operand == "model" ? 0
                                                                               : 1;
  if (operands.size() > most) {
    throw ConfigError("unexpected argument {}; usage: {}", in_quotes(operands[most]),
                      words.usages.front().words);
  }
  const bool file = words.operand == "file";
  error_if((runs || file || words.operand == "run") && operands.empty(), "the {} is missing; usage: {}",
           file ? "file" : "directory of a run", words.usages.front().words);
}

// Keys that the command would drop without a word.
void refuse_unused(const CommandEntry& words, const CommandLine& line) {
  const char* const instead = words.has_flag("model")            ? "takes the weights of the run"
                              : words.operand.starts_with("run") ? "shows runs as they are"
                                                                 : "does not use it";
  for (const Setting& setting : line.settings) {
    const bool starts = setting.key == "train.init";
    error_if(!words.uses_key(setting.key), "--{} {}, and 'trainer {}' {}: leave it out",
             starts ? "init" : setting.key, starts ? "starts a training" : "is a key of trainings",
             words.name, instead);
  }
  for (const auto& [flag, values] : line.flags)
    error_if(values.back().empty() && flag != "prompt", "--{}: its value is empty: give one, or leave it out",
             flag);
}

void check_command(const CommandEntry& words, CommandLine& line) {
  take_operands(words, line);
  for (const OwnFlag& flag : own_flags()) {
    if (line.flags.contains(flag.name) && !words.has_flag(flag.name))
      throw ConfigError(describe_misplaced(flag, words));
  }
  refuse_unused(words, line);
  for (const std::string& flag : words.needs) {
    const bool run = flag == "model";
    const char* const advice = flag == "config"
                                   ? "\nconfigs/ has examples, and 'trainer --help' shows the options"
                               : run ? ", where RUN is the directory of a run"
                                     : "";
    error_if(!line.has(flag), "{} is missing; usage: {}{}", run ? "the run" : "--" + flag,
             words.usages.front().words, advice);
  }
  for (const std::string& flag : words.otherwise) {
    const std::size_t equals = flag.find('=');
    line.flags.try_emplace(flag.substr(0, equals), 1, flag.substr(equals + 1));
  }
}

// CLI11 takes the next argument as the value of "--key=", whose value is the empty text.
std::vector<std::string> split_at_equals(const std::vector<std::string>& arguments) {
  std::vector<std::string> split;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    split.push_back(argument.substr(0, equals));
    if (equals != std::string::npos) split.push_back(argument.substr(equals + 1));
  }
  return split;
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

// The command line in parts, of which nothing is checked yet.
struct Words {
  std::optional<std::string> command;      // the first word that is no flag
  std::optional<std::string> wanted_text;  // the flag that asks for a text, whatever else was said
  CommandLine line;
};

// Errors: ConfigError for a missing value.
Words take_apart(const std::vector<std::string>& arguments, std::span<const Option> options) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  const CLI::Option* const command = app.add_option("command");
  const std::array<const CLI::Option*, 3> texts{app.add_flag("-h,--help"), app.add_flag("--help-all"),
                                                app.add_flag("--version")};
  // All of several values are kept; that the last one counts is so that a script can append a flag.
  const auto add_value_flag = [&app](const std::string& names) {
    return app.add_option(names)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  };
  std::vector<const CLI::Option*> keys;
  for (const Option& option : options) {
    keys.push_back(add_value_flag("--" + option.key + (option.alias.empty() ? "" : ",--" + option.alias)));
  }
  std::vector<const CLI::Option*> own;
  for (const OwnFlag& flag : own_flags()) {
    own.push_back(flag.value_name.empty() ? app.add_flag("--" + flag.name)
                                          : add_value_flag("--" + flag.name + flag.also));
  }

  std::vector<std::string> pending = split_at_equals(complete_json_of_version(arguments));
  const std::string last = pending.empty() ? "" : pending.back();
  std::ranges::reverse(pending);  // CLI11 takes the last argument first
  try {
    app.parse(std::move(pending));
  } catch (const CLI::ArgumentMismatch&) {  // only the last flag can be without its value
    const Option* const option =
        find_option(options, std::string_view(last).substr(std::min<std::size_t>(2, last.size())));
    throw ConfigError("{}: a value is missing after it{}", excerpt(last),
                      option == nullptr ? "" : fmt::format(": expected {}", option->expected));
  }

  Words words;
  if (command->count() > 0) words.command = command->results().front();
  for (const CLI::Option* text : texts) {
    if (text->count() > 0 && !words.wanted_text) words.wanted_text = text->get_name();
  }
  words.line.operands = app.remaining();
  for (std::size_t i = 0; i < options.size(); ++i) {
    for (const std::string& value : keys[i]->results())
      words.line.settings.push_back({options[i].key, value});
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i]->count() > 0) words.line.flags[own_flags()[i].name] = own[i]->results();
  }
  return words;
}

// `command`: the command that it stands with, whose own flags are likelier than keys; else it is training.
std::string describe_unknown_flag(std::string_view flag, std::span<const Option> options,
                                  const std::string& command) {
  static const std::vector<Synonym> kWords = embedded_synonyms(kTexts);
  const std::string_view name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  std::vector<std::string> short_names{"help", "help-all", "version"};
  std::vector<std::string> of_command;
  const auto found = std::ranges::find(command_catalog(), command, &CommandEntry::name);
  const CommandEntry& entry = found == command_catalog().end() ? command_catalog().front() : *found;
  const OwnFlag* of_another = nullptr;  // that a letter stands for
  for (const OwnFlag& own : own_flags()) {
    short_names.push_back(own.name);
    const std::string own_words = own.words();
    const bool letter = name.size() == 1 && find_synonym(kWords, name, {&own_words, 1}) != nullptr;
    if (letter && of_another == nullptr) of_another = &own;
    if (entry.has_flag(own.name)) of_command.push_back(own_words);
  }
  for (const Option& option : options) {
    if (!option.alias.empty()) short_names.push_back(option.alias);
  }
  const Synonym* const word = find_synonym(kWords, name, of_command);
  const std::string nearest =
      describe_other_word(name, options).empty() ? nearest_name(name, short_names) : "";
  const std::string hint = word != nullptr         ? describe(*word)
                           : of_another != nullptr ? describe_misplaced(*of_another, entry)
                           : !nearest.empty()      ? fmt::format("did you mean '--{}'?", nearest)
                                                   : suggest_key(name, options, "--");
  return fmt::format("{}: unknown option; {}", excerpt(flag),
                     hint.empty() ? "'trainer --help-all' lists them" : hint);
}

// Whether it is the last value of its flag, which is the one that counts; the others may be no values at all.
bool counts(const std::vector<Setting>& settings, std::size_t i) {
  return i + 1 == settings.size() || settings[i + 1].key != settings[i].key;
}

// Refuses a value that is none, and a list that is given twice: both lists may be meant, or the last one.
void check_settings(const std::vector<Setting>& settings, std::span<const Option> options) {
  const Setting* first = nullptr;  // of the same key
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const auto& [key, value] = settings[i];
    const Option& option = *find_option(options, key);
    if (first == nullptr || first->key != key) first = &settings[i];
    error_if(takes_a_list(option) && value != first->value,
             "--{0} is given twice, as '{1}' and '{2}'; give one list: --{0} {1},{2}", key, first->value,
             value);
    if (!counts(settings, i)) continue;
    const std::string twice = repeated_name(option, value);
    error_if(!twice.empty(), "--{}: {} stands twice: name it once", key, in_quotes(twice));
    if (option.accepts(value)) continue;
    throw ConfigError("--{}: {}", key, describe_refusal(option, value, in_quotes(value)));
  }
}

// `--train.steps 5` is meant instead of the file's `epochs`, not beside it.
bool loses_to_a_flag(const std::string& key, const std::set<std::string>& flagged) {
  if (flagged.contains(key)) return true;
  return std::ranges::any_of(alternative_keys(), [&](const Alternatives& group) {
    return std::ranges::count(group.keys, key) > 0 &&
           std::ranges::any_of(group.keys, [&](const std::string& other) { return flagged.contains(other); });
  });
}

}  // namespace

bool CommandEntry::has_flag(std::string_view flag) const {
  return std::ranges::count(needs, flag) + std::ranges::count(takes, flag) > 0;
}

bool CommandEntry::uses_key(std::string_view key) const {
  const auto matches = [key](std::string_view pattern) {
    return pattern.ends_with('*') ? key.starts_with(pattern.substr(0, pattern.size() - 1)) : key == pattern;
  };
  bool uses = keys.empty();
  for (const std::string& pattern : keys) {  // the last one that matches counts
    const bool without = pattern.starts_with('-');
    if (matches(std::string_view(pattern).substr(without ? 1 : 0))) uses = !without;
  }
  return uses;
}

std::span<const CommandEntry> command_catalog() {
  static const std::vector<CommandEntry> kCommands = read_entries(kProgram, to_command);
  return kCommands;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const CommandEntry& command : command_catalog()) {
    if (!command.name.empty()) names.push_back(command.name);
  }
  return names;
}

std::span<const OwnFlag> own_flags() {
  static const std::vector<OwnFlag> kFlags = read_entries("--", to_flag);
  return kFlags;
}

std::vector<std::string> CommandLine::values(std::string_view flag) const {
  const auto found = flags.find(flag);
  return found == flags.end() ? std::vector<std::string>() : found->second;
}

std::optional<std::string> CommandLine::value(std::string_view flag) const {
  const auto found = flags.find(flag);
  return found == flags.end() ? std::nullopt : std::optional(found->second.back());
}

Index CommandLine::count(std::string_view flag, Range allowed, Index otherwise) const {
  const std::optional<std::string> given = value(flag);
  if (!given) return otherwise;
  const Index number = ValueType<Index>::parse(*given).value_or(allowed.begin - 1);
  if (allowed.begin <= number && number < allowed.end) return number;
  throw ConfigError("--{}: expected a whole number from {} to {}, found {}", flag, allowed.begin,
                    allowed.end - 1, in_quotes(*given));
}

double CommandLine::number(std::string_view flag, Range allowed, double otherwise) const {
  const std::optional<std::string> given = value(flag);
  if (!given) return otherwise;
  const std::optional<double> number = ValueType<double>::parse(*given);
  error_if(!number || !(*number >= static_cast<double>(allowed.begin)) ||
               !(*number <= static_cast<double>(allowed.end)),
           "--{}: expected a number from {} to {}, found {}", flag, allowed.begin, allowed.end,
           in_quotes(*given));
  return *number;
}

CommandLine parse_command_line(const std::vector<std::string>& arguments, std::span<const Option> options) {
  auto [command, wanted_text, line] = take_apart(arguments, options);
  if (wanted_text) {
    line.operands.clear();
    if (command && std::ranges::count(command_names(), *command) > 0) line.operands.push_back(*command);
    line.command = *wanted_text;
    return line;
  }
  const bool begins = !arguments.empty() && !arguments.front().starts_with('-');
  if (begins && command) find_command(command);  // a wrong command has flags that no other knows
  for (const std::string& extra : line.operands) {
    if (extra.starts_with('-'))
      throw ConfigError(describe_unknown_flag(extra, options, command.value_or("")));
  }
  check_settings(line.settings, options);
  const CommandEntry& entry = find_command(command);
  line.command = entry.name;
  check_command(entry, line);
  return line;
}

ConfigText read_config_file(const std::string& file) {
  constexpr std::uintmax_t kMaxBytes = 16 << 20;
  std::error_code ignored;  // reading the file gives the reason
  const std::uintmax_t bytes = std::filesystem::file_size(file, ignored);
  error_if(!ignored && bytes > kMaxBytes, "--config: '{}' has {}, expected at most {} in a config", file,
           human_bytes(bytes), human_bytes(kMaxBytes));
  try {
    return {file, read_file(file)};
  } catch (const DataError& error) {
    if (std::filesystem::exists(file, ignored)) throw ConfigError("--config: {}", error.what());
    const std::string nearest = nearest_path(file, std::filesystem::file_type::regular);
    const std::string hint =
        nearest.empty() ? "; configs/ has examples" : fmt::format("; did you mean '{}'?", nearest);
    throw ConfigError("--config: {}{}", error.what(), hint);
  }
}

Config load_config(const CommandLine& line, const ConfigText& file, std::span<const Option> options) {
  Config config;
  for (const Setting& flag : line.settings) config.flagged.insert(flag.key);
  check_settings(line.settings, options);
  std::vector<Setting> settings = read_toml(file.text, file.file, options);
  std::erase_if(settings, [&](const Setting& each) { return loses_to_a_flag(each.key, config.flagged); });
  settings.insert(settings.end(), line.settings.begin(), line.settings.end());
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const auto& [key, value] = settings[i];
    if (line.without.contains(key) || !counts(settings, i)) continue;
    find_option(options, key)->assign(config, value);
    config.given.insert(key);
  }
  return config;
}

}  // namespace lockstep
