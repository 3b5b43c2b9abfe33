#include "lockstep/train/evaluation/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>

#include "lockstep/base/errors.h"
#include "lockstep/base/timer.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/load_records.h"
#include "lockstep/distributed/ordered_sums.h"
#include "lockstep/train/rank_peer_group.h"

namespace lockstep {
namespace {

// Sums of a block: samples, their weights and, times these, loss, correct, among the top k; then those of the
// metrics.
enum Column : std::size_t { kSamples, kWeight, kLoss, kCorrect, kTopK, kColumns };

// Blocks that a thread takes before it is asked whether the evaluation is to go on.
constexpr Index kRoundBlocks = 8;

// The confusion matrix has classes^2 cells in memory and in each line of metrics.
constexpr Index kMaxConfusionClasses = 100;

Index block_rows(const EvalOptions& options, Index rows) {
  return std::min(options.batch, rows);
}

void append(std::vector<Scalar>& all, std::vector<Scalar>& more) {
  all.insert(all.end(), more.begin(), more.end());
  more = {};
}

}  // namespace

Evaluation::Lane::Lane(const EvaluationContext& context, Index rows, const DatasetInfo& info,
                       const Weighing& weighing)
    : workspace(context.model, rows, ActivationRetention::kForEvaluation),
      features(rows * context.model.input().size()),
      labels(rows * info.label_columns()),
      weights(weighing.has_weights(info) ? rows : 0),
      present(weighing.masks ? rows : 0),
      scores(static_cast<std::size_t>(context.metrics.needs().rankings)) {
  if (context.loss.targets() == TargetKind::kClass) {
    const Index classes = context.model.output().size();
    if (classes <= kMaxConfusionClasses) confusion.resize(static_cast<std::size_t>(classes * classes));
  }
}

Evaluation::Evaluation(const EvaluationContext& context, const RecordSource& source, Split split)
    : context_(context),
      split_(split),
      info_(source.info()),
      weighing_{.of_class = context.class_weights},
      rows_(block_rows(context.options, info_.rows)),
      blocks_(divide_up(info_.rows, rows_)),
      local_blocks_(split_evenly(blocks_, context.comm.size(), context.comm.rank())) {
  const Range rows{local_blocks_.begin * rows_, local_blocks_.end * rows_};
  const Index count = intersect(rows, {0, info_.rows}).size();
  RankPeerGroup peers(context.comm);
  std::atomic<bool> any_missing = false;
  TargetRule rule = target_rule(context.loss, context.model.output().size());
  rule.any_missing = &any_missing;
  records_ = load_records(
      source, rule,
      needed_by_owner([this](Index id) { return part_of(blocks_, context_.comm.size(), id / rows_); }, count),
      peers);
  weighing_.masks = rule.may_miss && info_.target_columns > 1 && any_rank(peers, any_missing);
  peers.agree([&] {
    weights_.emplace(context.model);
    for (int thread = 0; thread < context.team.size(); ++thread) {
      lanes_.emplace_back(context, rows_, info_, weighing_);
    }
  });
  block_sums_.resize(static_cast<std::size_t>(local_blocks_.size() * columns()));
}

Index Evaluation::columns() const {
  return Index{kColumns} + context_.metrics.needs().sums;
}

std::optional<EvalMetrics> Evaluation::run(const ModelValues& values,
                                           const std::function<bool()>& interrupted) {
  const Stopwatch watch;
  const ModelValues operands = weights_->prepare(values, context_.team);
  for (Lane& lane : lanes_) {
    std::ranges::fill(lane.confusion, 0);
    std::ranges::fill(lane.scores, Scores{});
  }
  // All ranks take the number of rounds of the first: rounds are collective.
  const Index rank_blocks = split_evenly(blocks_, context_.comm.size(), 0).size();
  const Index thread_blocks = split_evenly(rank_blocks, context_.team.size(), 0).size();
  const Index round = interrupted ? kRoundBlocks : thread_blocks;
  for (Index begin = 0; begin < thread_blocks; begin += round) {
    context_.team.run([&](int thread) {
      const Range all = split_evenly(local_blocks_.size(), context_.team.size(), thread);
      const Range mine = intersect(all, {all.begin + begin, all.begin + begin + round});
      Lane& lane = at(lanes_, thread);
      for (Index i = mine.begin; i < mine.end; ++i) run_block(lane, operands, local_blocks_.begin + i);
    });
    if (interrupted && interrupted()) return std::nullopt;
  }
  EvalMetrics metrics = combine();
  metrics.seconds = watch.seconds();
  return metrics;
}

// Leaves the targets at the start of `labels`.
SampleWeights Evaluation::take_labels(Lane& lane, Matrix& labels) const {
  weigh(weighing_, info_, labels, lane.weights.span(), lane.present.span());
  SampleWeights weights{.values = {}, .present = {}, .targets = info_.target_columns};
  if (lane.weights.size() > 0) weights.values = part(lane.weights.span(), {0, labels.rows()});
  if (lane.present.size() > 0) weights.present = part(lane.present.span(), {0, labels.rows()});
  return weights;
}

Evaluation::BlockOutputs Evaluation::forward(Lane& lane, const ModelValues& values, Index block) const {
  const Index begin = block * rows_;
  const Index rows = std::min(rows_, info_.rows - begin);
  lane.ids.resize(static_cast<std::size_t>(rows));
  for (Index row = 0; row < rows; ++row) at(lane.ids, row) = begin + row;
  Matrix x(lane.features.data(), rows, context_.model.input().size());
  Matrix labels(lane.labels.data(), rows, info_.label_columns());
  records_->gather(lane.ids, x, labels);
  const SampleWeights weights = take_labels(lane, labels);
  context_.normaliser.apply(x);
  return {.outputs = lane.workspace.forward(
              {.values = values, .x = ConstMatrix(x.data(), x.rows(), x.cols()), .batch = {}}),
          .targets = ConstMatrix(lane.labels.data(), rows, info_.target_columns),
          .weights = weights};
}

void Evaluation::visit(const ModelValues& values, const Visit& visit) {
  const ModelValues operands = weights_->prepare(values, context_.team);
  context_.team.run([&](int thread) {
    const Range mine = split_evenly(local_blocks_.size(), context_.team.size(), thread);
    for (Index i = mine.begin; i < mine.end; ++i) {
      const BlockOutputs block = forward(at(lanes_, thread), operands, local_blocks_.begin + i);
      visit(thread, {.outputs = block.outputs, .targets = block.targets, .weights = block.weights});
    }
  });
}

void Evaluation::run_block(Lane& lane, const ModelValues& values, Index block) {
  const auto [outputs, right, weights] = forward(lane, values, block);
  const Index rows = outputs.rows();
  double* sums = block_sums_.data() + (block - local_blocks_.begin) * columns();
  sums[kSamples] = static_cast<double>(rows);
  sums[kWeight] = weights.sum(rows);
  sums[kLoss] = evaluate_weighted(context_.loss, outputs, right, weights, nullptr);
  sums[kCorrect] = count_correct(context_.loss.targets(), outputs, right, weights);
  sums[kTopK] = 0;
  if (context_.loss.targets() == TargetKind::kClass) {
    sums[kTopK] = count_in_top_k(outputs, right, weights, context_.options.top_k);
    count_confusion(lane, outputs, right);
  }
  const std::span<double> metric_sums(sums + kColumns, sums + columns());
  std::ranges::fill(metric_sums, 0.0);
  context_.metrics.collect({.outputs = outputs, .targets = right, .weights = weights},
                           {.sums = metric_sums, .scores = lane.scores});
}

void Evaluation::count_confusion(Lane& lane, const ConstMatrix& outputs, const ConstMatrix& targets) const {
  if (lane.confusion.empty()) return;
  for (Index row = 0; row < outputs.rows(); ++row) {
    const Index cell = true_class(targets, row) * outputs.cols() + predicted_class(outputs, row);
    ++at(lane.confusion, cell);
  }
}

EvalMetrics Evaluation::combine() {
  const std::vector<double> sums =
      ordered_sums(context_.comm, block_sums_, local_blocks_, blocks_, columns());
  const TargetKind kind = context_.loss.targets();
  if (sums[kWeight] == 0) {
    throw AgreedError(
        fmt::format("'{0}' ({1} set): all weights of its {2} samples are 0, so there is nothing to "
                    "measure: give it samples that weigh something (data.weight, data.{1}_weights, "
                    "train.class_weights)",
                    info_.name, to_string(split_), info_.rows),
        kExitData);
  }
  EvalMetrics metrics;
  metrics.split = split_;
  metrics.samples = static_cast<Index>(sums[kSamples]);
  metrics.loss = sums[kLoss] / sums[kWeight];
  if (kind != TargetKind::kValue) metrics.accuracy = sums[kCorrect] / sums[kWeight];
  metrics.others = combine_metrics(sums);
  if (kind == TargetKind::kClass) {
    metrics.classes = context_.model.output().size();
    metrics.top_k = context_.options.top_k;
    if (metrics.top_k < metrics.classes) metrics.top_k_accuracy = sums[kTopK] / sums[kWeight];
    if (lanes_.front().confusion.empty()) return metrics;
    metrics.confusion.assign(lanes_.front().confusion.size(), 0);
    for (const Lane& lane : lanes_) {
      std::ranges::transform(metrics.confusion, lane.confusion, metrics.confusion.begin(), std::plus<>());
    }
    context_.comm.all_reduce_sum(as_buffer(std::span(metrics.confusion)));
  }
  return metrics;
}

std::vector<MetricValue> Evaluation::combine_metrics(std::span<const double> sums) {
  std::vector<Scores>& scores = lanes_.front().scores;
  for (Lane& lane : std::span(lanes_).subspan(1)) {
    for (std::size_t i = 0; i < scores.size(); ++i) {
      append(scores[i].positives, lane.scores[i].positives);
      append(scores[i].negatives, lane.scores[i].negatives);
      append(scores[i].positive_weights, lane.scores[i].positive_weights);
      append(scores[i].negative_weights, lane.scores[i].negative_weights);
    }
  }
  std::vector<RankedPairs> rankings;
  for (Scores& each : scores) {
    rankings.push_back(weighing_.has_weights(info_) ? rank_weighted_pairs(context_.comm, each)
                                                    : rank_pairs(context_.comm, each));
    each = {};  // not kept until the next evaluation
  }
  return context_.metrics.values(
      {.weight = sums[kWeight], .sums = sums.subspan(kColumns), .rankings = rankings});
}

}  // namespace lockstep
