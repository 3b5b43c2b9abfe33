// trainer init: a first config for a data file, and the commands to go on with.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <thread>

#include "app/commands.h"
#include "app/setup/catalogs.h"
#include "app/setup/experiment.h"
#include "app/setup/outputs.h"
#include "init_config.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/data/byte_stream.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// "data/x_train.npy.gz" -> "x_train"; "data.h5:images" -> "data".
std::string name_of(const std::string& path) {
  std::string name = fs::path(split_array_path(path).file).filename().string();
  const std::size_t end = name.find('.', 1);
  name = name.substr(0, end);
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    if (!plain) c = '_';
  }
  return name.empty() ? "first" : name;
}

std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./:,=+@%").find(c) != std::string_view::npos;
  });
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

struct Commands {
  std::string train;
  std::string predict;
};

Commands commands_for(const InitData& data, const Config& config, const std::string& file) {
  const Index cores = std::max<Index>(1, std::thread::hardware_concurrency());
  const Index most = std::min(cores, config.train.replicas_of(cores));
  const auto ranks = static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(most)));
  return {.train = fmt::format("mpirun -np {} trainer --config {}", ranks, shell_word(file)),
          .predict = fmt::format("trainer predict --model {} --input {} --output predictions.csv",
                                 shell_word(config.run.dir), shell_word(data.input))};
}

std::string describe_sets(const InitData& data, const Config& config) {
  const std::string validation =
      !config.data.validation.empty() ? fmt::format("validation {}", config.data.validation)
      : config.data.validation_share > 0
          ? fmt::format("validation {:g} % of the records, held back", 100 * config.data.validation_share)
          : fmt::format("no validation: {} records are too few to hold any back", with_commas(data.records));
  return fmt::format("{}; {}", validation,
                     config.data.test.empty() ? "no test set" : "test " + config.data.test);
}

std::string report_of(const InitData& data, const Task& task, const Experiment& experiment) {
  const Config& config = experiment.config;
  std::string text = fmt::format("{}: {} records, {} feature{} each, format {}\n", data.options.train,
                                 with_commas(data.records), to_string(data.features),
                                 data.features.size() == 1 ? "" : "s", data.format);
  const auto line = [&text](const char* word, const std::string& value) {
    text += fmt::format("  {:<8}{}\n", word, value);
  };
  line("task", task.text);
  line("sets", describe_sets(data, config));
  line("model", fmt::format("{} ({} parameters)",
                            config.model.layers.empty() ? config.model.preset : config.model.layers,
                            with_commas(experiment.model->layout().count())));
  if (data.table && config.model.preset.empty())
    line("or", "with --preset tabular: an ensemble of perceptrons, which trains longer");
  const std::string scale = doubt_scale(data, task);
  if (!scale.empty()) text += fmt::format("  look at {}\n", scale);
  for (const std::string& doubt : data.doubts) text += fmt::format("  look at {}\n", doubt);
  return text;
}

// Reads the config as a run would: what init writes has to work.
Experiment try_out(const std::string& file, const std::string& text) {
  const LoadedConfig loaded = load_checked_config({}, {file, text}, {});
  Experiment experiment = make_experiment(loaded, alone());
  experiment.plan(1, {});
  return experiment;
}

}  // namespace

int init_command(const CommandLine& line) {
  const LoadedConfig given = load_config(line, {}, known_names());
  if (given.flagged.contains("data.train")) {
    throw ConfigError(
        fmt::format("the data file stands after init: trainer init {}", excerpt(given.config.data.train)));
  }
  CommandLine named = line;
  if (named.output.empty()) named.output = name_of(line.data) + ".toml";
  check_outputs(named, {split_array_path(line.data).file});
  const InitData data = read_init_data(line.data, given.config.data);
  const Task task = choose_task(data, line.task);
  Config flags;
  const std::vector<Option> options = declare_options(flags, known_names());
  flags = given.config;
  const std::vector<CommentedSetting> settings =
      with_flags(choose_settings(data, task, name_of(named.output == "-" ? line.data : named.output),
                                 given.config.model.preset),
                 options, given.flagged);
  const std::string file = is_stream(named.output) ? "FILE" : named.output;
  const std::string body = to_toml(settings, options, {});
  const Experiment experiment = try_out(file, body);
  const Commands commands = commands_for(data, experiment.config, file);
  const std::string text =
      to_toml(settings, options,
              {fmt::format("A first config for {}: {}", excerpt(line.data), task.text),
               "  " + excerpt(commands.train, 200), "  " + excerpt(commands.predict, 400),
               "'trainer help KEY' explains a key, as in 'trainer help train.lr'."});
  write_output(named.output, text);
  print_report(named, fmt::format("{}\nwritten: {}\n\nNext:\n  {}\n  {}\n", report_of(data, task, experiment),
                                  describe_output(named.output), commands.train, commands.predict));
  return 0;
}

}  // namespace lockstep
