#include "lockstep/config/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/config/check.h"
#include "lockstep/config/toml.h"

namespace lockstep {
namespace {

using Command = CommandLine::Command;

// CLI11 with our flags. Values stay text here: the options say what is a value, in the same words as for the
// file.
class FrontEnd {
 public:
  explicit FrontEnd(std::span<const Option> options) : options_(options) {
    app_.set_help_flag();
    app_.allow_extras();
    command_ = app_.add_option("command");
    help_ = app_.add_flag("-h,--help");
    help_all_ = app_.add_flag("--help-all");
    version_ = app_.add_flag("--version");
    config_ = add_value_flag("--config");
    np_ = add_value_flag("--np");
    model_ = add_value_flag("--model");
    for (const Option& option : options) flags_.push_back(add_value_flag("--" + option.key));
  }

  /// Errors: ConfigError for a missing value.
  void parse(const std::vector<std::string>& arguments) {
    std::vector<std::string> pending = split_at_equals(arguments);
    const std::string last = pending.empty() ? "" : pending.back();
    std::reverse(pending.begin(), pending.end());  // as CLI11 takes them
    try {
      app_.parse(std::move(pending));
    } catch (const CLI::ArgumentMismatch&) {  // only the last flag can be without its value
      throw ConfigError(fmt::format("{}: a value is missing after it{}", last, expectation(last)));
    }
  }

  /// Fills the options that no flag has filled, nor an alternative of theirs.
  void read_file(const ConfigText& file) {
    for (std::size_t i = 0; i < options_.size(); ++i) {
      if (flags_[i]->count() > 0) flagged_.insert(options_[i].key);
    }
    app_.config_formatter(std::make_shared<TomlFormat>(options_, file.file));
    std::istringstream in(file.text);
    app_.parse_from_stream(in);
  }

  /// Errors: ConfigError naming the first flag that is unknown, or whose value is refused.
  void check_flags() const {
    for (const std::string& extra : app_.remaining()) {
      if (extra.starts_with('-')) throw ConfigError(describe_unknown_flag(extra));
    }
    for (std::size_t i = 0; i < options_.size(); ++i) {
      if (flags_[i]->count() == 0) continue;
      const std::string& text = flags_[i]->results().back();
      if (options_[i].accepts(text)) continue;
      const std::string refusal = describe_refusal(options_[i], text, fmt::format("'{}'", text));
      throw ConfigError(fmt::format("--{}: {}", options_[i].key, refusal));
    }
  }

  /// Writes what was filled to the fields, and returns the keys.
  std::set<std::string> assign_all() const {
    std::set<std::string> given;
    for (std::size_t i = 0; i < options_.size(); ++i) {
      if (flags_[i]->count() == 0 || loses_to_a_flag(options_[i].key)) continue;
      options_[i].assign(flags_[i]->results().back());
      given.insert(options_[i].key);
    }
    return given;
  }

  /// The flags that ask for a text, whatever else was said.
  std::optional<Command> wanted_text() const {
    if (help_->count() > 0) return Command::kHelp;
    if (help_all_->count() > 0) return Command::kHelpAll;
    if (version_->count() > 0) return Command::kVersion;
    return std::nullopt;
  }

  /// Errors: ConfigError for an unknown one, or for arguments after it that are no flags.
  Command command() const {
    const std::vector<std::string> extras = app_.remaining();
    if (!extras.empty()) {
      throw ConfigError(
          fmt::format("unexpected argument '{}'; 'trainer --help' shows the usage", extras.front()));
    }
    if (command_->count() == 0) return Command::kTrain;
    const std::string& name = command_->results().front();
    if (name == "plan") return Command::kPlan;
    if (name == "eval") return Command::kEval;
    if (name == "reference") return Command::kReference;
    throw ConfigError(describe_unknown_command(name));
  }

  std::optional<std::string> config_file() const { return last_value(config_); }
  std::optional<std::string> np() const { return last_value(np_); }
  std::optional<std::string> model() const { return last_value(model_); }

 private:
  // `--train.steps 5` is meant instead of the file's `epochs`, not beside it.
  bool loses_to_a_flag(const std::string& key) const {
    if (flagged_.contains(key)) return false;
    for (const Alternatives& alternatives : alternative_keys()) {
      const std::vector<std::string>& group = alternatives.keys;
      const bool in_group = std::ranges::find(group, key) != group.end();
      if (in_group &&
          std::ranges::any_of(group, [&](const std::string& other) { return flagged_.contains(other); })) {
        return true;
      }
    }
    return false;
  }

  // The last of several values counts, so that a script can append a flag to override another.
  CLI::Option* add_value_flag(const std::string& name) {
    return app_.add_option(name)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }

  // CLI11 takes the next argument as the value of "--key=", whose value is the empty text.
  static std::vector<std::string> split_at_equals(const std::vector<std::string>& arguments) {
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

  static std::optional<std::string> last_value(const CLI::Option* flag) {
    if (flag->count() == 0) return std::nullopt;
    return flag->results().back();
  }

  std::string expectation(std::string_view flag) const {
    for (const Option& option : options_) {
      if (flag == "--" + option.key) return fmt::format(": expected {}", option.expected);
    }
    return "";
  }

  std::string describe_unknown_flag(std::string_view flag) const {
    const std::string_view name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
    const std::vector<std::string> own_flags{"help", "help-all", "version", "config", "np", "model"};
    std::string nearest = nearest_name(name, own_flags);
    if (nearest.empty()) nearest = nearest_key(name, options_);
    const std::string hint =
        nearest.empty() ? "'trainer --help-all' lists them" : fmt::format("did you mean '--{}'?", nearest);
    return fmt::format("{}: unknown option; {}", flag, hint);
  }

  static std::string describe_unknown_command(const std::string& name) {
    const std::vector<std::string> known{"plan", "eval", "reference"};
    if (name.ends_with(".toml")) return fmt::format("unexpected '{0}'; did you mean --config {0}?", name);
    const std::string nearest = nearest_name(name, known);
    const std::string hint = nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
    return fmt::format("unknown command '{}'{} (known: plan, eval, reference; none trains)", name, hint);
  }

  std::span<const Option> options_;
  CLI::App app_;
  CLI::Option* command_ = nullptr;
  CLI::Option* help_ = nullptr;
  CLI::Option* help_all_ = nullptr;
  CLI::Option* version_ = nullptr;
  CLI::Option* config_ = nullptr;
  CLI::Option* np_ = nullptr;
  CLI::Option* model_ = nullptr;
  std::vector<CLI::Option*> flags_;  // in the order of options_
  std::set<std::string> flagged_;    // keys that the command line gives
};

std::vector<Index> parse_world_sizes(const std::string& text) {
  std::vector<Index> sizes;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    const auto size = ValueType<Index>::parse(item);
    sizes.push_back(size.value_or(0));
  }
  const bool fits = std::all_of(sizes.begin(), sizes.end(), [](Index size) { return size >= 1; });
  if (sizes.empty() || !fits || text.ends_with(',')) {
    throw ConfigError(fmt::format("--np: expected numbers of ranks such as 1,2,4,8, found '{}'", text));
  }
  return sizes;
}

void check_config_file(const CommandLine& line, std::string_view usage) {
  if (!line.config_file.empty()) return;
  throw ConfigError(fmt::format(
      "no config file given; usage: {}\nconfigs/ has examples, and 'trainer --help' shows the options",
      usage));
}

// Flags that belong to one command, and what each command cannot do without.
void check_command(const CommandLine& line, const FrontEnd& front) {
  if (line.command != Command::kPlan && front.np()) {
    throw ConfigError("--np belongs to 'trainer plan'; mpirun -np sets the number of ranks of a run");
  }
  if (line.command != Command::kEval && front.model()) {
    throw ConfigError("--model belongs to 'trainer eval'; layers are set with --model.layers");
  }
  if (line.command == Command::kTrain) check_config_file(line, "mpirun -np N trainer --config FILE");
  if (line.command == Command::kPlan) check_config_file(line, "trainer plan --config FILE --np 1,2,4,8");
  if (line.command == Command::kEval && line.eval_model.empty()) {
    throw ConfigError("no model given; usage: trainer eval --model RUN, where RUN is the directory of a run");
  }
}

// A file beside `file` with nearly that name, or "".
std::string nearest_config_file(const std::filesystem::path& file) {
  const std::filesystem::path directory = file.has_parent_path() ? file.parent_path() : ".";
  std::vector<std::string> names;
  std::error_code unreadable;  // then there is nothing to suggest
  for (const auto& entry : std::filesystem::directory_iterator(directory, unreadable)) {
    if (entry.is_regular_file(unreadable)) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  const std::string nearest = nearest_name(file.filename().string(), names);
  return nearest.empty() ? "" : (file.parent_path() / nearest).string();
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments, const KnownNames& names) {
  Config defaults;
  const std::vector<Option> options = declare_options(defaults, names);
  FrontEnd front(options);
  front.parse(arguments);
  CommandLine line;
  line.arguments = arguments;
  if (const std::optional<Command> text = front.wanted_text()) {
    line.command = *text;
    return line;
  }
  front.check_flags();
  line.command = front.command();
  line.config_file = front.config_file().value_or("");
  line.eval_model = front.model().value_or("");
  check_command(line, front);
  if (front.np()) line.plan_np = parse_world_sizes(*front.np());
  return line;
}

ConfigText read_config_file(const std::string& file) {
  try {
    return {file, read_file(file)};
  } catch (const DataError& error) {
    const std::string nearest = nearest_config_file(file);
    const std::string hint = nearest.empty() || nearest == file
                                 ? "; configs/ has examples"
                                 : fmt::format("; did you mean '{}'?", nearest);
    throw ConfigError(fmt::format("--config: {}{}", error.what(), hint));
  }
}

LoadedConfig load_config(const CommandLine& line, const ConfigText& file, const KnownNames& names) {
  LoadedConfig loaded;
  const std::vector<Option> options = declare_options(loaded.config, names);
  FrontEnd front(options);
  front.parse(line.arguments);
  front.check_flags();
  front.read_file(file);
  loaded.given = front.assign_all();
  return loaded;
}

}  // namespace lockstep
