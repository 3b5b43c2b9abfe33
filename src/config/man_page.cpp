// trainer.1: configs/texts/trainer.1 with what the program knows of itself. Written in the macros of man(7):
// .SH a section, .SS a part of it, .TP a term (the next line) with an indented paragraph, \fB bold, \fI
// italic.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "describe.h"
#include "lockstep/base/embedded_text.h"
#include "lockstep/config/commands.h"
#include "lockstep/config/help.h"

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

}  // namespace

std::string man_page(std::span<const Option> options) {
  std::vector<std::string> synopsis;
  std::string commands;
  for (const CommandEntry& command : command_catalog()) {
    synopsis.push_back(
        fmt::format("{} [{} \\fIVALUE\\fR]...\n", bold(command.usages.front().words), bold("--KEY")));
    for (const Usage& usage : command.usages) commands += term(bold(usage.words), usage.help);
  }
  std::string codes;
  for (const ExitCode& exit : exit_codes()) {
    codes += term(bold(std::to_string(exit.code)), fmt::format("{}: {}", exit.word, exit.help));
  }
  return fmt::format(
      fmt::runtime(embedded_text("texts/trainer.1")), fmt::arg("version", troff_escaped(LOCKSTEP_VERSION)),
      fmt::arg("synopsis", fmt::join(synopsis, ".br\n")), fmt::arg("commands", commands),
      fmt::arg("flags", flag_terms()), fmt::arg("options", option_terms(options)), fmt::arg("codes", codes));
}

}  // namespace lockstep
