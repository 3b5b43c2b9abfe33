// Completion for bash and zsh. Both read the same rows by the same function (configs/texts/completion.sh);
// what they do with the answer stands beside it. The keys are many: as long as no dot is typed, a section is
// offered as one word, "--train.".
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "describe.h"
#include "lockstep/base/embedded_text.h"
#include "lockstep/config/commands.h"
#include "lockstep/config/help.h"

namespace lockstep {
namespace {

// In single quotes, as bash and zsh read a word: 'it'\''s'.
std::string shell_quoted(std::string_view word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// See completion.sh; `commands`: separated by blanks.
std::string row(std::string_view commands, std::string_view word, std::string_view kind,
                std::string_view help, std::span<const std::string> values = {}) {
  std::string text = "  _trainer_row";
  for (const std::string_view part : {commands, word, kind, help}) text += " " + shell_quoted(part);
  for (const std::string& value : values) text += " " + shell_quoted(value);
  return text + "\n";
}

constexpr std::string_view kAllCommands = "*";
constexpr std::string_view kTraining = "trainer";

std::string command_rows(std::span<const std::string> topics) {
  std::string rows;
  for (const CommandEntry& command : command_catalog()) {
    if (!command.name.empty()) rows += row(kTraining, command.name, "none", command.usages.front().help);
    if (command.operand == "file") rows += row(command.name, "", "file", "");
    if (command.operand == "runs") rows += row(command.name, "", "directory", "");
    if (command.operand != "topic") continue;
    for (const std::string& topic : topics) rows += row(command.name, topic, "none", "");
  }
  return rows;
}

std::string option_rows(std::span<const Option> options) {
  std::string rows;
  for_each_section(options, [&rows](std::string_view section, std::span<const Option> members) {
    rows += row(kAllCommands, fmt::format("--{}.", section), "section", section_title(section));
    for (const Option& option : members) {
      const std::vector<std::string> values = completions(option);
      const bool list = option.kind == ValueKind::kTextList;
      const std::string_view kind = !values.empty()                           ? (list ? "list" : "words")
                                    : list || option.kind == ValueKind::kText ? "file"
                                                                              : "text";
      for (const std::string& flag : {option.key, option.alias}) {
        if (!flag.empty()) rows += row(kAllCommands, "--" + flag, kind, option.help, values);
      }
    }
  });
  return rows;
}

std::string flag_rows(const KnownNames& names) {
  std::string rows;
  for (const OwnFlag& flag : own_flags()) {
    for (const CommandEntry& command : command_catalog()) {
      if (!command.has_flag(flag.name)) continue;
      const std::string_view name = command.name.empty() ? kTraining : std::string_view(command.name);
      const std::vector<std::string> values = known_values(flag, command, names);
      std::string kind = flag.kind.empty() ? "text" : flag.kind;
      if (!values.empty()) kind = "words";
      if (flag.value_name.empty()) kind = "none";
      rows += row(name, "--" + flag.name, kind, flag.help, values);
    }
  }
  for (const std::string_view flag : {"-h", "--help", "--help-all", "--version"}) {
    rows += row(kAllCommands, flag, "none", "");
  }
  return rows;
}

std::string completion(std::string_view shell, std::span<const Option> options, const KnownNames& names) {
  return fmt::format(
      "{}# Completion of {} for trainer. Written by the program: trainer reference --format {}\n\n{}\n"
      "_trainer_rows() {{\n{}{}{}}}\n{}",
      shell == "zsh" ? "#compdef trainer\n" : "", shell, shell, embedded_text("texts/completion.sh"),
      command_rows(help_topics(options, names)), option_rows(options), flag_rows(names),
      embedded_text(fmt::format("texts/completion.{}", shell)));
}

}  // namespace

std::string bash_completion(std::span<const Option> options, const KnownNames& names) {
  return completion("bash", options, names);
}

std::string zsh_completion(std::span<const Option> options, const KnownNames& names) {
  return completion("zsh", options, names);
}

}  // namespace lockstep
