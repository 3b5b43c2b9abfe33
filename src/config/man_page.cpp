// trainer.1. Written in the macros of man(7): .SH a section, .SS a part of it, .TP a term (the next line)
// with an indented paragraph, \fB bold, \fI italic. In text a backslash is \e, a hyphen that can be copied is
// \-, and a line must not begin with a dot or an apostrophe, which would make it a macro.
#include <fmt/format.h>

#include "describe.h"
#include "lockstep/config/commands.h"
#include "lockstep/config/help.h"

namespace lockstep {
namespace {

std::string troff_escaped(std::string_view text) {
  std::string troff = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text) {
    switch (c) {
      case '\\':
        troff += "\\e";
        break;
      case '-':
        troff += "\\-";
        break;
      case '\'':
        troff += "\\(aq";
        break;
      case '^':
        troff += "\\(ha";
        break;
      case '~':
        troff += "\\(ti";
        break;
      case '`':
        troff += "\\(ga";
        break;
      default:
        troff += c;
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
std::string_view value_name(ValueKind kind) {
  switch (kind) {
    case ValueKind::kText:
      return "TEXT";
    case ValueKind::kBoolean:
      return "true|false";
    case ValueKind::kWholeNumber:
      return "N";
    case ValueKind::kCountOrAuto:
      return "N|auto";
    case ValueKind::kNumber:
      return "X";
    case ValueKind::kNumberList:
      return "X,...";
    case ValueKind::kTextList:
      return "TEXT,...";
  }
  return "";
}

std::string synopsis() {
  std::string lines;
  for (const CommandEntry& command : command_catalog()) {
    const std::string& words = command.usages.front().words;
    lines += (lines.empty() ? "" : ".br\n") + bold(words) + " [" + bold("--KEY") + " \\fIVALUE\\fR]...\n";
  }
  return lines;
}

std::string commands() {
  std::string terms;
  for (const CommandEntry& command : command_catalog()) {
    for (const Usage& usage : command.usages) terms += term(bold(usage.words), usage.help);
  }
  return terms;
}

std::string flags() {
  std::string terms;
  for (const OwnFlag& flag : own_flags()) {
    const std::string value = flag.value_name.empty() ? "" : fmt::format(" \\fI{}\\fR", flag.value_name);
    terms += term(bold(fmt::format("--{}", flag.name)) + value, flag.help);
  }
  terms += term(bold("-h") + ", " + bold("--help"), "one page; --help-all: every option");
  terms += term(bold("--version"), "version, commit, libraries and features; with --json for programs");
  return terms;
}

std::string option_terms(std::span<const Option> options) {
  std::string terms;
  for_each_section(options, [&terms](std::string_view section, std::span<const Option> members) {
    terms += fmt::format(".SS \"[{}] {}\"\n", section, troff_escaped(section_title(section)));
    for (const Option& option : members) {
      std::string head = bold("--" + option.key);
      if (!option.alias.empty()) head += ", " + bold("--" + option.alias);
      terms +=
          term(fmt::format("{} \\fI{}\\fR", head, troff_escaped(value_name(option.kind))), describe(option));
    }
  });
  return terms;
}

std::string exit_terms() {
  std::string terms;
  for (const ExitCode& exit : exit_codes()) {
    terms += term(bold(std::to_string(exit.code)), fmt::format("{}: {}", exit.word, exit.help));
  }
  return terms;
}

constexpr std::string_view kDescription =
    R"(trains a neural network on the ranks of an MPI launcher, on clusters of CPUs.
What is trained, on which data and how stands in one file in TOML.
Each option is a key of that file and a flag: \fBlr\fR in section \fB[train]\fR is \fB\-\-train.lr\fR.
The flag wins over the file, the file over the default.
Without a command, trainer trains.
)";

constexpr std::string_view kFiles =
    R"(.TP
share/lockstep/configs, beside the directory of the program
examples of configs, \fBREFERENCE.md\fR with every option and every name of layers, losses, optimizers and formats,
and guides
.TP
share/lockstep/scripts/slurm/train.sbatch
a Slurm job that goes on by itself until the run is done
.TP
share/lockstep/scripts/run\-until\-done
starts a run again until it is done, without a batch system
)";

}  // namespace

std::string man_page(std::span<const Option> options) {
  return fmt::format(
      ".\\\" Written by the program: trainer reference --format man\n"
      ".TH TRAINER 1 \"\" \"lockstep {}\" \"Lockstep\"\n"
      ".SH NAME\ntrainer \\- trains neural networks on CPU clusters with MPI\n"
      ".SH SYNOPSIS\n.nh\n{}.hy\n"
      ".SH DESCRIPTION\n{} {}.SH COMMANDS\n{}.SH FLAGS\n{}.SH OPTIONS\n{}.SH \"EXIT STATUS\"\n{}.SH FILES\n{}"
      ".SH \"SEE ALSO\"\n.BR mpirun (1),\n.BR sbatch (1)\n",
      troff_escaped(LOCKSTEP_VERSION), synopsis(), bold("trainer"), kDescription, commands(), flags(),
      option_terms(options), exit_terms(), kFiles);
}

}  // namespace lockstep
