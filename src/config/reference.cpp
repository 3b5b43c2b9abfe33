// The forms of `trainer reference`: the options in Markdown, the man page, and the completions of two shells.
//
// The man page is configs/texts/trainer.1 with what the program knows of itself. Written in the macros of
// man(7): .SH a section, .SS a part of it, .TP a term (the next line) with an indented paragraph, \fB bold,
// \fI italic.
//
// Both shells read the same rows by the same function (configs/texts/completion.sh); what they do with the
// answer stands beside it. The keys are many: as long as no dot is typed, a section is offered as one word,
// "--train.".
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "lockstep/base/embedded_text.h"
#include "lockstep/config/help.h"
#include "lockstep/config/toml.h"

namespace lockstep {
namespace {

// A line must not begin with a dot or an apostrophe, which would make it a macro.
std::string troff_escaped(std::string_view text) {
  constexpr std::string_view kSpecial = "\\-'^~`";
  constexpr std::array<std::string_view, kSpecial.size()> kWritten{"\\e",   "\\-",   "\\(aq",
                                                                   "\\(ha", "\\(ti", "\\(ga"};
  std::string troff = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text) {
    const std::size_t special = kSpecial.find(c);
    if (special == std::string_view::npos) {
      troff += c;
    } else {
      troff += kWritten[special];
    }
  }
  return troff;
}

std::string bold(std::string_view text) {
  return "\\fB" + troff_escaped(text) + "\\fR";
}

std::string term(const std::string& head, std::string_view text) {
  return fmt::format(".TP\n{}\n{}\n", head, troff_escaped(text));
}

// The kind of value, as it stands behind a flag.
std::string value_name(ValueKind kind) {
  constexpr std::array<std::string_view, 7> kNames{"TEXT", "true|false", "N",       "N|auto",
                                                   "X",    "X,...",      "TEXT,..."};
  return fmt::format(" \\fI{}\\fR", troff_escaped(kNames[static_cast<std::size_t>(kind)]));
}

std::string flag_terms() {
  std::string terms;
  for (const OwnFlag& flag : own_flags()) {
    const std::string value = flag.value_name.empty() ? "" : fmt::format(" \\fI{}\\fR", flag.value_name);
    terms += term(bold("--" + flag.name) + value, flag.help);
  }
  terms += term(bold("-h") + ", " + bold("--help"), "one page; --help-all: every option");
  return terms + term(bold("--version"), "version, commit, libraries and features; with --json for programs");
}

std::string option_terms(std::span<const Option> options) {
  std::string terms;
  for_each_section(options, [&terms](std::string_view section, std::span<const Option> members) {
    terms += fmt::format(".SS \"[{}] {}\"\n", section, troff_escaped(section_title(section)));
    for (const Option& option : members) {
      const std::string alias = option.alias.empty() ? "" : ", " + bold("--" + option.alias);
      terms += term(bold("--" + option.key) + alias + value_name(option.kind), describe(option));
    }
  });
  return terms;
}

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
    if (command.operand.starts_with("run") || command.operand == "model")
      rows += row(command.name, "", "directory", "");
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
      std::vector<std::string> values = option.choices;  // those that a shell can complete
      if (option.kind == ValueKind::kBoolean) values = {"true", "false"};
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

// The script that completes the command line of trainer: commands, flags, keys and values.
std::string completion(std::string_view shell, std::span<const Option> options, const KnownNames& names) {
  return fmt::format(
      "{}# Completion of {} for trainer. Written by the program: trainer reference --format {}\n\n{}\n"
      "_trainer_rows() {{\n{}{}{}}}\n{}",
      shell == "zsh" ? "#compdef trainer\n" : "", shell, shell, embedded_text("texts/completion.sh"),
      command_rows(help_topics(options, names)), option_rows(options), flag_rows(names),
      embedded_text(fmt::format("texts/completion.{}", shell)));
}

// configs/REFERENCE.md: a table for each section.
std::string reference_markdown(std::span<const Option> options, const KnownNames&) {
  std::string markdown =
      "<!-- Written by the program: trainer reference > configs/REFERENCE.md -->\n\n# Options\n\n"
      "Each option is a key of the config file and a flag: `lr` in section `[train]` is `--train.lr`. The "
      "flag wins over\nthe file, the file over the default.\n";
  for_each_section(options, [&markdown](std::string_view section, std::span<const Option> members) {
    markdown += fmt::format("\n## [{}] {}\n\n| key | type | default | meaning |\n|---|---|---|---|\n",
                            section, section_title(section));
    for (const Option& option : members) {
      const std::string fallback = option.if_not_given.empty()
                                       ? fmt::format("`{}`", toml_value(option, option.default_text))
                                       : option.if_not_given;
      const std::string example =
          option.example.empty() ? "" : fmt::format(". Example: `{}`", toml_value(option, option.example));
      markdown += fmt::format("| `{}` | {} | {} | {}{} |\n", option.key, option.expected, fallback,
                              option.help, example);
    }
  });
  return markdown;
}

std::string man_page(std::span<const Option> options, const KnownNames&) {
  std::vector<std::string> synopsis;
  std::string commands;
  for (const CommandEntry& command : command_catalog()) {
    synopsis.push_back(
        fmt::format("{} [{} \\fIVALUE\\fR]...\n", bold(command.usages.front().words), bold("--KEY")));
    for (const Usage& usage : command.usages) commands += term(bold(usage.words), usage.help);
  }
  std::string codes;
  for (const ExitCode& exit : exit_codes()) {
    codes += term(bold(exit.code), fmt::format("{}: {}", exit.word, exit.help));
  }
  return fmt::format(
      fmt::runtime(embedded_text("texts/trainer.1")), fmt::arg("version", troff_escaped(LOCKSTEP_VERSION)),
      fmt::arg("synopsis", fmt::join(synopsis, ".br\n")), fmt::arg("commands", commands),
      fmt::arg("flags", flag_terms()), fmt::arg("options", option_terms(options)), fmt::arg("codes", codes));
}

}  // namespace

std::span<const ReferenceEntry> reference_catalog() {
  static const std::array<ReferenceEntry, 4> kEntries{{
      {"markdown", reference_markdown},
      {"man", man_page},
      {"bash", [](std::span<const Option> options,
                  const KnownNames& names) { return completion("bash", options, names); }},
      {"zsh", [](std::span<const Option> options,
                 const KnownNames& names) { return completion("zsh", options, names); }},
  }};
  return kEntries;
}

}  // namespace lockstep
