#include "front_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <sstream>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/config/commands.h"
#include "lockstep/config/trials.h"
#include "toml_reader.h"

namespace lockstep {
namespace {

// CLI11 takes the next argument as the value of "--key=", whose value is the empty text.
std::vector<std::string> split_at_equals(const std::vector<std::string>& arguments) {
  std::vector<std::string> split;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (argument.starts_with("--") && equals != std::string::npos) {
      split.push_back(argument.substr(0, equals));
      split.push_back(argument.substr(equals + 1));
    } else {
      split.push_back(argument);
    }
  }
  return split;
}

// Refuses a list that is given twice: both lists may be meant, or the last one.
void check_given_once(const Option& option, const std::vector<std::string>& texts) {
  if (!takes_a_list(option)) return;
  for (const std::string& text : texts) {
    if (text == texts.front()) continue;
    throw ConfigError(fmt::format("--{0} is given twice, as '{1}' and '{2}'; give one list: --{0} {1},{2}",
                                  option.key, texts.front(), text));
  }
}

}  // namespace

FrontEnd::FrontEnd(std::span<const Option> options) : options_(options) {
  app_.set_help_flag();
  app_.allow_extras();
  command_ = app_.add_option("command");
  help_ = app_.add_flag("-h,--help");
  help_all_ = app_.add_flag("--help-all");
  version_ = app_.add_flag("--version");
  for (const Option& option : options) {
    flags_.push_back(add_value_flag("--" + option.key + (option.alias.empty() ? "" : ",--" + option.alias)));
  }
  for (const OwnFlag& flag : own_flags()) {
    const std::string name = "--" + flag.name;
    own_flags_.emplace(flag.name, flag.value_name.empty() ? app_.add_flag(name) : add_value_flag(name));
  }
}

void FrontEnd::parse(const std::vector<std::string>& arguments) {
  std::vector<std::string> pending = split_at_equals(arguments);
  const std::string last = pending.empty() ? "" : pending.back();
  std::reverse(pending.begin(), pending.end());  // CLI11 takes the last argument first
  try {
    app_.parse(std::move(pending));
  } catch (const CLI::ArgumentMismatch&) {  // only the last flag can be without its value
    throw ConfigError(fmt::format("{}: a value is missing after it{}", excerpt(last), expectation(last)));
  }
}

void FrontEnd::read_file(const ConfigText& file) {
  for (std::size_t i = 0; i < options_.size(); ++i) {
    if (flags_[i]->count() > 0) flagged_.insert(options_[i].key);
  }
  app_.config_formatter(std::make_shared<TomlFormat>(options_, file.file));
  std::istringstream in(file.text);
  app_.parse_from_stream(in);
}

void FrontEnd::check_flags() const {
  for (const std::string& extra : app_.remaining()) {
    if (extra.starts_with('-')) throw ConfigError(describe_unknown_flag(extra));
  }
  for (std::size_t i = 0; i < options_.size(); ++i) {
    if (flags_[i]->count() == 0) continue;
    check_given_once(options_[i], flags_[i]->results());
    const std::string& text = flags_[i]->results().back();
    if (options_[i].accepts(text)) continue;
    const std::string refusal = describe_refusal(options_[i], text, in_quotes(text));
    throw ConfigError(fmt::format("--{}: {}", options_[i].key, refusal));
  }
}

std::set<std::string> FrontEnd::assign_all(const std::set<std::string>& without) const {
  std::set<std::string> given;
  for (std::size_t i = 0; i < options_.size(); ++i) {
    if (flags_[i]->count() == 0 || loses_to_a_flag(options_[i])) continue;
    if (without.contains(options_[i].key)) continue;
    options_[i].assign(flags_[i]->results().back());
    given.insert(options_[i].key);
  }
  return given;
}

std::optional<std::string> FrontEnd::wanted_text() const {
  for (const CLI::Option* text : {help_, help_all_, version_}) {
    if (text->count() > 0) return text->get_name();
  }
  return std::nullopt;
}

std::optional<std::string> FrontEnd::command() const {
  if (command_->count() == 0) return std::nullopt;
  return command_->results().front();
}

std::optional<std::string> FrontEnd::value(std::string_view own_flag) const {
  const CLI::Option* flag = own_flags_.find(own_flag)->second;
  if (flag->count() == 0) return std::nullopt;
  return flag->results().back();
}

std::vector<std::string> FrontEnd::values(std::string_view own_flag) const {
  const CLI::Option* flag = own_flags_.find(own_flag)->second;
  return flag->count() == 0 ? std::vector<std::string>() : flag->results();
}

// `--train.steps 5` is meant instead of the file's `epochs`, not beside it.
bool FrontEnd::loses_to_a_flag(const Option& option) const {
  const std::string& key = option.key;
  if (flagged_.contains(key)) return false;
  if (option.earlier && flagged_.contains("data.validation")) return true;
  for (const Alternatives& alternatives : alternative_keys()) {
    const std::vector<std::string>& group = alternatives.keys;
    const bool in_group = std::ranges::find(group, key) != group.end();
    const auto flagged = [&](const std::string& other) { return flagged_.contains(other); };
    if (in_group && std::ranges::any_of(group, flagged)) return true;
  }
  return false;
}

// The last of several values counts, so that a script can append a flag to override another.
CLI::Option* FrontEnd::add_value_flag(const std::string& names) {
  return app_.add_option(names)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

std::string FrontEnd::expectation(std::string_view flag) const {
  for (const Option& option : options_) {
    if (flag == "--" + option.key) return fmt::format(": expected {}", option.expected);
  }
  return "";
}

std::string FrontEnd::describe_unknown_flag(std::string_view flag) const {
  const std::string_view name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  std::vector<std::string> short_names{"help", "help-all", "version"};
  for (const auto& [own_flag, option] : own_flags_) short_names.push_back(own_flag);
  for (const Option& option : options_) {
    if (!option.alias.empty()) short_names.push_back(option.alias);
  }
  const std::string nearest =
      describe_other_word(name, options_).empty() ? nearest_name(name, short_names) : "";
  const std::string hint =
      nearest.empty() ? suggest_key(name, options_, "--") : fmt::format("did you mean '--{}'?", nearest);
  return fmt::format("{}: unknown option; {}", excerpt(flag),
                     hint.empty() ? "'trainer --help-all' lists them" : hint);
}

}  // namespace lockstep
