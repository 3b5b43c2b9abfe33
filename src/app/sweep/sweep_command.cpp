// A sweep: read what there is of it, let the groups of ranks carry out the trials, compare them.
//
// With successive halving (Jamieson & Talwalkar 2016, "Non-stochastic best arm identification and
// hyperparameter optimization", algorithm 1) there are rungs on the way: after the first evaluation at or
// after E^-R, ..., E^-1 of its steps a trial pauses, and one in E trials, those with the best validation
// measure so far, goes on. A rung is a stop like any other: the trial goes on from its checkpoint, with the
// schedule of its whole length, and ends with the bits of a run that never paused.
#include "sweep_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "app/commands.h"
#include "app/setup/catalogs.h"
#include "app/setup/startup.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/log.h"
#include "lockstep/base/process.h"
#include "lockstep/base/terminal.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/config/toml.h"
#include "sweep_table.h"

namespace lockstep {
namespace {

// The value by which a trial is compared at a rung: what it had there, or what it ended with before.
std::optional<double> value_at(const TrialRow& row, Index rung) {
  if (rung < std::ssize(row.at_rungs)) {
    const double value = at(row.at_rungs, rung);
    return std::isnan(value) ? std::nullopt : std::optional(value);
  }
  if (row.state == TrialState::kDone && row.score) return row.score->value;
  return std::nullopt;
}

// The trials in `race` that go on after the rung: one in `halving`, at least one.
std::vector<Index> choose_survivors(std::span<const TrialRow> rows, std::span<const Index> race,
                                    const Measure& measure, Index halving, Index rung) {
  std::vector<TrialRow> contenders;
  for (const Index number : race) {
    const std::optional<double> value = value_at(at(rows, number - 1), rung);
    if (value) contenders.push_back({.number = number, .score = TrialScore{.value = *value}});
  }
  std::ranges::sort(contenders,
                    [&](const TrialRow& a, const TrialRow& b) { return is_before(a, b, measure); });
  const Index keep = std::min(std::max<Index>(1, std::ssize(race) / halving), std::ssize(contenders));
  std::vector<Index> survivors;
  for (Index i = 0; i < keep; ++i) survivors.push_back(at(contenders, i).number);
  std::ranges::sort(survivors);
  return survivors;
}

class Sweep {
 public:
  Sweep(Communicator& world, const CommandLine& line)
      : world_(world),
        request_(line.sweep),
        state_(world, line, "trial",
               [&](const Config& config) {
                 return list_trials(line.sweep, known_options(), static_cast<std::uint64_t>(config.run.seed));
               }),
        groups_(world, line, state_) {
    agree(world_, [this] { list_rungs(); });
  }

  // *Collective.* The exit code.
  int run() {
    stop_live_output();
    announce();
    bool stopped = false;
    for (const Rung& rung : rungs_) {
      stopped = groups_.run(choose_pending(rung), rung);
      state_.read_rows();
      if (stopped) break;
    }
    Index exit_code = 0;
    agree(world_, [&] {
      if (first()) exit_code = report(stopped);
    });
    world_.broadcast(as_buffer(std::span(&exit_code, 1)), 0);
    return static_cast<int>(exit_code);
  }

 private:
  bool first() const { return world_.rank() == 0; }
  bool is_part(const TrialRow& row) const { return (row.number - 1) % request_.parts == request_.part - 1; }

  void list_rungs();
  void refuse_without_validation() const;
  void announce() const;
  std::vector<Index> choose_pending(const Rung& rung);
  void drop_others();
  int report(bool stopped) const;

  Communicator& world_;
  const SweepRequest& request_;
  SweepState state_;
  TrialGroups groups_;
  std::vector<Rung> rungs_;
  std::vector<Index> race_;  // numbers of the trials that go on to the present rung, in order
};

// The last rung is the end of training.
void Sweep::list_rungs() {
  if (request_.halving > 0) {
    double share = 1;
    for (Index left = std::ssize(state_.rows()); left >= request_.halving; left /= request_.halving) {
      share /= static_cast<double>(request_.halving);
      rungs_.insert(rungs_.begin(), {.share = share});
    }
    refuse_without_validation();
  }
  rungs_.push_back({});
  for (Index i = 0; i < std::ssize(rungs_); ++i) at(rungs_, i).number = i;
}

void Sweep::refuse_without_validation() const {
  for (const TrialRow& row : state_.rows()) {
    if (has_validation(state_.config_of(row).config)) continue;
    throw ConfigError(
        "--halving compares trials by the validation set, and there is none: hold some records back with "
        "data.validation_share = 0.1, or give data.validation");
  }
}

void Sweep::announce() const {
  if (!first()) return;
  const Index mine =
      std::ranges::count_if(state_.rows(), [this](const TrialRow& row) { return is_part(row); });
  const Index groups = world_.size() / request_.ranks_per_trial;
  const std::string part = request_.parts > 1 ? fmt::format(", {} of them here", with_commas(mine)) : "";
  log_info("{} trials{}, {} at a time on {} rank{} each, in {}", with_commas(std::ssize(state_.rows())), part,
           groups, request_.ranks_per_trial, request_.ranks_per_trial == 1 ? "" : "s",
           state_.directory().root.string());
  const Index known = std::ranges::count_if(
      state_.rows(), [](const TrialRow& row) { return row.state != TrialState::kWaiting; });
  if (known > 0) log_info("the sweep goes on: {} of its trials have been begun before", with_commas(known));
}

// The trials that have to be taken to this rung, in the order in which they are begun. The others of the race
// are dropped. All of it follows from the values at the rungs before, so that every start decides the same.
std::vector<Index> Sweep::choose_pending(const Rung& rung) {
  if (rung.number == 0) {
    for (const TrialRow& row : state_.rows()) {
      if (is_part(row)) race_.push_back(row.number);
    }
  } else {
    race_ = choose_survivors(state_.rows(), race_, state_.measure(), request_.halving, rung.number - 1);
    drop_others();
  }
  std::vector<Index> pending;
  for (const Index number : race_) {
    const TrialRow& row = at(state_.rows(), number - 1);
    if (!row.is_over() && row.rung() < rung.number) pending.push_back(number);
  }
  return pending;
}

void Sweep::drop_others() {
  agree(world_, [&] {
    for (TrialRow& row : state_.rows()) {
      if (row.state != TrialState::kPaused || std::ranges::count(race_, row.number) > 0) continue;
      row.state = TrialState::kDropped;
      if (first()) state_.write_row(row);
    }
  });
}

// Rank 0. The exit code.
int Sweep::report(bool stopped) const {
  write_file_atomically(state_.directory().results(),
                        sweep_json(state_.rows(), state_.measure(), state_.directory())
                                .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
                            "\n");
  log_info("{}", sweep_table(state_.rows(), state_.measure(), state_.directory()));
  const auto count = [this](TrialState state) {
    return std::ranges::count_if(state_.rows(),
                                 [&](const TrialRow& row) { return is_part(row) && row.state == state; });
  };
  std::error_code ignored;
  std::filesystem::remove_all(state_.directory().claims(), ignored);
  // Other parts have to see a wish to stop, too; the next start removes it.
  if (request_.parts == 1) std::filesystem::remove(state_.directory().stop(), ignored);
  if (stopped) {
    log_info("stopped: {} of {} trials are done; the same command goes on from there",
             with_commas(count(TrialState::kDone)), with_commas(std::ssize(state_.rows())));
    return kExitStopped;
  }
  if (count(TrialState::kDone) > 0 || count(TrialState::kFailed) == 0) return 0;
  const auto failed = std::ranges::find_if(state_.rows(), [this](const TrialRow& row) {
    return is_part(row) && row.state == TrialState::kFailed;
  });
  log_error("all trials have failed");
  return failed->exit_code;
}

// The ranks are divided into groups of neighbours. Each group takes the next trial that no other has taken:
// its first rank, the leader, makes a file that only one can make (SweepDirectory::claim), which needs no
// rank that answers while it trains. Then the group trains as the ranks of a run of their own: on a
// communicator of their own, in the run directory of the trial, with the config that the flags of the trial
// complete.
//
// A trial fails alone if all its ranks agree on the error, as they do on wrong configs, wrong files and bad
// numbers. What one rank alone meets, such as a failed MPI call, ends the job, as it ends a run.

std::string describe_end(const TrialRow& row, const Measure& measure) {
  std::string text = row.state == TrialState::kPaused ? "waits" : to_string(row.state);
  if (row.state == TrialState::kFailed) return fmt::format("{} ({}): {}", text, row.exit_code, row.reason);
  if (row.score) {
    text += fmt::format(": validation {} {:.4f} after epoch {:.2f}", measure.name(), row.score->value,
                        row.score->epoch);
  }
  return text;
}

}  // namespace

int sweep_command(Communicator& world, const CommandLine& line) {
  return Sweep(world, line).run();
}

std::string describe_settings(std::span<const Setting> settings) {
  std::vector<std::string> words;
  for (const Setting& setting : settings) words.push_back(fmt::format("{} {}", setting.key, setting.value));
  return fmt::format("{}", fmt::join(words, ", "));
}

TrialGroups::TrialGroups(Communicator& world, const CommandLine& line, const SweepState& state,
                         AfterTrial after)
    : world_(world),
      line_(line),
      state_(state),
      directory_(state.directory()),
      measure_(state.measure()),
      after_(std::move(after)),
      group_(world.split(world.rank() / line.sweep.ranks_per_trial, world.rank())) {
  if (leads()) start_log(0);  // it tells of its trials
}

bool TrialGroups::run(std::span<const Index> pending, const Rung& rung) {
  try {
    for (;;) {
      Index next = 0;
      agree(*group_, [&] {
        if (leads()) next = take_next(pending, rung);
      });
      group_->broadcast(as_buffer(std::span(&next, 1)), 0);
      if (next == 0) break;
      run_trial(at(state_.rows(), next - 1), rung);
    }
  } catch (const AgreedError& error) {
    throw Error(error.what(), error.exit_code());  // other groups do not know of it, and would wait
  }
  return wait_for_all();
}

bool TrialGroups::stop_wanted() const {
  std::error_code ignored;
  return stops_ || !stop_signal().empty() || std::filesystem::exists(directory_.stop(), ignored) ||
         std::filesystem::exists(directory_.passed_on_stop(), ignored);
}

// The number of a trial that this group now has; 0: there is none left, or no more is to be begun.
Index TrialGroups::take_next(std::span<const Index> pending, const Rung& rung) {
  for (const Index number : pending) {
    if (stop_wanted()) {
      stops_ = true;
      write_file_atomically(directory_.passed_on_stop(), "");
      return 0;
    }
    if (directory_.claim(number, rung.number)) return number;
  }
  return 0;
}

void TrialGroups::run_trial(TrialRow row, const Rung& rung) {
  if (leads()) report_begin(row);
  train(row, rung);
  agree(*group_, [&] {
    if (!leads()) return;
    complete(row, rung);
    state_.write_row(row);
    report_end(row);
    if (row.state == TrialState::kStopped) write_file_atomically(directory_.passed_on_stop(), "");
  });
  if (row.state == TrialState::kStopped) stops_ = true;
}

// *Collective over the group.* Notes how it ended.
void TrialGroups::train(TrialRow& row, const Rung& rung) {
  // Messages that a failed trial has left behind reach nobody there.
  const std::unique_ptr<Communicator> comm = group_->split(0, group_->rank());
  const RunLog log(directory_.name(row.number), comm->rank());
  const auto fail = [&](const std::string& reason, int exit_code) {
    row.state = exit_code == kExitStopped ? TrialState::kStopped : TrialState::kFailed;
    row.reason = reason;
    row.exit_code = exit_code;
    if (row.state == TrialState::kFailed && comm->rank() == 0) log_error("{}", reason);
  };
  const bool alone = comm->size() == 1;
  row.reason.clear();
  row.exit_code = 0;
  try {
    const CommandLine line = line_of_trial(line_, directory_, row);
    const RunOutcome outcome = train_run(*comm, line, state_.text(),
                                         {.stop_files = {directory_.stop(), directory_.passed_on_stop()},
                                          .seconds_gone = since_start_.seconds(),
                                          .pause_share = rung.share});
    row.exit_code = outcome.paused ? 0 : outcome.exit_code;
    row.state = outcome.paused           ? TrialState::kPaused
                : outcome.exit_code == 0 ? TrialState::kDone
                                         : TrialState::kStopped;
    if (row.state == TrialState::kDone && after_) after_(*comm, line);
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
void TrialGroups::complete(TrialRow& row, const Rung& rung) const {
  if (row.state == TrialState::kFailed) return;
  const RunDirectory run = directory_.trial(row.number);
  row.score = read_score(run, measure_, state_.config_of(row).config.train.keep != "last");
  if (row.state == TrialState::kDone) add_result(row, run);
  if (row.state == TrialState::kStopped) return;
  const double value = row.score ? row.score->value : std::numeric_limits<double>::quiet_NaN();
  row.at_rungs.resize(static_cast<std::size_t>(rung.number) + 1, value);
}

void TrialGroups::report_begin(const TrialRow& row) const {
  std::error_code ignored;
  const bool resumes = std::filesystem::exists(directory_.trial(row.number).root, ignored);
  const int first = world_.rank();
  const int last = first + group_->size() - 1;
  log_info("{} {} on {}: {}", directory_.name(row.number), resumes ? "resumes" : "begins",
           first == last ? fmt::format("rank {}", first) : fmt::format("ranks {} to {}", first, last),
           describe_settings(row.settings));
}

void TrialGroups::report_end(const TrialRow& row) const {
  log_info("{} {}", directory_.name(row.number), describe_end(row, measure_));
}

// *Collective.* Whether a group has stopped. Ranks that wait leave their cores to those that train.
bool TrialGroups::wait_for_all() {
  Index stopped = stops_ ? 1 : 0;
  const std::unique_ptr<Request> all = world_.start_all_reduce_sum(as_buffer(std::span(&stopped, 1)));
  while (!all->test()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  all->wait();
  return stopped > 0;
}

}  // namespace lockstep
