// A sweep: read what there is of it, let the groups of ranks carry out the trials, compare them.
//
// With successive halving (Jamieson & Talwalkar 2016, "Non-stochastic best arm identification and
// hyperparameter optimization", algorithm 1) there are rungs on the way: after the first evaluation at or
// after E^-R, ..., E^-1 of its steps a trial pauses, and one in E trials, those with the best validation
// measure so far, goes on. A rung is a stop like any other: the trial goes on from its checkpoint, with the
// schedule of its whole length, and ends with the bits of a run that never paused.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/commands.h"
#include "app/setup/catalogs.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/terminal.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "sweep_state.h"

namespace lockstep {
namespace {

// The value by which a trial is compared at a rung: what it had there, or what it ended with before.
std::optional<double> value_at(const TrialRow& row, Index rung) {
  if (rung < std::ssize(row.at_rungs)) {
    const double value = at(row.at_rungs, rung);
    return std::isnan(value) ? std::nullopt : std::optional(value);
  }
  if (row.state != TrialState::kDone || !row.is_measured()) return std::nullopt;
  return row.at_rungs.empty() ? row.score->value : row.at_rungs.back();
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
        state_(world, line, "trial",
               [](const Config& config, const SweepRequest& request) {
                 return list_trials(request, known_options(), static_cast<std::uint64_t>(config.run.seed));
               }),
        request_(state_.request()) {
    agree(world_, [this] { list_rungs(); });
  }

  // *Collective.* The exit code.
  int run() {
    stop_live_output();
    announce();
    bool stopped = false;
    for (const Rung& rung : rungs_) {
      stopped = state_.train(choose_pending(rung), rung);
      if (stopped) break;
    }
    return report(stopped);
  }

 private:
  bool first() const { return world_.rank() == 0; }
  bool is_part(const TrialRow& row) const { return (row.number - 1) % request_.parts == request_.part - 1; }

  // The last rung is the end of training.
  void list_rungs() {
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

  void refuse_without_validation() const {
    for (const TrialRow& row : state_.rows()) {
      error_if(
          !has_validation(state_.config_of(row)),
          "--halving compares trials by the validation set, and there is none: hold some records back with "
          "data.validation = \"share(0.1)\", or name a file there");
    }
  }

  void announce() const {
    if (!first()) return;
    const Index mine =
        std::ranges::count_if(state_.rows(), [this](const TrialRow& row) { return is_part(row); });
    const std::string part = request_.parts > 1 ? fmt::format(", {} of them here", with_commas(mine)) : "";
    state_.announce(plural(std::ssize(state_.rows()), "trial") + part);
    const Index known = std::ranges::count_if(
        state_.rows(), [](const TrialRow& row) { return row.state != TrialState::kWaiting; });
    if (known > 0) log_info("the sweep goes on: {} of its trials have been begun before", with_commas(known));
  }

  // The trials that have to be taken to this rung, in the order in which they are begun. The others of the
  // race are dropped. All of it follows from the values at the rungs before, so that every start decides the
  // same.
  std::vector<Index> choose_pending(const Rung& rung) {
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

  void drop_others() {
    agree(world_, [&] {
      for (TrialRow& row : state_.rows()) {
        if (row.state != TrialState::kPaused || std::ranges::count(race_, row.number) > 0) continue;
        row.state = TrialState::kDropped;
        if (first()) state_.write_row(row);
      }
    });
  }

  // *Collective.* The exit code.
  int report(bool stopped) const {
    agree_on_first(world_, [&] {
      state_.report(sweep_json(state_.rows(), state_.measure(), state_.directory()),
                    sweep_table(state_.rows(), state_.measure(), state_.directory()), stopped);
    });
    std::vector<TrialRow> part;
    std::ranges::copy_if(state_.rows(), std::back_inserter(part),
                         [this](const TrialRow& row) { return is_part(row); });
    const Index done = std::ranges::count(part, TrialState::kDone, &TrialRow::state);
    if (stopped) return state_.report_stop(done, std::ssize(state_.rows()), "trials");
    const auto failed = std::ranges::find(part, TrialState::kFailed, &TrialRow::state);
    if (done > 0 || failed == part.end()) return 0;
    if (first()) log_error("all trials have failed");
    return failed->exit_code;
  }

  Communicator& world_;
  SweepState state_;
  const SweepRequest& request_;
  std::vector<Rung> rungs_;
  std::vector<Index> race_;  // numbers of the trials that go on to the present rung, in order
};

}  // namespace

int sweep_command(Communicator& world, const CommandLine& line) {
  return Sweep(world, line).run();
}

}  // namespace lockstep
