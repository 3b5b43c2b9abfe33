#include "sweep_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "app/setup/catalogs.h"
#include "app/setup/startup.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/config/toml.h"
#include "sweep_command.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

void refuse_ranks(Index ranks, Index ranks_per_trial) {
  if (ranks % ranks_per_trial == 0) return;
  throw ConfigError(
      fmt::format("--ranks-per-trial {} does not divide the {} ranks there are: start them with "
                  "mpirun -np {}, or give another number",
                  ranks_per_trial, ranks, std::max(ranks_per_trial, ranks - ranks % ranks_per_trial)));
}

// The settings that all trials must have as they are.
void refuse_settings(const Config& config) {
  if (config.run.dir.empty()) {
    throw ConfigError(
        "run.dir is missing: give the directory in which all trials are to be kept (--run.dir runs/NAME)");
  }
  if (config.run.resume != "auto") {
    throw ConfigError(
        fmt::format("run.resume is '{}', but trials go on by themselves: leave it out; to begin again, "
                    "name another run.dir",
                    config.run.resume));
  }
  if (!config.checkpoint.dir.empty()) {
    throw ConfigError(
        "checkpoint.dir is given, but trials have their checkpoints in their own directories: leave it out");
  }
}

// *Collective.*
SweepRequest parse_sweep_together(Communicator& world, const CommandLine& line) {
  SweepRequest request;
  agree(world, [&] { request = parse_sweep(line); });
  return request;
}

// Keys of the config that a fold, or the training on all records, stands in for.
std::set<std::string> keys_that_folds_replace(bool refit) {
  std::set<std::string> keys{"data.validation", "data.validation_labels", "data.validation_share"};
  if (refit) {
    keys.insert({"train.steps", "train.samples", "train.keep", "train.early_stopping",
                 "train.early_stopping_metric", "train.early_stopping_min_delta"});
  }
  return keys;
}

// Without what decides only how the runs are carried out, and may change from start to start.
std::string config_in_common(Config config) {
  const Index seed = config.run.seed;
  config.run = {};
  config.run.seed = seed;
  config.checkpoint = {};
  config.comm = {};
  config.debug = {};
  return to_toml(config, known_options());
}

// A list that the command line gives is not replaced by that of a trial, as another value would be.
void refuse_given_lists(const std::vector<TrialRow>& rows, const Config& config) {
  if (rows.empty()) return;
  for (const Setting& setting : rows.front().settings) {  // all trials vary the same keys
    const Option* option = find_option(known_options(), setting.key);
    if (!takes_a_list(*option) || !config.flagged.contains(setting.key)) continue;
    throw ConfigError(fmt::format("--{0} is given, and {0} is to vary: leave the flag out", setting.key));
  }
}

// The first line in which two texts differ, of each of them.
std::string describe_difference(std::string_view before, std::string_view now) {
  const auto line_of = [](std::string_view& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
  };
  while (!before.empty() || !now.empty()) {
    const std::string_view old_line = line_of(before);
    const std::string_view new_line = line_of(now);
    if (old_line != new_line) return fmt::format("it had '{}', and now there is '{}'", old_line, new_line);
  }
  return "";
}

// Another part of the sweep may be about to write sweep.toml, under a name that begins like it.
void refuse_foreign(const SweepDirectory& directory) {
  std::error_code ignored;
  if (std::filesystem::exists(directory.description(), ignored)) return;
  const std::string own = directory.description().filename().string();
  for (const auto& entry : std::filesystem::directory_iterator(directory.root, ignored)) {
    if (entry.path().filename().string().starts_with(own)) continue;
    const bool is_run = std::filesystem::exists(RunDirectory{directory.root}.config(), ignored);
    throw ConfigError(
        fmt::format("run.dir '{}' {}: name another directory for the sweep", directory.root.string(),
                    is_run ? "is the directory of a run" : "is not empty, and no sweep is in it"));
  }
}

void make_directory(const std::filesystem::path& path) {
  std::error_code error;
  create_synced_directories(path, error);
  if (error) throw DataError(fmt::format("cannot create '{}': {}", path.string(), error.message()));
}

}  // namespace

SweepState::SweepState(Communicator& world, const CommandLine& line, const std::string& word,
                       const ListTrials& list)
    : world_(world),
      line_(line),
      request_(parse_sweep_together(world, line)),
      text_(read_config_together(world, line.text("config"))) {
  agree(world_, [&] {
    const Config base = load_config(line_, text_, known_options());
    refuse_ranks(world_.size(), request_.ranks_per_trial);
    refuse_settings(base);
    const std::string& name = base.train.early_stopping_metric;
    measure_.emplace(name, std::vector{name}, true);
    for (auto& settings : list(base, request_)) {
      rows_.push_back({.number = std::ssize(rows_) + 1, .settings = std::move(settings)});
    }
    refuse_given_lists(rows_, base);
    directory_ = {.root = base.run.dir, .word = word, .part = request_.part, .parts = request_.parts};
    if (world_.rank() == 0) lock_ = directory_.open(describe_sweep(request_, config_in_common(base)));
  });
  check_view();
  read_rows();
}

void SweepState::add_refit() {
  directory_.refit = std::ssize(rows_) + 1;
  rows_.push_back({.number = directory_.refit});
}

// Every group writes into the directory, so each host must have the same one.
void SweepState::check_view() const {
  agree(world_, [&] {
    std::error_code ignored;
    if (std::filesystem::exists(directory_.claims(), ignored)) return;
    throw DataError(
        fmt::format("run.dir '{}' of rank 0 is not there on this host: several trials at a time need a "
                    "directory that all hosts share",
                    directory_.root.string()));
  });
}

// The row that an earlier start, or a group, has noted for a trial.
TrialRow SweepState::known_row(TrialRow row) const {
  const std::filesystem::path file = directory_.row(row.number);
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return row;
  TrialRow known = read_row(file);
  if (known.settings != row.settings && !row.settings.empty()) {
    throw ConfigError(fmt::format("'{}' is of a trial with {}, expected {}: name another run.dir",
                                  file.string(), describe_settings(known.settings),
                                  describe_settings(row.settings)));
  }
  const bool lost = known.state == TrialState::kDone &&
                    !std::filesystem::exists(directory_.trial(row.number).record(), ignored);
  return lost ? row : known;
}

void SweepState::read_rows() {
  Json all = Json::array();
  agree(world_, [&] {
    if (world_.rank() != 0) return;
    for (const TrialRow& row : rows_) {
      all.push_back(to_json(known_row({.number = row.number, .settings = row.settings}), measure_->name()));
    }
  });
  const Json shared =
      parse_json<Json>(broadcast_text(world_, all.dump(-1, ' ', false, Json::error_handler_t::replace)));
  for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i] = parse_row(shared[i]);
}

void SweepState::write_row(const TrialRow& row) const {
  write_file_atomically(
      directory_.row(row.number),
      to_json(row, measure_->name()).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Config SweepState::config_of(const TrialRow& row) const {
  return load_config(line_of_trial(line_, directory_, row), text_, known_options());
}

CommandLine line_of_trial(const CommandLine& line, const SweepDirectory& directory, const TrialRow& row) {
  CommandLine of_trial = line;
  of_trial.command = "";
  if (line.command == "cv") of_trial.without = keys_that_folds_replace(row.number == directory.refit);
  of_trial.settings.insert(of_trial.settings.end(), row.settings.begin(), row.settings.end());
  of_trial.settings.push_back({"run.dir", directory.trial(row.number).root.string()});
  return of_trial;
}

std::string SweepDirectory::name(Index trial) const {
  return trial == refit ? "refit" : fmt::format("{}-{:04}", word, trial);
}

std::filesystem::path SweepDirectory::lock() const {
  return root / (parts == 1 ? "lock" : fmt::format("lock-{}", part));
}

std::filesystem::path SweepDirectory::claims() const {
  return rows() / (parts == 1 ? "claims" : fmt::format("claims-{}", part));
}

RunLock SweepDirectory::open(const std::string& text) const {
  refuse_foreign(*this);
  make_directory(root);
  std::error_code ignored;
  const bool begun = std::filesystem::exists(description(), ignored);
  const std::string before = begun ? read_file(description()) : text;
  if (before != text) {
    throw ConfigError(
        fmt::format("the sweep in '{}' is another one: {}; name another run.dir, or give what it had",
                    root.string(), describe_difference(before, text)));
  }
  if (!begun) write_file_atomically(description(), text);
  RunLock held(lock(), fmt::format("run.dir '{}'", root.string()));
  std::filesystem::remove_all(claims(), ignored);
  std::filesystem::remove(stop(), ignored);
  make_directory(claims());
  return held;
}

bool SweepDirectory::claim(Index trial, Index rung) const {
  const std::filesystem::path file = claims() / fmt::format("{}-{}", name(trial), rung);
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor >= 0) {
    ::close(descriptor);
    return true;
  }
  if (errno == EEXIST) return false;
  throw DataError(fmt::format("cannot create '{}': {}", file.string(), std::strerror(errno)));
}

std::string describe_sweep(const SweepRequest& request, const std::string& config) {
  std::string text = "# A sweep: what its trials have in common, and the flags that tell them apart.\n";
  for (const std::string& grid : request.grids) text += fmt::format("# --grid {}\n", grid);
  for (const std::string& random : request.randoms) text += fmt::format("# --random {}\n", random);
  if (request.draws > 0) text += fmt::format("# --trials {}\n", request.draws);
  if (request.halving > 0) text += fmt::format("# --halving {}\n", request.halving);
  if (request.folds.folds > 0) {
    text +=
        fmt::format("# --folds {}, by {} {}\n", request.folds.folds, request.folds.by, request.folds.column);
  }
  text += fmt::format("# --ranks-per-trial {}\n", request.ranks_per_trial);
  return text + "\n" + config;
}

}  // namespace lockstep
