// Completion for bash. Bash calls _trainer with the words of the line in COMP_WORDS and expects what can
// stand at COMP_CWORD in COMPREPLY. It cuts words at '=', so that --key=value arrives as three. The keys are
// many: as long as no dot is typed, a section is offered as one word, "--train.".
#include "completions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "describe.h"
#include "lockstep/config/help.h"

namespace lockstep {
namespace {

std::string values_case(const std::string& flags, std::span<const std::string> values,
                        std::string_view kind) {
  return fmt::format("    {}) kind={} values=({}) ;;\n", flags, kind, shell_quoted(values));
}

std::string names_of(const Option& option) {
  return option.alias.empty() ? "--" + option.key : fmt::format("--{} | --{}", option.key, option.alias);
}

std::string_view kind_of(FlagValue value) {
  switch (value) {
    case FlagValue::kConfigFile:
      return "config";
    case FlagValue::kFile:
      return "file";
    case FlagValue::kDirectory:
      return "directory";
    case FlagValue::kFormat:
    case FlagValue::kText:
    case FlagValue::kNone:
      return "text";
  }
  return "text";
}

// _trainer_values COMMAND FLAG
std::string values_function(std::span<const Option> options, const KnownNames& names) {
  std::string text =
      "# Of the flag $2 of command $1: the values that are known, and which kind of text it takes.\n"
      "_trainer_values() {\n  kind=text values=()\n  case $2 in\n";
  for (const OwnFlag& flag : own_flags()) {
    if (flag.value == FlagValue::kNone) continue;
    if (flag.value != FlagValue::kFormat)
      text += fmt::format("    --{}) kind={} ;;\n", flag.name, kind_of(flag.value));
  }
  text += "    --format)\n      case $1 in\n";
  for (const CommandEntry& command : command_catalog()) {
    const std::vector<std::string> formats = formats_of(command, names);
    if (formats.empty()) continue;
    text += fmt::format("        {}) values=({}) ;;\n", command.name.value_or("''"), shell_quoted(formats));
  }
  text += "      esac\n      ;;\n";
  for (const Option& option : options) {
    const std::vector<std::string> values = completions(option);
    if (!values.empty()) {
      text += values_case(names_of(option), values, option.kind == ValueKind::kTextList ? "list" : "text");
    } else if (option.kind == ValueKind::kText || option.kind == ValueKind::kTextList) {
      text += fmt::format("    {}) kind=file ;;\n", names_of(option));
    }
  }
  return text + "  esac\n}\n\n";
}

// _trainer_flags COMMAND
std::string flags_function(std::span<const Option> options) {
  std::vector<std::string> common = flags_of_all_commands();
  for_each_section(options, [&common](std::string_view section, std::span<const Option>) {
    common.push_back(fmt::format("--{}.", section));
  });
  for (const Option& option : options) {
    if (!option.alias.empty()) common.push_back("--" + option.alias);
  }
  std::string text = fmt::format(
      "# The flags of command $1 that are no keys, and the sections of the keys.\n"
      "_trainer_flags() {{\n  values=({})\n  case $1 in\n",
      shell_quoted(common));
  for (const CommandEntry& command : command_catalog()) {
    std::vector<std::string> flags;
    for (const OwnFlag& flag : own_flags()) {
      if (command.has_flag(flag.name)) flags.push_back(fmt::format("--{}", flag.name));
    }
    text += fmt::format("    {}) values+=({}) ;;\n", command.name.value_or("''"), shell_quoted(flags));
  }
  return text + "  esac\n}\n\n";
}

std::string keys_function(std::span<const Option> options) {
  std::string text = "_trainer_keys() {\n  values=(\n";
  for (const Option& option : options) text += "    --" + option.key + "\n";
  return text + "  )\n}\n\n";
}

std::string command_function(std::span<const Option> options, const KnownNames& known) {
  std::vector<std::string> alone = flags_of_all_commands();
  std::vector<std::string> names;
  std::vector<std::string> with_data;
  std::vector<std::string> with_runs;
  std::vector<std::string> with_topic;
  for (const OwnFlag& flag : own_flags()) {
    if (flag.value == FlagValue::kNone) alone.push_back(fmt::format("--{}", flag.name));
  }
  for (const CommandEntry& command : command_catalog()) {
    if (!command.name) continue;
    names.push_back(*command.name);
    if (command.operand == Operand::kData) with_data.push_back(*command.name);
    if (command.operand == Operand::kRuns) with_runs.push_back(*command.name);
    if (command.operand == Operand::kTopic) with_topic.push_back(*command.name);
  }
  return fmt::format(
      "_trainer_has_no_value() {{\n  case $1 in {}) return 0 ;; esac\n  return 1\n}}\n"
      "_trainer_takes_data() {{\n  case $1 in {}) return 0 ;; esac\n  return 1\n}}\n"
      "_trainer_takes_runs() {{\n  case $1 in {}) return 0 ;; esac\n  return 1\n}}\n"
      "_trainer_takes_topic() {{\n  case $1 in {}) return 0 ;; esac\n  return 1\n}}\n"
      "_trainer_commands() {{\n  values=({})\n}}\n"
      "_trainer_topics() {{\n  values=({})\n}}\n",
      fmt::join(alone, " | "), fmt::join(with_data, " | "), fmt::join(with_runs, " | "),
      fmt::join(with_topic, " | "), shell_quoted(names), shell_quoted(help_topics(options, known)));
}

constexpr std::string_view kBody = R"(
# The first word before the cursor that is neither a flag nor the value of one.
_trainer_find_command() {
  local i word is_value=0
  command=
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if ((is_value)); then
      [ "$word" = = ] || is_value=0
    elif [[ $word != -* ]]; then
      command=$word
      return
    elif ! _trainer_has_no_value "$word"; then
      is_value=1
    fi
  done
}

# Those of the values that begin with $1, each after $2.
_trainer_offer() {
  local value quoted
  for value in "${values[@]}"; do
    [[ $value == "$1"* ]] || continue
    printf -v quoted %q "$value"
    COMPREPLY+=("$2$quoted")
  done
}

_trainer_offer_value() {
  local done=
  case $kind in
    file) mapfile -t COMPREPLY < <(compgen -f -- "$1") ;;
    directory) mapfile -t COMPREPLY < <(compgen -d -- "$1") ;;
    config) mapfile -t COMPREPLY < <(compgen -f -X '!*.toml' -- "$1"; compgen -d -- "$1") ;;
    list)
      [[ $1 != *,* ]] || done=${1%,*},
      _trainer_offer "${1##*,}" "$done"
      return
      ;;
    *)
      _trainer_offer "$1" ""
      return
      ;;
  esac
  compopt -o filenames 2>/dev/null
}

_trainer() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command kind values
  COMPREPLY=()
  _trainer_find_command
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if [[ $prev == -* ]] && ! _trainer_has_no_value "$prev"; then
    _trainer_values "$command" "$prev"
    _trainer_offer_value "$cur"
  elif [[ $cur == --*.* ]]; then
    _trainer_keys
    _trainer_offer "$cur" ""
  elif [[ $cur == -* ]]; then
    _trainer_flags "$command"
    _trainer_offer "$cur" ""
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *. ]]; then compopt -o nospace 2>/dev/null; fi
  elif [[ -z $command ]]; then
    _trainer_commands
    _trainer_offer "$cur" ""
  elif _trainer_takes_data "$command"; then
    kind=file
    _trainer_offer_value "$cur"
  elif _trainer_takes_runs "$command"; then
    kind=directory
    _trainer_offer_value "$cur"
  elif _trainer_takes_topic "$command" && [[ $cur == *.* ]]; then
    _trainer_keys
    values=("${values[@]#--}")
    _trainer_offer "$cur" ""
  elif _trainer_takes_topic "$command"; then
    _trainer_topics
    _trainer_offer "$cur" ""
  fi
  return 0
}

complete -F _trainer trainer
)";

// Completion for zsh, by its _arguments, which takes a specification for each flag:
//
//   --name=[help]:what the value is:(a b c)
//
// with an action instead of (a b c) if the values are files. In the help brackets and backslashes are
// escaped, in the values colons.

std::string zsh_escaped(std::string_view text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string value_list(std::span<const std::string> values) {
  return zsh_escaped(shell_quoted(values), ":");
}

std::string specification(std::string_view name, std::string_view help, std::string_view value,
                          std::string_view action) {
  const std::string head =
      fmt::format("--{}{}[{}]", name, value.empty() ? "" : "=", zsh_escaped(help, "\\[]:"));
  return shell_quoted(value.empty() ? head : fmt::format("{}:{}:{}", head, zsh_escaped(value, ":"), action));
}

std::string action_of(const Option& option) {
  const std::vector<std::string> values = completions(option);
  const bool list = option.kind == ValueKind::kTextList;
  if (!values.empty() && list) return "_sequence compadd - " + value_list(values);
  if (!values.empty()) return fmt::format("({})", value_list(values));
  return option.kind == ValueKind::kText || list ? "_files" : " ";
}

std::string action_of(const OwnFlag& flag, const CommandEntry& command, const KnownNames& names) {
  switch (flag.value) {
    case FlagValue::kConfigFile:
      return "_files -g \"*.toml\"";
    case FlagValue::kFile:
      return "_files";
    case FlagValue::kDirectory:
      return "_files -/";
    case FlagValue::kFormat:
      return fmt::format("({})", value_list(formats_of(command, names)));
    case FlagValue::kText:
    case FlagValue::kNone:
      return " ";
  }
  return " ";
}

std::string key_specifications(std::span<const Option> options) {
  std::string text;
  for (const Option& option : options) {
    text += "    " + specification(option.key, option.help, option.name(), action_of(option)) + "\n";
    if (option.alias.empty()) continue;
    text += "    " + specification(option.alias, option.help, option.name(), action_of(option)) + "\n";
  }
  return text;
}

std::string own_specifications(const CommandEntry& command, const KnownNames& names) {
  std::vector<std::string> all;
  for (const OwnFlag& flag : own_flags()) {
    if (!command.has_flag(flag.name)) continue;
    all.push_back(specification(flag.name, flag.help, flag.value_name, action_of(flag, command, names)));
  }
  return fmt::format("{}", fmt::join(all, " "));
}

// The words that may follow the name of the command.
std::string operand_of(const CommandEntry& command, std::span<const Option> options,
                       const KnownNames& names) {
  if (command.operand == Operand::kData) return " operand=('2:data:_files')";
  if (command.operand == Operand::kRuns) return " operand=('*:run:_files -/')";
  if (command.operand != Operand::kTopic) return "";
  std::vector<std::string> topics = help_topics(options, names);
  for (const Option& option : options) topics.push_back(option.key);
  return fmt::format(" operand=({})", shell_quoted(fmt::format("2:topic:({})", value_list(topics))));
}

}  // namespace

std::string bash_completion(std::span<const Option> options, const KnownNames& names) {
  return "# Completion of bash for trainer. Written by the program: trainer reference --format bash\n\n" +
         values_function(options, names) + flags_function(options) + keys_function(options) +
         command_function(options, names) + std::string(kBody);
}

std::string zsh_completion(std::span<const Option> options, const KnownNames& names) {
  std::string commands;
  std::string cases;
  std::vector<std::string> words;
  for (const CommandEntry& command : command_catalog()) {
    const std::string name = command.name.value_or("");
    cases += fmt::format("    {}) own=({}){} ;;\n", name.empty() ? "*" : name,
                         own_specifications(command, names), operand_of(command, options, names));
    if (name.empty()) continue;
    words.push_back(name);
    commands += "    " + shell_quoted(name + ":" + zsh_escaped(command.usages.front().help, ":")) + "\n";
  }
  // Training has no name: its case stands for all other words and must be the last.
  const std::size_t end_of_first = cases.find('\n') + 1;
  cases = cases.substr(end_of_first) + cases.substr(0, end_of_first);
  return fmt::format(R"(#compdef trainer
# Completion of zsh for trainer. Written by the program: trainer reference --format zsh

_trainer_commands() {{
  local -a commands=(
{})
  _describe command commands
}}

_trainer() {{
  local -a own keys operand
  keys=(
{})
  local command=${{words[2,CURRENT-1][(r)({})]}}
  case $command in
{}  esac
  _arguments -S $own $keys {} '1:command:_trainer_commands' $operand
}}

_trainer "$@"
)",
                     commands, key_specifications(options), fmt::join(words, "|"), cases,
                     shell_quoted(flags_of_all_commands()));
}

std::string shell_quoted(std::string_view word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_quoted(std::span<const std::string> words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(shell_quoted(word));
  return fmt::format("{}", fmt::join(quoted, " "));
}

std::vector<std::string> flags_of_all_commands() {
  return {"-h", "--help", "--help-all", "--version"};
}

std::vector<std::string> formats_of(const CommandEntry& command, const KnownNames& names) {
  return command.formats == nullptr ? std::vector<std::string>{} : command.formats(names);
}

}  // namespace lockstep
