// Completion for zsh, by its _arguments, which takes a specification for each flag:
//
//   --name=[help]:what the value is:(a b c)
//
// with an action instead of (a b c) if the values are files. In the help brackets and backslashes are
// escaped, in the values colons.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "describe.h"
#include "lockstep/config/help.h"
#include "shell_words.h"

namespace lockstep {
namespace {

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

}  // namespace lockstep
