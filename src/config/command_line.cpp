#include "lockstep/config/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <sstream>

#include "front_end.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/quoted.h"
#include "lockstep/base/text.h"
#include "planned_nodes.h"

namespace lockstep {
namespace {

using Command = CommandLine::Command;

struct CommandWords {
  Command command;
  std::optional<std::string> name;  // none trains
  std::string usage;
  std::vector<std::string_view> needs;  // flags that it cannot do without
  std::vector<std::string_view> reads;  // flags that it may have
  bool takes_data = false;              // a file stands after its name
};

const std::vector<CommandWords>& commands() {
  static const std::vector<CommandWords> kCommands{
      {Command::kTrain, std::nullopt, "mpirun -np N trainer --config FILE", {"config"}, {}},
      {Command::kPlan,
       "plan",
       "trainer plan --config FILE --np 1,2,4,8",
       {"config"},
       {"np", "nodes", "ranks-per-node", "cores-per-node", "latency", "bandwidth", "from", "json",
        "overwrite"}},
      {Command::kBench,
       "bench",
       "mpirun -np N trainer bench --config FILE --json FILE",
       {"config"},
       {"json", "overwrite"}},
      {Command::kEval, "eval", "trainer eval --model RUN", {"model"}, {"config"}},
      {Command::kPredict,
       "predict",
       "trainer predict --model RUN --input DATA --output FILE",
       {"model", "input", "output"},
       {"config", "overwrite", "allow-nan"}},
      {Command::kExport,
       "export",
       "trainer export --model RUN --format npz --output FILE",
       {"model", "format", "output"},
       {"config", "overwrite"}},
      {Command::kInspect, "inspect", "trainer inspect DATA --label NAME", {}, {"json", "overwrite"}, true},
      {Command::kReference, "reference", "trainer reference", {}, {"config"}},
  };
  return kCommands;
}

// A flag of the program itself, and what who gives it to the wrong command may have meant.
struct OwnFlag {
  std::string_view name;
  std::string_view meant;
  bool has_value = true;
};
constexpr std::array kOwnFlags{
    OwnFlag{"config", ""},
    OwnFlag{"np", "mpirun -np sets the number of ranks of a run"},
    OwnFlag{"nodes", "mpirun and its hosts decide where a run is"},
    OwnFlag{"ranks-per-node", "mpirun --map-by ppr:K:node puts K ranks of a run on each node"},
    OwnFlag{"cores-per-node", "mpirun --bind-to says which cores the ranks of a run get"},
    OwnFlag{"latency", "a run takes the network as it is"},
    OwnFlag{"bandwidth", "a run takes the network as it is"},
    OwnFlag{"from", "a run starts from given weights with --init"},
    OwnFlag{"model", "layers are set with --model.layers"},
    OwnFlag{"input", "the data of a run is set with --data.train, --data.validation and --data.test"},
    OwnFlag{"output", "the directory of a run is set with --run.dir"},
    OwnFlag{"json", "a run writes summary.json and metrics.jsonl into --run.dir"},
    OwnFlag{"format", "that of the data is set with --data.format"},
    OwnFlag{"overwrite", "a run is never overwritten: name another directory with --run.dir", false},
    OwnFlag{"allow-nan", "what a run does about bad numbers is set with --train.on_nan", false},
};

void add_own_flags(FrontEnd& front) {
  for (const OwnFlag& flag : kOwnFlags) front.add_own_flag(flag.name, flag.has_value);
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const CommandWords& words : commands()) {
    if (words.name) names.push_back(*words.name);
  }
  return names;
}

const CommandWords& find_command(const std::optional<std::string>& wanted) {
  for (const CommandWords& words : commands()) {
    if (words.name == wanted) return words;
  }
  const std::string name = wanted.value_or("");
  if (name.ends_with(".toml")) {
    throw ConfigError(
        fmt::format("unexpected {}; did you mean --config {}?", in_quotes(name), excerpt(name)));
  }
  if (name.find('=') != std::string::npos && !name.starts_with('-')) {
    throw ConfigError(fmt::format("unexpected {}; did you mean --{}?", in_quotes(name), excerpt(name)));
  }
  const std::vector<std::string> known = command_names();
  throw ConfigError(fmt::format("unknown command {}{} (known: {}; to train, give no command)",
                                in_quotes(name), suggestion(name, known), fmt::join(known, ", ")));
}

bool reads(const CommandWords& words, std::string_view flag) {
  return std::ranges::count(words.needs, flag) + std::ranges::count(words.reads, flag) > 0;
}

// "--np belongs to 'trainer plan'; mpirun -np sets the number of ranks of a run"
std::string describe_misplaced(const OwnFlag& flag) {
  std::vector<std::string> owners;
  for (const CommandWords& words : commands()) {
    if (reads(words, flag.name)) owners.push_back(fmt::format("'trainer {}'", words.name.value_or("")));
  }
  return fmt::format("--{} belongs to {}; {}", flag.name, fmt::join(owners, ", "), flag.meant);
}

void check_command(const CommandWords& words, const FrontEnd& front) {
  const std::vector<std::string> operands = front.operands();
  const std::size_t wanted = words.takes_data ? 1 : 0;
  if (operands.size() > wanted) {
    throw ConfigError(
        fmt::format("unexpected argument {}; 'trainer --help' shows the usage", in_quotes(operands[wanted])));
  }
  if (operands.size() < wanted) throw ConfigError(fmt::format("the file is missing; usage: {}", words.usage));
  for (const OwnFlag& flag : kOwnFlags) {
    if (front.value(flag.name) && !reads(words, flag.name)) throw ConfigError(describe_misplaced(flag));
  }
  for (const std::string_view flag : words.needs) {
    if (!front.value(flag).value_or("").empty()) continue;
    throw ConfigError(fmt::format("--{} is missing; usage: {}{}", flag, words.usage,
                                  flag == "config"
                                      ? "\nconfigs/ has examples, and 'trainer --help' shows the options"
                                  : flag == "model" ? ", where RUN is the directory of a run"
                                                    : ""));
  }
}

std::vector<Index> parse_world_sizes(const std::string& text) {
  std::vector<Index> sizes;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    const auto size = ValueType<Index>::parse(item);
    sizes.push_back(size.value_or(0));
  }
  constexpr Index kMaxRanks = 1 << 20;
  const bool fits =
      std::all_of(sizes.begin(), sizes.end(), [](Index size) { return size >= 1 && size <= kMaxRanks; });
  if (sizes.empty() || !fits || text.ends_with(',')) {
    throw ConfigError(fmt::format("--np: expected numbers of ranks from 1 to {}, such as 1,2,4,8, found {}",
                                  kMaxRanks, in_quotes(text)));
  }
  return sizes;
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
  add_own_flags(front);
  front.parse(arguments);
  CommandLine line;
  line.arguments = arguments;
  if (const std::optional<Command> text = front.wanted_text()) {
    line.command = *text;
    return line;
  }
  front.check_flags();
  const CommandWords& words = find_command(front.command());
  check_command(words, front);
  line.command = words.command;
  if (words.takes_data) line.data = front.operands().front();
  line.config_file = front.value("config").value_or("");
  line.model = front.value("model").value_or("");
  line.input = front.value("input").value_or("");
  line.output = front.value("output").value_or("");
  line.json = front.value("json").value_or("");
  line.overwrite = front.value("overwrite").has_value();
  line.allow_nan = front.value("allow-nan").has_value();
  line.format = front.value("format").value_or("");
  if (front.value("np")) line.plan_np = parse_world_sizes(*front.value("np"));
  line.planned = parse_planned_nodes(front, line.config_file);
  return line;
}

ConfigText read_config_file(const std::string& file) {
  constexpr std::uintmax_t kMaxBytes = 16 << 20;
  std::error_code ignored;  // reading the file tells the reason
  const std::uintmax_t bytes = std::filesystem::file_size(file, ignored);
  if (!ignored && bytes > kMaxBytes) {
    throw ConfigError(fmt::format("--config: '{}' has {}, expected at most {} in a config", file,
                                  human_bytes(static_cast<double>(bytes)), human_bytes(kMaxBytes)));
  }
  try {
    return {file, read_file(file)};
  } catch (const DataError& error) {
    if (std::filesystem::exists(file, ignored)) throw ConfigError(fmt::format("--config: {}", error.what()));
    const std::string nearest = nearest_config_file(file);
    const std::string hint =
        nearest.empty() ? "; configs/ has examples" : fmt::format("; did you mean '{}'?", nearest);
    throw ConfigError(fmt::format("--config: {}{}", error.what(), hint));
  }
}

LoadedConfig load_config(const CommandLine& line, const ConfigText& file, const KnownNames& names) {
  LoadedConfig loaded;
  const std::vector<Option> options = declare_options(loaded.config, names);
  FrontEnd front(options);
  add_own_flags(front);
  front.parse(line.arguments);
  front.check_flags();
  front.read_file(file);
  loaded.given = front.assign_all();
  loaded.flagged = front.flagged();
  return loaded;
}

}  // namespace lockstep
