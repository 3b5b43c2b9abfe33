#include "lockstep/report/live/number_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace lockstep {
namespace {

std::vector<NumberEntry> common_numbers() {
  return {
      {{"kind"}, "\"train\", \"evaluation\", \"workers\" or \"ranks\""},
      {{"step"},
       "updates of the weights so far, from 1; with asynchronous workers those of all workers together"},
      {{"epoch"}, "`step` / steps of an epoch"},
      {{"samples_seen"},
       "samples of these steps, over all replicas, duplicates and steps that were left out included; "
       "with asynchronous workers those that were applied"},
  };
}

std::vector<NumberEntry> training_numbers() {
  return {
      {{"loss"},
       "mean of the loss over the samples since the line before, in training mode, before each step's "
       "update; by their weights, where records have some. Steps that were left out do not count",
       "`loss`"},
      {{"accuracy"},
       "share (0 to 1) of these samples whose prediction is right: the class with the highest output is "
       "the label; for yes or no, the output is on the right side of 0 (of several outputs the mean). "
       "Not for regression",
       "`accuracy`"},
      {{"lr"}, "learning rate of the last step", "`lr`"},
      {{"samples_per_second"},
       "samples since the line before / seconds of these steps. Evaluations and checkpoints are not "
       "counted",
       "`samples/s`"},
      {{"gradient_norm"},
       "Euclidean norm of the mean gradient of the last step, over all tensors that are trained: after "
       "`train.clip_value`, before `train.clip_norm`"},
      {{"weight_norm"}, "the same of the weights before that step"},
      {{"time"},
       "[where the time went](#where-did-the-time-go) since the line before; with asynchronous workers "
       "on rank 0 only"},
  };
}

std::vector<NumberEntry> evaluation_numbers() {
  return {
      {{"split"}, "the set that was evaluated", "`validation`, `test`"},
      {{"samples"}, "how many it has; each is evaluated once", "`(N samples`"},
      {{"loss"}, "mean over the samples, by their weights", "`loss`"},
      {{"accuracy"}, "as above", "`accuracy`"},
      {{"top_k", "top_k_accuracy"},
       "`eval.top_k`, and the share of samples whose label is among the K highest outputs (a tie counts "
       "for the lower class); only with more than K classes",
       "`top-K`"},
      {{},
       "[see below](#which-metrics-are-measured); null (\"undefined\" in the log) where one is not "
       "defined, as the AUC of a set without positives",
       "the same names",
       "names of `eval.metrics`"},
      {{"confusion"},
       "counts of samples, whatever they weigh: row is the true class, column the predicted one; up to "
       "100 classes. A single output of yes or no is two classes"},
      {{"seconds"}, "time of this evaluation on rank 0", "`N s)`"},
  };
}

std::vector<NumberEntry> workers_numbers() {
  return {
      {{"mean_staleness"},
       "staleness of a gradient: steps that others took between the pull that it was computed from and "
       "the step that it makes. Mean over all that were applied",
       "`mean`"},
      {{"staleness_95"},
       "the least staleness that at least 95 % of them do not exceed; counted up to 1,023",
       "`95th percentile`"},
      {{"workers"}, "one object for each worker:", "`worker W`"},
      {{"computed"}, "gradients that it pushed", "`dropped: N of M`"},
      {{"steps"}, "of these, applied", "`gradients`"},
      {{"samples"}, "in those that were applied", "`samples`"},
      {{"dropped", "dropped_samples"},
       "gradients that came too late (backup workers), and their samples",
       "`dropped`"},
      {{"max_ahead"},
       "the most gradients that it had pushed more than the slowest worker, when it was allowed to "
       "compute the next"},
      {{"staleness"},
       "histogram: how many had staleness 0, 1, 2, ...; over the slices that the servers own; the last "
       "of 1,024 bins counts all above"},
      {{}, "its samples / (all samples / workers)", "`times an even share`"},
  };
}

std::vector<NumberEntry> time_numbers() {
  return {
      {{"data"}, "waiting for samples, or preparing them on the threads that train"},
      {{"compute"}, "forward pass, backward pass with the loss and the sums over local replicas, optimizer"},
      {{"forward", "optimizer"},
       "parts of `compute`: the forward pass (of the first thread) and the optimizer"},
      {{"communication"}, "the exchange of gradients, weights and statistics, once all ranks have arrived"},
      {{"waiting"},
       "time until the last rank has arrived, where ranks exchange something. With asynchronous workers: "
       "until the first server allows the next gradient"},
      {{"idle"},
       "waiting for other stages, where [the model is "
       "divided](strategies.md#data-parallel-model-parallel-or-both); the field is there only if it is "
       "above 0"},
      {{"hidden"},
       "not a share of the time, but of the exchange: what other work hides. 1 - (seconds of exchange in "
       "a step) / (the same in a step in which nothing is sent before the backward pass is over), "
       "without waiting. Such a step is made one time in 64, from the 25th on; so the field is there "
       "only with several buckets and ranks"},
  };
}

std::vector<NumberEntry> ranks_numbers() {
  return {
      {{"seconds"}, "time of the steps, of the rank that took longest"},
      {{"windows"},
       "the steps between two comparisons are a window: up to 64, and no more than there are between two "
       "training lines or evaluations",
       "`windows`"},
      {{"data", "compute", "exchange", "waiting"},
       "as [above](#where-did-the-time-go), with `exchange` for `communication`; together they are the "
       "time of the rank's steps"},
      {{"delay"},
       "while it was the last to come to an exchange: the time since the last but one came. All ranks "
       "wait that long for this rank alone",
       "`costs` (its share of `seconds`)"},
      {{"to_best"},
       "its `data` and `compute` by those of the fastest rank",
       "`times those of the fastest rank`"},
      {{"to_own"}, "the same, a step, by those of its own best window", "`times its own best`"},
      {{"slow_windows"},
       "windows in which its data and compute took 1.1 times those of the median rank, or more",
       "`in N of`"},
      {{"slow"},
       "\"chronic\": in at least half of the windows; \"transient\": in some; else \"\"",
       "`chronic`"},
      {{"hosts"},
       "each `host` with the number of its `ranks`, the `delay` of all of them together, and what that "
       "`cost`: its share of `seconds`",
       "`of the node-hours`"},
  };
}

std::vector<NumberEntry> summary_numbers() {
  return {
      {{"steps", "samples_seen", "epochs"}, "of the whole run, over all its starts"},
      {{"seconds"},
       "of all steps and of waits for other ranks between them, over all starts, in seconds; evaluations and "
       "checkpoints are not counted"},
      {{"samples_per_second"}, "`samples_seen` / `seconds`"},
      {{"time"}, "[shares of the time](#where-did-the-time-go) since the last start, over all ranks"},
      {{"lr"}, "learning rate of the last step"},
      {{"config"}, "16 digits that two runs share if no key differs that could change what comes of them"},
      {{"hosts"}, "names of the hosts, each once"},
      {{"ranks"}, "with several ranks, [the time of each](#which-rank-is-slow), without the common fields"},
      {{"algorithm"}, "exchange algorithm, where one is used; several with their sizes"},
      {{"early_stopping"}, "why the run ended before its last step, if it did"},
      {{"kept"},
       "the weights of `model.safetensors`: \"best\" or \"last\", their step, and for the best ones the "
       "measure and its value; `average`, if they are one"},
      {{"threshold"},
       "with `eval.threshold`, the `probability` from which on the model says yes, the `measure` that it "
       "was chosen by, and its `value` there"},
      {{"calibration"},
       "with `train.calibrate`: `temperature`; whether one was `found`; `log_loss` and `ece` of the "
       "validation set with it, and `log_loss_before` and `ece_before` without"},
      {{"skipped_steps"}, "steps [left out](checkpoints.md#what-if-the-loss-is-not-finite), if any"},
      {{"single_value_steps"},
       "steps in which [batch norm](batch-norm.md#what-if-a-step-leaves-a-replica-one-sample) had a "
       "single value to normalise, if any"},
      {{"desync_repairs"},
       "times that [replicas were made equal](checkpoints.md#what-if-ranks-no-longer-hold-the-same), if "
       "any"},
      {{"evaluation"},
       "the last [evaluation](#evaluation-lines): of the test set if there is one, else of the "
       "validation set. With [two tables](#which-classes-does-it-know-and-do-probabilities-come-true): "
       "`per_class` and `reliability`"},
      {{"asynchrony"},
       "the last line of [workers](#what-became-of-each-workers-gradients), without the common fields"},
      {{"lost"},
       "names of files that [could not be written](checkpoints.md#what-if-files-cannot-be-written), if "
       "any"},
  };
}

std::string first_cell(const NumberEntry& entry) {
  return entry.fields.empty() ? entry.label : fmt::format("`{}`", fmt::join(entry.fields, "`, `"));
}

std::string cell(const std::string& text) {
  return text.empty() ? " |" : fmt::format(" {} |", text);
}

}  // namespace

std::span<const NumberTable> number_tables() {
  static const std::vector<NumberTable> kTables{
      {"common", common_numbers()},   {"training", training_numbers()}, {"evaluation", evaluation_numbers()},
      {"workers", workers_numbers()}, {"time", time_numbers()},         {"ranks", ranks_numbers()},
      {"summary", summary_numbers()},
  };
  return kTables;
}

std::string numbers_markdown() {
  std::string markdown;
  for (const NumberTable& table : number_tables()) {
    const bool in_log =
        std::ranges::any_of(table.entries, [](const NumberEntry& entry) { return !entry.in_log.empty(); });
    markdown += fmt::format("<!-- numbers: {} -->\n| field |{} meaning |\n|---|{}---|\n", table.name,
                            in_log ? " in the log |" : "", in_log ? "---|" : "");
    for (const NumberEntry& entry : table.entries) {
      markdown += fmt::format("|{}{}{}\n", cell(first_cell(entry)), in_log ? cell(entry.in_log) : "",
                              cell(entry.meaning));
    }
    markdown += '\n';
  }
  return markdown;
}

}  // namespace lockstep
