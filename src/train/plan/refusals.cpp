// The refusals of a run are asked in order: a later one may count on what an earlier one refuses.
#include "lockstep/train/plan/run_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/catalog.h"
#include "lockstep/base/embedded_text.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/distributed/divided_layers.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/strategies/asynchronous.h"
#include "lockstep/distributed/strategies/strategy.h"

namespace lockstep {
namespace {

// A run, with what several of its refusals ask.
struct AskedRun {
  AskedRun(const RunPlanRequest& planned, const SamplingOptions& samples)
      : request(planned), sampling(samples) {
    for (const ModelOp& op : request.model.ops()) {
      const BatchStatistics* statistics = op.layer->statistics();
      if (statistics == nullptr) continue;
      norms.push_back(statistics->mode());
      normalises_over_replicas |= norms.back().normalised_with(0, 2).size() > 1;
    }
  }

  const RunPlanRequest& request;
  const SamplingOptions& sampling;
  const DistOptions& distribute = request.distribute;
  const TrainOptions& train = request.train;
  const DataOptions& data = request.data;
  Index servers = count_servers(distribute);
  Index workers = request.world - servers;
  bool asynchronous = is_asynchronous(distribute);
  bool local_sgd = local_sums(distribute) == LocalSums::kPerReplica;
  bool loses_bits = make_codec(distribute) != nullptr;
  std::vector<BatchNormMode> norms = {};
  bool normalises_over_replicas = false;  // batch norm sync or group
};

void refuse_asynchronous(const AskedRun& run) {
  if (!run.asynchronous) return;
  const Index backup_workers = run.distribute.backup_workers;
  const Index replicas = run.sampling.replicas;
  const bool shards = run.data.mode == DataMode::kShard;
  refuse_if(run.distribute.reduction == Reduction::kOrdered,
            "ordered reduction with asynchronous workers (mode async or bounded, or backup workers)");
  refuse_if(run.normalises_over_replicas, "batch norm over several replicas with asynchronous workers");
  refuse_if(backup_workers > 0 && run.distribute.mode != ServerMode::kSync,
            "backup workers with mode async or bounded");
  refuse_if(backup_workers >= run.workers, "as many backup workers as workers, or more");
  refuse_if(replicas % run.workers != 0, "asynchronous workers with different numbers of replicas");
  refuse_if(run.sampling.global_batch % replicas != 0,
            "asynchronous workers with a global batch that does not divide by the replicas");
  refuse_if(shards && replicas > run.sampling.rows, "asynchronous workers without a record of their own");
  refuse_if(backup_workers > 0 && run.distribute.error_feedback && run.loses_bits,
            "error feedback on lossy compression with backup workers");
}

bool adds_in_another_order(const DistOptions& distribute) {
  return uses_algorithm(distribute) && distribute.algorithm != kAutoAlgorithm &&
         !find_entry(algorithm_catalog(), "algorithm", distribute.algorithm).allows(distribute.reduction);
}

void refuse_exchange(const AskedRun& run) {
  if (run.distribute.reduction == Reduction::kOrdered) {
    refuse_if(run.loses_bits, "ordered reduction with lossy compression");
    refuse_if(adds_in_another_order(run.distribute), "ordered reduction with algorithm ring or rabenseifner");
  }
  if (run.local_sgd) {
    const bool shares_moments = std::ranges::any_of(
        run.norms, [](const BatchNormMode& mode) { return mode.moments_with(0, 2).size() > 1; });
    refuse_if(run.loses_bits, "local_sgd with lossy compression");
    refuse_if(run.normalises_over_replicas || shares_moments,
              "local_sgd with batch norm averaged, sync or group");
  }
}

void refuse_steps(const AskedRun& run) {
  if (run.train.on_nan == OnNan::kSkip) {
    refuse_if(run.asynchronous, "train.on_nan skip with asynchronous workers");
    refuse_if(run.local_sgd, "train.on_nan skip with local_sgd");
    refuse_if(run.distribute.error_feedback && run.loses_bits,
              "train.on_nan skip with error feedback on lossy compression");
  }
  refuse_if(run.train.ema > 0 && (run.asynchronous || run.local_sgd),
            "train.ema with asynchronous workers or local_sgd");
}

void refuse_samples(const AskedRun& run) {
  refuse_if(run.data.audit && (run.train.tail == Tail::kDrop || run.asynchronous),
            "data.audit with train.tail drop, or with asynchronous workers");
  refuse_if(run.data.reshuffle != Reshuffle::kShard && run.data.shard_order != ShardOrder::kShuffled,
            "data.reshuffle global or batch with a data.shard_order that is not shuffled");
  refuse_if(run.sampling.stream && run.data.shard_order == ShardOrder::kStrided,
            "data.shard_order strided with streamed samples");
  const bool buckets = run.data.bucket_by_length > 0;
  refuse_if(run.data.reshuffle == Reshuffle::kBatch &&
                (buckets || run.sampling.stream || run.asynchronous || run.data.mode == DataMode::kFull),
            "data.reshuffle batch without one batch of all replicas");
  refuse_if(buckets && !run.request.has_lengths, "data.bucket_by_length without data.train_lengths");
  refuse_if(buckets && run.sampling.stream, "data.bucket_by_length with streamed samples");
}

void refuse_stages(const AskedRun& run) {
  const Index stages = run.distribute.stages;
  const Index world = run.request.world;
  if (stages <= 1) return;
  refuse_if(world % stages != 0, "distribute.stages with a number of ranks that it does not divide",
            fmt::format("{} and {} stages", plural(world, "rank"), stages));
  refuse_if(run.servers > 0, "distribute.stages with parameter servers");
  refuse_if(run.local_sgd, "distribute.stages with local_sgd");
  refuse_if(run.loses_bits, "distribute.stages with lossy compression");
  refuse_if(run.train.threads > 1, "distribute.stages with several threads");
  refuse_if(run.normalises_over_replicas && run.distribute.schedule != PipelineSchedule::kGpipe,
            "distribute.stages with batch norm sync or group and a schedule that is not gpipe");
}

void refuse_split_layers(const AskedRun& run) {
  const RunPlanRequest& request = run.request;
  if (!divides_layers(run.distribute, request.world)) return;
  const std::vector<DividedTensor> divided = divide_split_layers(request.model, request.world);
  if (divided.empty()) return;
  refuse_if(run.distribute.stages > 1,
            "layers with split=rows on several ranks with strategy zero1 and distribute.stages");
  refuse_if(run.loses_bits,
            "layers with split=rows on several ranks with strategy zero1 and lossy compression");
  refuse_if(run.train.accumulate > 1,
            "layers with split=rows on several ranks with strategy zero1 and train.accumulate");
  refuse_if(request.optimizer.grain() == Grain::kTensor,
            "layers with split=rows on several ranks with strategy zero1 and optimizer adafactor or muon");
  refuse_if(run.train.ema > 0 || !run.train.swa_from.empty(),
            "layers with split=rows on several ranks with strategy zero1 and train.ema or train.swa_from");
  const auto shares = [&](const DividedTensor& tensor) { return request.model.op(tensor.op).shares; };
  refuse_if(std::ranges::any_of(divided, shares),
            "layers with split=rows on several ranks with strategy zero1 and tie");
}

void refuse_batch_norm(const AskedRun& run) {
  const Index replicas = run.sampling.replicas;
  for (const BatchNormMode& mode : run.norms) {
    refuse_if(mode.kind == BatchNormMode::Kind::kGroup && mode.group > replicas,
              "batch norm in groups of more replicas than there are",
              fmt::format("group({}) with {} replicas", mode.group, replicas));
  }
  // A plan that cannot be at all is refused for that.
  if (run.sampling.rows < 1 || replicas < 1 || run.sampling.global_batch < replicas) return;
  if (plan_epoch(run.sampling).steps < 1) return;
  const SingleValues values = single_values_of(run.request, run.sampling, 0);
  if (values.replicas() == 0) return;
  const ModelOp& op = run.request.model.op(values.first_op());
  refuse_if(true, "batch norm of single values in each step",
            fmt::format("{} with batch norm {}", op.title, to_string(op.layer->statistics()->mode())));
}

// Nobody has written the layers of a preset.
std::string last_layer(const FitQuestion& question) {
  return question.preset.empty() ? question.model.ops().back().title : question.preset;
}

// "label 'species' (setosa, virginica) of 'iris.csv' has 3 classes"
std::string describe_classes(const DatasetInfo& data) {
  return fmt::format("{} of '{}' has {} class{}", data.target_text, data.name,
                     with_commas(data.target_classes), data.target_classes == 1 ? "" : "es");
}

// The file or data set that the labels come from.
const std::string& label_source(const DatasetInfo& data) {
  return data.label_file.empty() ? data.name : data.label_file;
}

void check_levels(const FitQuestion& question, Index levels) {
  const DatasetInfo& data = question.data;
  error_if(data.target_columns * levels != question.model.output().size(),
           "{} puts out {}, but '{}' has {} and train.quantiles {} levels: train.loss '{}' needs {} "
           "outputs, one for each level of each target",
           last_layer(question), to_string(question.model.output()), label_source(data),
           plural(data.target_columns, "target"), levels, question.loss, data.target_columns * levels);
}

Index outputs_of(const FitQuestion& question) {
  return question.form.outputs_of_position(question.model.output().size());
}

void check_positions(const FitQuestion& question) {
  const DatasetInfo& data = question.data;
  if (data.target_columns == question.form.positions) return;
  throw ConfigError(
      "{} puts out {}, so train.loss '{}' needs {} classes per record, one for each position, but '{}' has "
      "{}: give a class for each, or put last, mean_over_time or max_over_time before the last layer",
      last_layer(question), to_string(question.model.output()), question.loss,
      with_commas(question.form.positions), label_source(data), data.target_columns);
}

void check_columns(const FitQuestion& question) {
  if (question.form.positions > 0 && question.form.targets == TargetKind::kClass)
    return check_positions(question);
  const Index outputs = question.model.output().size();
  const Index levels = question.form.outputs_per_target();
  const DatasetInfo& data = question.data;
  if (levels > 1) return check_levels(question, levels);
  const Index wanted = question.form.targets == TargetKind::kClass ? 1 : outputs;
  if (data.target_columns == wanted) return;
  const std::string& name = label_source(data);
  error_if(question.form.targets != TargetKind::kClass,
           "{} puts out {}, so train.loss '{}' needs {} per record, but '{}' has {}; change the last "
           "layer or the loss",
           last_layer(question), to_string(question.model.output()), question.loss, plural(wanted, "target"),
           name, data.target_columns);
  if (question.probabilities && data.target_columns == outputs) return;
  throw ConfigError(
      "the labels in '{}' have {} columns, but train.loss '{}' needs one, the number of the class{}: of "
      "one-hot rows numpy.argmax(y, axis=1) makes that",
      name, data.target_columns, question.loss,
      question.probabilities ? fmt::format(", or {} with the probability of each, as many as {} puts out",
                                           outputs, last_layer(question))
                             : "");
}

void check_classes(const FitQuestion& question) {
  const Index outputs = outputs_of(question);
  const Index classes = question.data.target_classes;
  const bool of_classes = question.form.targets == TargetKind::kClass;
  error_if(
      of_classes && outputs == 1,
      "{} puts out 1 number, of which train.loss '{}' is always 0: give an output for each class, or for "
      "yes and no train.loss 'binary_cross_entropy'",
      last_layer(question), question.loss);
  error_if(of_classes && classes > outputs, "{}, but {} puts out {}: train.loss '{}' needs {} outputs",
           describe_classes(question.data), last_layer(question), outputs, question.loss, classes);
  error_if(!of_classes && classes > 2,
           "{}, whose numbers mean nothing to train.loss '{}': take 'softmax_cross_entropy' and a last layer "
           "with {} outputs",
           describe_classes(question.data), question.loss, classes);
}

// Lengths: all sets have them, or none; no layer sees the padding, and the loss can leave it out.
void check_lengths(const FitQuestion& question) {
  const DatasetInfo& data = question.data;
  const Shape& output = question.model.output();
  error_if(question.lengths != data.has_lengths,
           "data.train_lengths is {}set, and '{}' has {} lengths: name them for all sets "
           "(data.train_lengths, data.validation_lengths, data.test_lengths), or for none",
           question.lengths ? "" : "not ", data.name, data.has_lengths ? "its" : "no");
  if (!data.has_lengths) return;
  error_if(output.sequence && !question.leaves_out,
           "train.loss '{}' cannot leave out targets, as those of padding: choose another loss, or put last, "
           "mean_over_time or max_over_time before the last layer",
           question.loss);
  for (const ModelOp& op : question.model.ops()) {
    error_if(!op.lengths_in.empty() && !op.masks,
             "{} sees all positions, but the records of '{}' have lengths, and padding behind them: put "
             "last, mean_over_time or max_over_time before it, or leave the lengths out",
             op.title, data.name);
  }
}

// A loss that learns the logarithm of the mean wants the label itself.
void check_scales(const FitQuestion& question) {
  const std::string& scaled = question.data.scaled_label;
  if (question.form.link != Link::kLog || scaled.empty()) return;
  const std::string column = scaled.substr(0, scaled.rfind(": "));
  throw ConfigError(
      "data.columns = [\"{}\"] scales a label, but train.loss '{}' learns the logarithm of its mean, and "
      "needs the label as it is: leave that out, or write \"{}: none\"",
      scaled, question.loss, column);
}

void check_directions(const FitQuestion& question) {
  const Shape& output = question.model.output();
  error_if(output.sequence && question.form.direction,
           "train.loss '{}' takes the direction of all outputs of a record together, and {} puts out {}: put "
           "last, mean_over_time or max_over_time before it",
           question.loss, last_layer(question), to_string(output));
  error_if(
      question.form.direction && question.model.output().size() == 1,
      "{} puts out 1 number, whose direction, all that train.loss '{}' looks at, is but its sign: give a "
      "label of several columns, or take 'mean_squared_error'",
      last_layer(question), question.loss);
}

}  // namespace

std::span<const Refusal> refusals() {
  static const std::vector<Refusal> kRefusals = [] {
    std::vector<Refusal> refusals;
    for (const TextEntry& entry : embedded_entries("texts/refusals.txt")) {
      refusals.push_back({entry.name, entry.get("why")});
    }
    return refusals;
  }();
  return kRefusals;
}

void refuse_if(bool applies, RefusalName name, const std::string& found) {
  if (!applies) return;
  const Refusal& refusal = find_entry(refusals(), "refusal", name.text);
  throw ConfigError("refused: {}; {}{}", refusal.name, refusal.reason,
                    found.empty() ? "" : fmt::format("; found {}", found));
}

SingleValues single_values_of(const RunPlanRequest& request, const SamplingOptions& sampling, Index step) {
  const RoundRobin round_robin(sampling);
  std::vector<Index> rows;
  for (Index i = 0; i < sampling.replicas; ++i) rows.push_back(round_robin.numbers(step, i).size());
  SingleValues values(request.model, sampling.replicas, request.train.accumulate);
  values.look(rows);
  return values;
}

void refuse_run(const RunPlanRequest& request, const SamplingOptions& sampling) {
  const AskedRun run(request, sampling);
  refuse_if(run.workers < 1, "as many servers as ranks, or more");
  refuse_asynchronous(run);
  refuse_exchange(run);
  refuse_steps(run);
  refuse_samples(run);
  refuse_stages(run);
  refuse_split_layers(run);
  refuse_batch_norm(run);
}

void refuse_misfit(const FitQuestion& question) {
  check_lengths(question);
  check_classes(question);
  check_columns(question);
  check_scales(question);
  check_directions(question);
}

std::string doubt_spare_outputs(const FitQuestion& question, Index classes) {
  const Index outputs = outputs_of(question);
  if (question.form.targets != TargetKind::kClass || classes <= 0 || classes >= outputs) return "";
  return fmt::format("{} puts out {}, but '{}' has {} class{}: the other outputs are never right",
                     last_layer(question), outputs, question.data.name, with_commas(classes),
                     classes == 1 ? "" : "es");
}

std::vector<std::string> find_doubts(const FitQuestion& question, const RunPlan& plan) {
  std::vector<std::string> doubts;
  const DatasetInfo& data = question.data;
  const std::string spare = doubt_spare_outputs(question, data.target_classes);
  if (!spare.empty()) doubts.push_back(spare);
  const std::string& last = question.model.ops().back().text;
  if (question.form.link == Link::kLogit && last == "sigmoid") {
    doubts.push_back(fmt::format(
        "train.loss '{}' takes the sigmoid of the outputs itself, and {} takes it before: leave that out",
        question.loss, last_layer(question)));
  }
  if (question.form.link == Link::kLog && (last == "softplus" || last == "relu" || last == "sigmoid")) {
    doubts.push_back(fmt::format(
        "train.loss '{}' predicts e^output, which is above 0 by itself, and {} keeps it from being below 1: "
        "leave that out",
        question.loss, last_layer(question)));
  }
  if (question.form.targets == TargetKind::kValue && data.target_classes == 2) {
    doubts.push_back(fmt::format(
        "{}, which train.loss '{}' learns as the numbers 0 and 1: 'binary_cross_entropy' is made for that",
        describe_classes(data), question.loss));
  }
  if (plan.step_batch > plan.epoch_samples) {
    doubts.push_back(
        fmt::format("a step is to take {}, the global batch, but an epoch of '{}' has {}: each step "
                    "takes all of them",
                    plural(plan.step_batch, "sample"), data.name, with_commas(plan.epoch_samples)));
  }
  return doubts;
}

}  // namespace lockstep
