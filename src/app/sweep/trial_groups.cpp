// The ranks are divided into groups of neighbours. Each group takes the next trial that no other has taken:
// its first rank, the leader, makes a file that only one can make (SweepDirectory::claim), which needs no
// rank that answers while it trains. Then the group trains as the ranks of a run of their own: on a
// communicator of their own, in the run directory of the trial, with the config that the flags of the trial
// complete.
//
// A trial fails alone if all its ranks agree on the error, as they do on wrong configs, wrong files and bad
// numbers. What one rank alone meets, such as a failed MPI call, ends the job, as it ends a run.
#include "trial_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/memory_limit.h"
#include "lockstep/base/stop_signal.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

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
