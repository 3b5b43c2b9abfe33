#include "commented_setting.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/config/toml.h"

namespace lockstep {
namespace {

const Option* find_option(std::span<const Option> options, const std::string& key) {
  const auto found = std::ranges::find(options, key, &Option::key);
  return found == options.end() ? nullptr : &*found;
}

// A line of the config; a comment that does not fit beside it stands above.
std::string line_of(const CommentedSetting& setting) {
  constexpr std::size_t kColumn = 36;
  constexpr std::size_t kWidth = 120;
  const std::string line =
      fmt::format("{} = {}", setting.key.substr(setting.key.find('.') + 1), setting.value);
  if (setting.comment.empty()) return line + "\n";
  const std::string beside = fmt::format("{:<{}}  # {}\n", line, kColumn - 2, setting.comment);
  return beside.size() <= kWidth + 1 ? beside : fmt::format("# {}\n{}\n", setting.comment, line);
}

}  // namespace

std::vector<CommentedSetting> with_flags(std::vector<CommentedSetting> settings,
                                         std::span<const Option> options,
                                         const std::set<std::string>& flagged) {
  // These stand in the lines that were made of the data.
  static const std::set<std::string> kSeen{
      "data.train",     "data.train_labels", "data.format", "data.label",   "data.weight",
      "data.numeric",   "data.categorical",  "data.ignore", "data.columns", "data.header",
      "data.separator", "data.encoding",     "data.quotes"};
  for (const std::string& key : flagged) {
    if (kSeen.contains(key)) continue;
    std::set<std::string> replaced{key};
    for (const Alternatives& group : alternative_keys()) {
      if (std::ranges::count(group.keys, key) > 0) replaced.insert(group.keys.begin(), group.keys.end());
    }
    if (key == "data.validation") replaced.insert("data.validation_share");
    if (key == "data.validation_share") replaced.insert({"data.validation", "data.validation_labels"});
    std::erase_if(settings,
                  [&replaced](const CommentedSetting& setting) { return replaced.contains(setting.key); });
    const Option* option = find_option(options, key);
    if (option != nullptr) settings.push_back({key, toml_value(*option), "as given to init"});
  }
  return settings;
}

std::string to_toml(const std::vector<CommentedSetting>& settings, std::span<const Option> options,
                    const std::vector<std::string>& head) {
  std::string text;
  for (const std::string& line : head) text += fmt::format("# {}\n", line);
  std::string_view section;
  for (const Option& option : options) {
    const auto setting = std::ranges::find(settings, option.key, &CommentedSetting::key);
    if (setting == settings.end()) continue;
    if (option.section() != section) text += fmt::format("\n[{}]\n", option.section());
    section = option.section();
    text += line_of(*setting);
  }
  return text;
}

}  // namespace lockstep
