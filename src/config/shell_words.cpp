#include "shell_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lockstep {

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
