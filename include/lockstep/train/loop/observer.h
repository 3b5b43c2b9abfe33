// The news of a training: where the time of its ranks goes, what happens while it goes on, and how it went.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/types.h"
#include "lockstep/distributed/strategies/asynchronous.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/evaluation/metrics.h"

namespace lockstep {

// The straggler ledger: how each rank spent its time, and which ranks the others waited for.

/// A rank is slow in a window of steps if its data and compute take this many times those of the median rank.
inline constexpr double kSlowFactor = 1.1;

/// kChronic: slow in at least half of the windows; kTransient: in some.
enum class Slowness { kNone, kTransient, kChronic };
std::string to_string(Slowness slowness);

/// Seconds of all steps so far. data, compute, exchange and waiting are together the time of the steps.
struct RankTime {
  std::string host = {};
  double data = 0;      ///< waiting for the loader, or preparing samples
  double compute = 0;   ///< forward, backward, optimizer, and all the rest
  double exchange = 0;  ///< exchange, once all ranks have arrived
  double waiting = 0;   ///< waiting for the rank that arrives last
  double delay = 0;     ///< while this rank was the last: from the arrival of the last but one to its own
  double to_best = 1;   ///< data and compute by those of the fastest rank
  double to_own = 1;    ///< data and compute of a step by those in this rank's own best window
  Index slow_windows = 0;
  Slowness slowness = Slowness::kNone;

  double own() const { return data + compute; }
  double total() const { return own() + exchange + waiting; }
};

/// As RankTime::delay, for the ranks of a host together: while they alone had not arrived.
struct HostTime {
  std::string host;
  Index ranks = 0;
  double delay = 0;
};

struct RankTimes {
  std::vector<RankTime> ranks = {};
  std::vector<HostTime> hosts = {};
  double seconds = 0;  ///< the longest total() of a rank
  Index windows = 0;
  double load = 0;  ///< threads of all programs that ran or were ready to on rank 0's machine, on average
  Index cores = 0;  ///< of that machine

  /// The share of all ranks' time that a delay costs, as all wait for it.
  double cost(double delay) const { return seconds > 0 ? delay / seconds : 0; }
};

/// The ranks worth naming, those that cost most first: chronic ones, and transient ones that cost something,
/// if they are kSlowFactor times slower than the fastest on the whole. None in a run of seconds, nor on a
/// machine with more to do than it has cores.
std::vector<std::size_t> slow_ranks(const RankTimes& times);

/// Lines for the log: slow ranks, those that cost most first, and hosts that cost something; none if no rank
/// is slow.
std::vector<std::string> describe_slow_ranks(const RankTimes& times);

/// An observer of training: metric files, the progress line, the summary. Called on rank 0 only. This one
/// ignores all of it, as on the other ranks.
class Observer {
 public:
  virtual ~Observer() = default;
  /// After each step: cheap, and often ignored. `loss`: mean over the samples of this step; NaN: it
  /// was left out.
  virtual void on_step(const Progress& /*progress*/, double /*loss*/) {}
  /// Every run.log_every steps and at the end.
  virtual void on_train_metrics(const TrainMetrics& /*metrics*/) {}
  virtual void on_evaluation(const EvalMetrics& /*metrics*/) {}
  /// Before each evaluation and at the end, with asynchronous workers: since the run began.
  virtual void on_workers(const WorkersReport& /*report*/, const Progress& /*progress*/) {}
  /// Now and then and at the end, with several ranks: where the time of each went since the run was started.
  virtual void on_ranks(const RankTimes& /*times*/, const Progress& /*progress*/) {}
  /// With data.audit, after each epoch (from 1) that was proved to use each sample `times` times.
  virtual void on_audit(Index, Index /*samples*/, Index /*times*/) {}
  /// That of the last on_step().
  virtual Progress progress() const { return {}; }
  /// How long what was written so far is, in bytes.
  virtual Index written_bytes() const { return 0; }
  /// The files of the run of which lines were lost, as on a full disk.
  virtual std::vector<std::string> incomplete_files() const { return {}; }
};

// How a training went: what its reports and summary.json say of it.

/// The evaluation whose weights are the model.
struct BestResult {
  std::string measure;  ///< "loss"
  double value = 0;     ///< value on the validation set
  Progress progress;    ///< when it was made
};

/// The steps of a training, as the loop that makes them knows them.
struct StepsReport {
  TimeShares time;                            ///< over all ranks
  RankTimes ranks = {};                       ///< since the run was started
  std::optional<WorkersReport> workers = {};  ///< each worker's gradients, with asynchronous workers
  Index skipped_steps = 0;                    ///< left out, because their loss or gradient was not finite
  Index single_value_steps = 0;               ///< in which batch norm had a single value to normalise
  Index repairs = 0;                          ///< times that replicas which differed were made equal again
};

/// How a training went, the same on all ranks.
struct TrainingResult : StepsReport {
  Progress progress;
  double seconds = 0;  ///< time of the steps, evaluation not counted
  double samples_per_second = 0;
  double lr = 0;  ///< learning rate of the last step
  /// Evaluations of the model as it is kept, with its temperature: validation set, then test set.
  std::vector<EvalMetrics> evaluations = {};
  /// The last weights on the validation set, where others are kept.
  std::optional<EvalMetrics> last = {};
  bool paused = false;             ///< it stopped at TrainingSettings::pause_after
  std::string stopped;             ///< why the run stopped before its end; "" if it did not
  std::string early;               ///< why the run ended before its last step; "" if it did not
  std::optional<BestResult> best;  ///< nothing: the last weights are the model
  std::string average;             ///< how the weights of the model are averaged; "" if they are not
  /// The weights and moments of `best`, as a model file holds them; empty if they are the last ones.
  AlignedBuffer<Scalar> best_weights;
  std::optional<Calibration> calibration = {};  ///< of the weights of the model

  /// The evaluation that tells most: of the test set, which chose nothing; null without any.
  const EvalMetrics* evaluation() const { return evaluations.empty() ? nullptr : &evaluations.back(); }
};

}  // namespace lockstep
