// trainer init: a first config for data, and the commands to go on with.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <thread>

#include "app/commands.h"
#include "app/setup/catalogs.h"
#include "app/setup/experiment.h"
#include "app/setup/outputs.h"
#include "app/setup/run_config.h"
#include "init.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/config/toml.h"
#include "lockstep/data/inputs/byte_stream.h"
#include "lockstep/data/inputs/reading_row.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// "data/x_train.npy.gz" -> "x_train"; "data.h5:images" -> "data".
std::string name_of(const std::string& path) {
  const fs::path file = fs::absolute(split_array_path(path).file).lexically_normal();
  std::string name = (file.has_filename() ? file : file.parent_path()).filename().string();
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

// As many ranks as this machine has cores, or fewer, a power of two; or as many threads of one process for a
// small table, whose steps are over before ranks have exchanged anything.
std::string train_command(const InitData& data, const Config& config, const std::string& file) {
  constexpr Index kSmall = 10'000'000;  // numbers
  const Index cores = std::max<Index>(1, std::thread::hardware_concurrency());
  const auto most = static_cast<std::uint64_t>(std::min(cores, config.train.replicas_of(cores)));
  if (data.table && data.records * data.features.size() <= kSmall) {
    const std::string threads = most > 1 ? fmt::format(" --train.threads {}", std::bit_floor(most)) : "";
    return fmt::format("trainer --config {}{}", shell_word(file), threads);
  }
  return fmt::format("mpirun -np {} trainer --config {}", std::bit_floor(most), shell_word(file));
}

// The command that comes after training.
std::string predict_command_of(const InitData& data, const std::string& run) {
  if (data.text) {
    return fmt::format("trainer generate {} --prompt {}", shell_word(run),
                       data.text->tokens == "ids" ? "\"12 7 9\"" : "TEXT");
  }
  const std::string& lengths = data.test ? data.options.test_lengths : data.options.train_lengths;
  return fmt::format("trainer predict {} --input {}{} --output {}", shell_word(run), shell_word(data.input),
                     lengths.empty() ? "" : " --lengths " + shell_word(lengths),
                     data.forecast ? "forecast.csv" : "predictions.csv");
}

std::string describe_sets(const InitData& data, const Experiment& experiment) {
  const Config& config = experiment.config;
  if (data.forecast || data.text) {
    const auto rows = [](const auto& set) { return set ? with_commas(set->info().rows) : "none"; };
    return fmt::format("{} to train on, {} to validate, {} to test",
                       plural(experiment.train->info().rows, "window"), rows(experiment.validation),
                       rows(experiment.test));
  }
  const Index held = validation_part(config.data) ? experiment.validation->info().rows : 0;
  const Index all = held + experiment.train->info().rows;  // those with a label
  const std::string validation =
      held > 0
          ? fmt::format("validation {} of the {} ({:.1f} %), held back", with_commas(held),
                        plural(all, "record"), 100 * static_cast<double>(held) / static_cast<double>(all))
      : !config.data.validation.empty()
          ? fmt::format("validation {}", config.data.validation)
          : fmt::format("no validation: too few to hold any back ({})", plural(data.records, "record"));
  return fmt::format("{}; {}", validation,
                     config.data.test.empty() ? "no test set" : "test " + config.data.test);
}

// The figures of report_of().
nlohmann::ordered_json to_json(const InitData& data, const Task& task, const Experiment& experiment) {
  const auto rows = [](const auto& set) { return set ? set->info().rows : 0; };
  nlohmann::ordered_json json{{"task", task.text},
                              {"sets",
                               {{"train", rows(experiment.train)},
                                {"validation", rows(experiment.validation)},
                                {"test", rows(experiment.test)}}},
                              {"parameters", experiment.model->layout().count()}};
  if (data.text) {
    json["text"] = to_json(data.text->summary);
    return json;
  }
  const LabelFacts& label = data.label;
  json.update({{"records", data.records}, {"features", experiment.train->info().features.size()}});
  const bool of_numbers = task.kind == TaskKind::kNumbers;
  if (of_numbers) json["numbers"] = to_json(label.numbers);
  for (const ValueCounts::Entry& each : label.values)
    if (!of_numbers) json["classes"].push_back({{"value", each.text}, {"count", each.count}});
  if (!task.yes.empty()) json["positive"] = task.yes;
  return json;
}

std::string report_of(const InitData& data, const Task& task, const Experiment& experiment) {
  const Config& config = experiment.config;
  const Shape& features = experiment.train->info().features;
  std::string text = data.text
                         ? describe_text(data.options.train, data.text->tokens, data.text->summary) + "\n"
                         : fmt::format("{}: {}, {} feature{} each, format {}\n", data.options.train,
                                       plural(data.records, "record"), to_string(features),
                                       features.size() == 1 ? "" : "s", data.format);
  const auto line = [&text](const char* word, const std::string& value) {
    text += fmt::format("  {:<8}{}\n", word, value);
  };
  line("task", task.text);
  line("sets", describe_sets(data, experiment));
  line("model",
       fmt::format("{} ({})", config.model.layers.empty() ? config.model.preset : config.model.layers,
                   plural(experiment.model->layout().count(), "parameter")));
  if (data.table && !data.forecast && config.model.preset.empty())
    line("or", "with --preset tabular: an ensemble of perceptrons, which trains longer");
  const std::string scale = doubt_scale(data, task);
  if (!scale.empty()) text += fmt::format("  look at {}\n", scale);
  for (const std::string& doubt : data.doubts) text += fmt::format("  look at {}\n", doubt);
  return text;
}

// Reads the config as a run would: what init writes has to work.
Experiment try_out(const std::string& file, const std::string& text, const Config& given) {
  try {
    Experiment experiment = make_experiment(load_training_config({}, {file, text}, {}), alone());
    experiment.plan(1, {});
    return experiment;
  } catch (const ConfigError& error) {
    if (given.flagged.empty()) throw;
    throw ConfigError("{}\n(init has chosen the other keys to go with --{}: give that key as a flag, too)",
                      error.what(), fmt::join(given.flagged, ", --"));
  }
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

std::vector<CommentedSetting> with_flags(std::vector<CommentedSetting> settings, const Config& given) {
  // These stand in the lines that were made of the data.
  static const std::set<std::string> kSeen{
      "data.train",    "data.train_labels", "data.format", "data.label",   "data.positive", "data.weight",
      "data.numeric",  "data.categorical",  "data.ignore", "data.columns", "data.header",   "data.separator",
      "data.encoding", "data.quotes",       "data.time",   "data.series",  "data.window",   "data.horizon",
      "data.future",   "data.tokens",       "data.unknown"};
  for (const std::string& key : given.flagged) {
    if (kSeen.contains(key)) continue;
    std::set<std::string> replaced{key};
    for (const Alternatives& group : alternative_keys()) {
      if (std::ranges::count(group.keys, key) > 0) replaced.insert(group.keys.begin(), group.keys.end());
    }
    const Option& option = *find_option(known_options(), key);
    const std::string value = option.text(given);
    const bool no_file = value.empty() || parse_validation_part(key, value);
    if (key == "data.validation" && no_file) replaced.insert("data.validation_labels");
    std::erase_if(settings,
                  [&replaced](const CommentedSetting& setting) { return replaced.contains(setting.key); });
    settings.push_back({key, toml_value(option, value), "as given to init"});
  }
  return settings;
}

std::string to_toml(const std::vector<CommentedSetting>& settings, const std::vector<std::string>& head) {
  std::string text;
  for (const std::string& line : head) text += fmt::format("# {}\n", line);
  std::string_view section;
  for (const Option& option : known_options()) {
    const auto setting = std::ranges::find(settings, option.key, &CommentedSetting::key);
    if (setting == settings.end()) continue;
    if (option.section() != section) text += fmt::format("\n[{}]\n", option.section());
    section = option.section();
    text += line_of(*setting);
  }
  return text;
}

int init_command(const CommandLine& line) {
  const ReadingRow row;
  const Config given = load_config(line, {}, known_options());
  if (given.flagged.contains("data.train")) {
    throw ConfigError("the data file stands after init: trainer init {}", excerpt(given.data.train));
  }
  const std::string& path = line.operands.front();
  const std::string output = line.has("output") ? line.text("output") : name_of(path) + ".toml";
  CommandLine named = line;
  named.flags["output"] = {output};
  check_outputs(named, {split_array_path(path).file});
  DataOptions options = options_of_series(given.data, line);
  if (line.has("lengths")) options.train_lengths = line.text("lengths");
  InitData data = read_init_data(path, options);
  error_if(!data.text && line.has("minutes"), "--minutes sizes the model of a text: leave it out");
  if (line.has("minutes")) size_model(*data.text, options, line.count("minutes", {1, 100'001}, 1));
  if (data.text && !data.text->doubt.empty()) data.doubts.push_back(data.text->doubt);
  std::optional<OutputForm> form;
  if (given.flagged.contains("train.loss")) form = make_loss(given)->form();
  const Task task = choose_task(data, line.text("task"), form);
  const std::vector<CommentedSetting> settings = with_flags(
      choose_settings(data, task, name_of(output == "-" ? path : output), given.model.preset), given);
  const std::string file = is_stream(output) ? "FILE" : output;
  const std::string body = to_toml(settings, {});
  const Experiment experiment = try_out(file, body, given);
  const std::string train = train_command(data, experiment.config, file);
  const std::string predict = predict_command_of(data, experiment.config.run.dir);
  const std::string text =
      to_toml(settings, {fmt::format("A first config for {}: {}", excerpt(path), task.text),
                         "  " + excerpt(train, 200), "  " + excerpt(predict, 400),
                         "'trainer help KEY' explains a key, as in 'trainer help train.lr'."});
  write_output(output, text);
  if (line.has("json")) write_output(line.text("json"), indented(to_json(data, task, experiment)));
  print_report(named, fmt::format("{}\nwritten: {}\n\nNext:\n  {}\n  {}\n", report_of(data, task, experiment),
                                  describe_output(output), train, predict));
  return 0;
}

}  // namespace lockstep
