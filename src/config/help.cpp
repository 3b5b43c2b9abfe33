#include "lockstep/config/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "lockstep/base/embedded_text.h"
#include "lockstep/base/terminal.h"
#include "lockstep/config/toml.h"
#include "option_list.h"

namespace lockstep {
namespace {

constexpr int kColumns = 110;

// `head` and then the words of `text`, in lines of at most kColumns; all of them start below the first.
std::string hanging_paragraph(const std::string& head, std::string_view text) {
  const auto indent = static_cast<int>(head.size());
  return head + wrap_lines(text, kColumns, indent, indent) + "\n";
}

std::string option_paragraphs(std::span<const Option> options) {
  std::size_t width = 0;
  for (const Option& option : options) width = std::max(width, option.key.size());
  std::string paragraphs;
  for (const Option& option : options) {
    paragraphs += hanging_paragraph(fmt::format("  --{:<{}}  ", option.key, width), describe(option));
  }
  return paragraphs;
}

std::string usage_paragraphs(bool all) {
  constexpr std::size_t kUsageWidth = 42;
  std::string paragraphs;
  for (const CommandEntry& command : command_catalog()) {
    const std::size_t shown = all ? command.usages.size() : 1;
    for (const Usage& usage : std::span(command.usages).first(shown)) {
      const std::string head = fmt::format("  {:<{}}  ", usage.words, kUsageWidth);
      const bool fits = head.size() <= kUsageWidth + 4 || std::ssize(head + usage.help) <= kColumns;
      if (!fits) paragraphs += "  " + usage.words + "\n";
      paragraphs += hanging_paragraph(fits ? head : std::string(kUsageWidth + 4, ' '), usage.help);
    }
  }
  return paragraphs;
}

std::string flag_paragraphs(bool common) {
  const int width = common ? 14 : 20;
  std::string paragraphs;
  for (const OwnFlag& flag : own_flags()) {
    if (flag.common != common) continue;
    paragraphs += hanging_paragraph(fmt::format("  {:<{}}  ", flag.words(), width), flag.help);
  }
  return paragraphs;
}

// `all`: the ways to use each command, else the first of them.
std::string first_page(bool all) {
  const TextEntry first = embedded_entries("texts/help.txt").front();
  return fmt::format("{}\n\nUsage\n{}\nFlags\n{}  {}\n", first.get("purpose"), usage_paragraphs(all),
                     flag_paragraphs(true), fmt::join(first.get_all("flag"), "\n  "));
}

std::string exit_code_line() {
  std::vector<std::string> codes;
  for (const ExitCode& exit : exit_codes()) codes.push_back(fmt::format("{} {}", exit.code, exit.word));
  return fmt::format("Exit codes: {}\n", fmt::join(codes, ", "));
}

}  // namespace

std::vector<ExitCode> exit_codes() {
  std::vector<ExitCode> codes;
  for (const TextEntry& entry : embedded_entries("texts/help.txt")) {
    if (entry.name != "first") codes.push_back({entry.name, entry.get("word"), entry.get("help")});
  }
  return codes;
}

std::string describe(const Option& option) {
  const std::string choices =
      option.choices.empty() ? "" : fmt::format("{}; ", fmt::join(option.choices, " | "));
  const std::string fallback = option.if_not_given.empty()
                                   ? fmt::format("default {}", toml_value(option, option.default_text))
                                   : fmt::format("if not given: {}", option.if_not_given);
  return fmt::format("{} ({}{})", option.help, choices, fallback);
}

std::string section_title(std::string_view section) {
  return option_text(section).get("help");
}

std::vector<std::string> known_values(const OwnFlag& flag, const CommandEntry& command,
                                      const KnownNames& names) {
  return flag.kind == "format" ? names.formats_of.at(command.name) : flag.values;
}

std::string short_help(std::span<const Option> options) {
  std::vector<Option> frequent;
  std::ranges::copy_if(options, std::back_inserter(frequent), &Option::most_used);
  return fmt::format("{}\nThe most used options; --help-all shows all {}\n{}\n{}", first_page(false),
                     options.size(), option_paragraphs(frequent), exit_code_line());
}

std::vector<std::string> help_topics(std::span<const Option> options, const KnownNames& names) {
  std::vector<std::string> topics = command_names();
  topics.insert(topics.end(), names.guides.begin(), names.guides.end());
  for_each_section(options, [&topics](std::string_view section, std::span<const Option>) {
    if (std::ranges::find(topics, section) == topics.end()) topics.emplace_back(section);
  });
  return topics;
}

std::string command_page(const CommandEntry& command, const KnownNames& names) {
  std::string page = "Usage\n";
  for (const Usage& usage : command.usages) {
    page += fmt::format("  {}\n", usage.words) + hanging_paragraph("      ", usage.help);
  }
  page += fmt::format("\nExample\n  {}\n", command.example);
  std::string flags;
  for (const OwnFlag& flag : own_flags()) {
    if (!command.has_flag(flag.name)) continue;
    std::string help = flag.help;
    if (flag.kind == "format") {
      help += fmt::format(": {}", fmt::join(known_values(flag, command, names), " | "));
    }
    flags += hanging_paragraph(fmt::format("  {:<20}  ", flag.words()), help);
  }
  if (!flags.empty()) page += "\nFlags\n" + flags;
  return page + fmt::format("\nRead on: trainer help {}; all commands: trainer --help\n", command.guide);
}

std::string option_page(const Option& option) {
  const std::string fallback =
      option.if_not_given.empty() ? toml_value(option, option.default_text) : option.if_not_given;
  std::string page = fmt::format("{}\n", option.key) + hanging_paragraph("  ", option.help + ".");
  page +=
      fmt::format("in a config:  {} in section [{}]\nas a flag:    --{}{}\n", option.name(), option.section(),
                  option.key, option.alias.empty() ? "" : fmt::format(", --{}", option.alias));
  page += fmt::format("value:        {}\ndefault:      {}\n", option.expected, fallback);
  if (!option.example.empty()) {
    page += fmt::format("example:      [{}]  {} = {}\n", option.section(), option.name(),
                        toml_value(option, option.example));
  }
  if (!option.read_if.empty()) page += fmt::format("read with:    {}\n", option.read_if);
  constexpr std::array<std::string_view, 3> kOnResume{"must stay as it is", "may change",
                                                      "may change to one that keeps the same state"};
  return page + fmt::format("on resume:    {}\n", kOnResume[static_cast<std::size_t>(option.on_resume)]);
}

std::string section_help(std::span<const Option> options, std::string_view section) {
  std::string help;
  for_each_section(options, [&](std::string_view name, std::span<const Option> members) {
    if (name != section) return;
    help = fmt::format("[{}] {}\n{}", name, section_title(name), option_paragraphs(members));
  });
  return help;
}

std::string full_help(std::span<const Option> options) {
  std::string help = fmt::format("{}\nFlags of single commands\n{}\n{}", first_page(true),
                                 flag_paragraphs(false), exit_code_line());
  for_each_section(options, [&help](std::string_view section, std::span<const Option> members) {
    help += fmt::format("\n[{}] {}\n{}", section, section_title(section), option_paragraphs(members));
  });
  return help;
}

}  // namespace lockstep
