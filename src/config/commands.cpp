#include "lockstep/config/commands.h"

#include <algorithm>
#include <array>

#include "lockstep/base/embedded_text.h"
#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

constexpr std::string_view kProgram = "trainer";

CommandEntry to_command(const TextEntry& entry) {
  const std::vector<std::string> usages = entry.get_all("usage");
  const std::vector<std::string> helps = entry.get_all("does");
  CommandEntry command{.name = entry.name.substr(std::min(kProgram.size() + 1, entry.name.size())),
                       .usages = {},
                       .needs = entry.get_words("needs"),
                       .takes = entry.get_words("takes"),
                       .operand = entry.get("operand"),
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
          .elsewhere = entry.get("elsewhere"),
          .common = !entry.get("common").empty()};
}

}  // namespace

bool CommandEntry::has_flag(std::string_view flag) const {
  return std::ranges::count(needs, flag) + std::ranges::count(takes, flag) > 0;
}

std::span<const CommandEntry> command_catalog() {
  static const std::vector<CommandEntry> kCommands = [] {
    std::vector<CommandEntry> commands;
    for (const TextEntry& entry : embedded_entries("texts/commands.txt")) {
      if (entry.name.starts_with(kProgram)) commands.push_back(to_command(entry));
    }
    return commands;
  }();
  return kCommands;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const CommandEntry& command : command_catalog()) {
    if (!command.name.empty()) names.push_back(command.name);
  }
  return names;
}

std::vector<std::string> metrics_formats() {
  return {"csv"};
}

std::span<const OwnFlag> own_flags() {
  static const std::vector<OwnFlag> kFlags = [] {
    std::vector<OwnFlag> flags;
    for (const TextEntry& entry : embedded_entries("texts/commands.txt")) {
      if (entry.name.starts_with("--")) flags.push_back(to_flag(entry));
    }
    return flags;
  }();
  return kFlags;
}

std::string OwnFlag::words() const {
  return "--" + name + (value_name.empty() ? "" : " " + value_name);
}

std::span<const ExitCode> exit_codes() {
  static constexpr std::array kCodes{
      ExitCode{0, "done", "the command did what was asked for"},
      ExitCode{kExitInternal, "internal", "an error in trainer itself"},
      ExitCode{kExitConfig, "config", "the config, the command line or the launch is wrong"},
      ExitCode{kExitData, "data", "a file is missing, damaged or of the wrong kind, or cannot be written"},
      ExitCode{kExitComm, "communication", "MPI failed, or the ranks do not agree"},
      ExitCode{kExitTraining, "bad numbers", "the loss or a gradient is not a finite number"},
      ExitCode{kExitStopped, "stopped",
               "the run was asked to stop and has saved itself; started again it goes on"},
      ExitCode{kExitStalled, "stalled", "a rank did not come, and the watchdog has ended the job"},
  };
  return kCodes;
}

}  // namespace lockstep
