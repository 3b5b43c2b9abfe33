#include "front_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <sstream>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/config/check.h"
#include "lockstep/config/trials.h"
#include "quantity.h"
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

constexpr Index kMaxRanks = Index{1} << 20;  // the limit for all nodes together

Index parse_count(const FrontEnd& front, std::string_view flag, Index otherwise) {
  const std::optional<std::string> text = front.value(flag);
  if (!text) return otherwise;
  const Index count = ValueType<Index>::parse(*text).value_or(0);
  if (count >= 1 && count <= kMaxRanks) return count;
  throw ConfigError(
      fmt::format("--{}: expected a whole number from 1 to {}, found {}", flag, kMaxRanks, in_quotes(*text)));
}

// A number about the link between nodes; 0 on one node, which has no link.
template <class Parse>
double parse_link(const FrontEnd& front, std::string_view flag, Index nodes, const std::string& expected,
                  const Parse& parse) {
  const std::optional<std::string> text = front.value(flag);
  if (!text && nodes == 1) return 0;
  if (!text) {
    throw ConfigError(fmt::format("--{} is missing: with several --nodes, expected {}", flag, expected));
  }
  const std::optional<double> value = parse(*text);
  if (!value) throw ConfigError(fmt::format("--{}: expected {}, found {}", flag, expected, in_quotes(*text)));
  return *value;
}

void refuse_without_nodes(const FrontEnd& front) {
  for (const std::string_view flag :
       {"ranks-per-node", "cores-per-node", "latency", "bandwidth", "from", "json"}) {
    if (front.value(flag) && front.command() == "plan") {
      throw ConfigError(fmt::format("--{} of plan describes machines: add --nodes", flag));
    }
  }
}

void refuse_two(const PredictRequest& request) {
  if (request.top == 0 && !request.probabilities) return;
  if (request.top > 0 && request.probabilities) {
    throw ConfigError(
        "--proba writes the probabilities of all classes, --top those of a few: give one of them");
  }
  if (!request.threshold) return;
  throw ConfigError(
      fmt::format("--threshold decides which class is written, and {} writes no such class: give one of them",
                  request.top > 0 ? "--top" : "--proba"));
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
}

void FrontEnd::add_own_flag(std::string_view name, bool has_value) {
  const std::string flag = "--" + std::string(name);
  own_flags_.emplace(name, has_value ? add_value_flag(flag) : app_.add_flag(flag));
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
    if (flags_[i]->count() == 0 || loses_to_a_flag(options_[i].key)) continue;
    if (without.contains(options_[i].key)) continue;
    options_[i].assign(flags_[i]->results().back());
    given.insert(options_[i].key);
  }
  return given;
}

std::optional<CommandLine::Command> FrontEnd::wanted_text() const {
  if (help_->count() > 0) return CommandLine::Command::kHelp;
  if (help_all_->count() > 0) return CommandLine::Command::kHelpAll;
  if (version_->count() > 0) return CommandLine::Command::kVersion;
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
bool FrontEnd::loses_to_a_flag(const std::string& key) const {
  if (flagged_.contains(key)) return false;
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

PlannedNodes parse_planned_nodes(const FrontEnd& front, const std::string& config_file) {
  if (!front.value("nodes")) {
    refuse_without_nodes(front);
    return {};
  }
  if (front.value("np")) throw ConfigError("--np and --nodes: give one of them");
  PlannedNodes planned;
  planned.nodes = parse_count(front, "nodes", 1);
  planned.ranks_per_node = parse_count(front, "ranks-per-node", 1);
  planned.cores = parse_count(front, "cores-per-node", 0);
  if (planned.ranks_per_node > kMaxRanks / planned.nodes) {
    throw ConfigError(fmt::format("--nodes {} --ranks-per-node {}: expected at most {} ranks in all",
                                  planned.nodes, planned.ranks_per_node, kMaxRanks));
  }
  planned.latency =
      parse_link(front, "latency", planned.nodes, "a time such as 500ns, 2us or 0.1ms", parse_seconds);
  planned.bandwidth = parse_link(front, "bandwidth", planned.nodes,
                                 "bits or bytes per second such as 25Gbit, 100Mbit or 3GB", parse_bandwidth);
  planned.bench = front.value("from").value_or("");
  if (planned.bench.empty()) {
    throw ConfigError(fmt::format(
        "--from is missing: how fast ranks compute is measured, not told; run 'mpirun -np 2 trainer bench "
        "--config {} --json bench.json' first and add --from bench.json",
        config_file));
  }
  return planned;
}

PredictRequest parse_predict(const FrontEnd& front) {
  PredictRequest request{.keep = front.value("keep"), .probabilities = front.value("proba").has_value()};
  if (const std::optional<std::string> text = front.value("top")) {
    request.top = ValueType<Index>::parse(*text).value_or(0);
    if (request.top < 1) {
      throw ConfigError(
          fmt::format("--top: expected a number of classes, 1 or more, found {}", in_quotes(*text)));
    }
  }
  if (const std::optional<std::string> text = front.value("threshold")) {
    request.threshold = ValueType<double>::parse(*text);
    if (!request.threshold || *request.threshold < 0 || *request.threshold > 1) {
      throw ConfigError(
          fmt::format("--threshold: expected a probability from 0 to 1, found {}", in_quotes(*text)));
    }
  }
  refuse_two(request);
  return request;
}

}  // namespace lockstep
