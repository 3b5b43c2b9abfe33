// The ranks are divided into groups of neighbours. Each group takes the next trial that no other has taken:
// its first rank, the leader, makes a file that only one can make (SweepDirectory::claim), which needs no
// rank that answers while it trains. Then the group trains as the ranks of a run of their own: on a
// communicator of their own, in the run directory of the trial, with the config that the flags of the trial
// complete.
//
// A trial fails alone if all its ranks agree on the error, as they do on wrong configs, wrong files and bad
// numbers. What one rank alone meets, such as a failed MPI call, ends the job, as it ends a run.
#include "sweep_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "app/commands.h"
#include "app/setup/catalogs.h"
#include "app/setup/outputs.h"
#include "app/setup/startup.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/log.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/process.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/train/storage/checkpoint.h"
#include "lockstep/train/storage/run_record.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

void refuse_ranks(Index ranks, Index ranks_per_trial) {
  const Index over = ranks % ranks_per_trial;
  error_if(over != 0,
           "--ranks-per-trial {} does not divide {}: start them with mpirun -np {}, or give another number",
           ranks_per_trial, plural(ranks, "rank"), std::max(ranks_per_trial, ranks - over));
}

// The settings that all trials must have as they are.
void refuse_settings(const Config& config) {
  error_if(config.run.dir.empty(),
           "run.dir is missing: give the directory in which all trials are to be kept (--run.dir runs/NAME)");
  error_if(config.run.resume != "auto",
           "run.resume is '{}', but trials go on by themselves: leave it out; to begin again, "
           "name another run.dir",
           config.run.resume);
  error_if(
      !config.checkpoint.dir.empty(),
      "checkpoint.dir is given, but trials have their checkpoints in their own directories: leave it out");
}

// Keys of the config that a fold, or the training on all records, stands in for.
std::set<std::string> keys_that_folds_replace(bool refit) {
  std::set<std::string> keys{"data.validation_labels"};
  if (refit) {
    keys.insert({"data.validation", "train.steps", "train.samples", "train.keep", "train.early_stopping",
                 "train.early_stopping_metric", "train.early_stopping_min_delta"});
  }
  return keys;
}

// A list that the command line gives is not replaced by that of a trial, as another value would be.
void refuse_given_lists(const std::vector<std::vector<Setting>>& trials, const Config& config) {
  if (trials.empty()) return;
  for (const Setting& setting : trials.front()) {  // all trials vary the same keys
    const Option* option = find_option(known_options(), setting.key);
    if (!takes_a_list(*option) || !config.flagged.contains(setting.key)) continue;
    throw ConfigError("--{0} is given, and {0} is to vary: leave the flag out", setting.key);
  }
}

std::string describe_end(const TrialRow& row, const Measure& measure) {
  std::string text = row.state == TrialState::kPaused ? "waits" : to_string(row.state);
  if (row.state == TrialState::kFailed) return fmt::format("{} ({}): {}", text, row.exit_code, row.reason);
  if (row.score) {
    const std::string value = row.is_measured() ? fmt::format("{:.4f}", row.score->value) : "undefined";
    text += fmt::format(": validation {} {} after epoch {:.2f}", measure.name(), value, row.score->epoch);
  }
  return text;
}

// *Collective over the ranks of a trial.* Whether its run went to its end on a full disk, and cannot write
// what it lost: it is made again then, beside what is there.
bool lost_its_end(Communicator& comm, const RunDirectory& run) {
  return broadcast_value(comm, agree(comm, [&] {
                           return comm.rank() == 0 && !lost_files(run).empty() &&
                                  CheckpointDirectory(run.checkpoints()).steps().empty();
                         }));
}

}  // namespace

SweepState::SweepState(Communicator& world, const CommandLine& line, const std::string& word,
                       const ListTrials& list)
    : world_(world), line_(line) {
  agree(world_, [&] {
    request_ = parse_sweep(line_);
    if (world_.rank() == 0) check_outputs(line_, files_read(line_));
  });
  text_ = read_config_together(world_, line_.text("config"));
  Config base;
  std::string description;  // rank 0
  agree(world_, [&] {
    base = load_config(line_, text_, known_options());
    refuse_ranks(world_.size(), request_.ranks_per_trial);
    refuse_settings(base);
    const std::string& name = base.train.early_stopping_metric;
    measure_.emplace(name, std::vector{name}, true);
    refuse_given_lists(list(base, request_), base);
    directory_ = {.root = base.run.dir, .word = word, .part = request_.part, .parts = request_.parts};
    if (world_.rank() > 0) return;
    lock_ = directory_.open([&](const std::string& before) {
      try {
        return description = describe_sweep(before, request_, base, list);
      } catch (const ConfigError& error) {
        throw ConfigError("the sweep in '{}' is another one: {}", directory_.root.string(), error.what());
      }
    });
  });
  description = broadcast_text(world_, description);
  for (auto& settings : described_trials(description, request_, base, list)) {
    rows_.push_back({.number = std::ssize(rows_) + 1, .settings = std::move(settings)});
  }
  check_view();
  const std::string change = find_changed_data(world_, directory_.data());
  if (!change.empty()) throw AgreedError(change, kExitConfig);
  read_rows();
  take_up_again();
}

// A failure that may be over by now is tried again, and so is a trial that had met other data.
void SweepState::take_up_again() {
  agree(world_, [&] {
    for (TrialRow& row : rows_) {
      const bool is_mine = (row.number - 1) % request_.parts == request_.part - 1;
      const bool was_refused = row.state == TrialState::kStopped && row.exit_code == kExitConfig;
      if (!is_mine || (!row.may_pass() && !was_refused)) continue;
      if (world_.rank() == 0 && row.state == TrialState::kFailed) {
        log_info("{} failed with exit code {}, and is tried again", directory_.name(row.number),
                 row.exit_code);
      }
      row.state = TrialState::kStopped;
      row.reason.clear();
      row.exit_code = 0;
      row.was_held = false;
      if (world_.rank() == 0) write_row(row);
    }
  });
}

void SweepState::add_refit(std::vector<Setting> settings) {
  directory_.refit = std::ssize(rows_) + 1;
  rows_.push_back({.number = directory_.refit, .settings = std::move(settings)});
  read_rows();
}

// Every group writes into the directory, so each host must have the same one.
void SweepState::check_view() const {
  agree(world_, [&] {
    error_if<DataError>(!is_there(directory_.claims()),
                        "run.dir '{}' of rank 0 is not there on this host: several trials at a time need a "
                        "directory that all hosts share",
                        directory_.root.string());
  });
}

// The row that an earlier start, or a group, has noted for a trial.
TrialRow SweepState::known_row(TrialRow row) const {
  const std::filesystem::path file = directory_.row(row.number);
  if (!is_there(file)) return row;
  TrialRow known = read_row(file);
  error_if(!row.settings.empty() && known.settings != row.settings,
           "'{}' is of a trial with {}, expected {}: name another run.dir", file.string(),
           describe_settings(known.settings), describe_settings(row.settings));
  const bool lost = known.state == TrialState::kDone && !is_there(directory_.trial(row.number).record());
  return lost ? row : known;
}

void SweepState::read_rows() {
  Json all = Json::array();
  agree_on_first(world_, [&] {
    for (const TrialRow& row : rows_) {
      all.push_back(to_json(known_row({.number = row.number, .settings = row.settings}), measure_->name()));
    }
  });
  const Json shared =
      parse_json<Json>(broadcast_text(world_, all.dump(-1, ' ', false, Json::error_handler_t::replace)));
  for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i] = parse_row(shared[i]);
}

void SweepState::write_row(const TrialRow& row) const {
  write_file_atomically(directory_.row(row.number), indented(to_json(row, measure_->name())));
}

CommandLine SweepState::line_of(const TrialRow& row) const {
  CommandLine of_trial = line_;
  of_trial.command = "";
  if (request_.folds.folds > 0) of_trial.without = keys_that_folds_replace(row.number == directory_.refit);
  of_trial.settings.insert(of_trial.settings.end(), row.settings.begin(), row.settings.end());
  of_trial.settings.push_back({"run.dir", directory_.trial(row.number).root.string()});
  return of_trial;
}

Config SweepState::config_of(const TrialRow& row) const {
  return load_config(line_of(row), text_, known_options());
}

void SweepState::announce(const std::string& trials) const {
  const Index ranks = request_.ranks_per_trial;
  log_info("{}, {} at a time on {} each, in {}", trials, world_.size() / ranks, plural(ranks, "rank"),
           directory_.root.string());
}

void SweepState::report(const Json& results, const std::string& table, bool stopped) const {
  write_file_atomically(directory_.results(), indented(results));
  if (line_.has("json") && !stopped) write_output(line_.text("json"), indented(results));
  log_info("{}", table);
  std::error_code ignored;
  std::filesystem::remove_all(directory_.claims(), ignored);
  // Other parts have to see a wish to stop, too; the next start removes it.
  if (directory_.parts == 1) std::filesystem::remove(directory_.stop(), ignored);
}

int SweepState::report_stop(Index done, Index count, const std::string& what) const {
  const auto refused = std::ranges::find_if(rows_, [](const TrialRow& row) {
    return row.state == TrialState::kStopped && row.exit_code == kExitConfig;
  });
  if (refused != rows_.end()) {
    if (world_.rank() == 0) log_error("{}", refused->reason);
    return kExitConfig;
  }
  if (world_.rank() == 0) {
    log_info("stopped: {} of {} {} are done; the same command goes on from there", with_commas(done),
             with_commas(count), what);
  }
  return kExitStopped;
}

bool SweepState::train(std::span<const Index> pending, const Rung& rung, const AfterTrial& after) {
  if (!group_) {
    group_ = world_.split(world_.rank() / request_.ranks_per_trial, world_.rank());
    const bool to_errors = writes_to_standard_output(line_);
    if (leads()) start_log(0, to_errors ? LogTarget::kStandardError : LogTarget::kStandardOutput);
  }
  try {
    for (;;) {
      const Index next = broadcast_value(
          *group_, agree(*group_, [&] { return leads() ? take_next(pending, rung) : Index{0}; }));
      if (next == 0) break;
      run_trial(at(rows_, next - 1), rung, after);
    }
  } catch (const AgreedError& error) {
    throw Error(error.what(), error.exit_code());  // other groups do not know of it, and would wait
  }
  const bool stopped = wait_for_all();
  read_rows();
  return stopped;
}

// The number of a trial that this group now has; 0: there is none left, or no more is to be begun.
Index SweepState::take_next(std::span<const Index> pending, const Rung& rung) {
  for (const Index number : pending) {
    stops_ = stops_ || !stop_signal().empty() || is_there(directory_.stop()) ||
             is_there(directory_.passed_on_stop());
    if (stops_) {
      write_file_atomically(directory_.passed_on_stop(), "");
      return 0;
    }
    if (directory_.claim(number, rung.number)) return number;
  }
  return 0;
}

void SweepState::run_trial(TrialRow row, const Rung& rung, const AfterTrial& after) {
  if (leads()) report_begin(row);
  train(row, rung, after);
  agree_on_first(*group_, [&] {
    complete(row, rung);
    write_row(row);
    log_info("{} {}", directory_.name(row.number), describe_end(row, *measure_));
    if (row.state == TrialState::kStopped) write_file_atomically(directory_.passed_on_stop(), "");
  });
  if (row.state == TrialState::kStopped) stops_ = true;
}

// *Collective over the group.* Notes how it ended.
void SweepState::train(TrialRow& row, const Rung& rung, const AfterTrial& after) const {
  // Messages that a failed trial has left behind reach nobody there.
  const std::unique_ptr<Communicator> comm = group_->split(0, group_->rank());
  const RunLog log(directory_.name(row.number), comm->rank());
  bool has_other_data = false;
  const auto look_at = [&](const std::vector<RunData>& data) {
    const std::string change = note_data(*comm, directory_.data(), data, directory_.name(row.number));
    has_other_data = !change.empty();
    if (has_other_data) throw AgreedError(change, kExitConfig);
  };
  const auto fail = [&](const std::string& reason, int exit_code) {
    const bool stops = exit_code == kExitStopped || has_other_data;
    row.state = stops ? TrialState::kStopped : TrialState::kFailed;
    row.reason = reason;
    row.exit_code = exit_code;
    if (row.state == TrialState::kFailed && comm->rank() == 0) log_error("{}", reason);
  };
  const bool alone = comm->size() == 1;
  row.reason.clear();
  row.exit_code = 0;
  try {
    CommandLine line = line_of(row);
    if (lost_its_end(*comm, directory_.trial(row.number))) line.settings.push_back({"run.resume", "restart"});
    const RunOutcome outcome = train_run(*comm, line, text_,
                                         {.stop_files = {directory_.stop(), directory_.passed_on_stop()},
                                          .seconds_gone = since_start_.seconds(),
                                          .pause_share = rung.share,
                                          .look_at = look_at});
    row.exit_code = outcome.paused ? 0 : outcome.exit_code;
    row.state = outcome.paused           ? TrialState::kPaused
                : outcome.exit_code == 0 ? TrialState::kDone
                                         : TrialState::kStopped;
    if (row.state == TrialState::kDone && after) after(*comm, line);
  } catch (const CommError&) {
    throw;
  } catch (const AgreedError& error) {
    if (error.exit_code() == kExitComm) throw;
    fail(error.what(), error.exit_code());
  } catch (const Error& error) {
    if (!alone) throw;
    fail(error.what(), error.exit_code());
  } catch (const std::exception& error) {
    if (!alone || !is_out_of_memory(error)) throw;
    fail(describe_out_of_memory(error), kExitConfig);
  }
}

// The leader adds what the run has left in its directory.
void SweepState::complete(TrialRow& row, const Rung& rung) const {
  const RunDirectory run = directory_.trial(row.number);
  row.was_held = row.state == TrialState::kFailed && run.is_held();
  if (row.state == TrialState::kFailed) return;
  row.score = read_score(run, *measure_, keeps_best(config_of(row)));
  if (row.state == TrialState::kStopped) return;
  const double value = row.score ? row.score->value : std::numeric_limits<double>::quiet_NaN();
  row.at_rungs.resize(static_cast<std::size_t>(rung.number) + 1, value);
  if (row.state == TrialState::kDone) add_result(row, run, *measure_);
}

void SweepState::report_begin(const TrialRow& row) const {
  const bool resumes = is_there(directory_.trial(row.number).root);
  const int first = world_.rank();
  const int last = first + group_->size() - 1;
  log_info("{} {} on {}: {}", directory_.name(row.number), resumes ? "resumes" : "begins",
           first == last ? fmt::format("rank {}", first) : fmt::format("ranks {} to {}", first, last),
           describe_settings(row.settings));
}

// *Collective.* Whether a group has stopped. Ranks that wait leave their cores to those that train.
bool SweepState::wait_for_all() {
  Index stopped = stops_ ? 1 : 0;
  const std::unique_ptr<Request> all = world_.start_all_reduce_sum(as_buffer(std::span(&stopped, 1)));
  while (!all->test()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  all->wait();
  return stopped > 0;
}

}  // namespace lockstep
