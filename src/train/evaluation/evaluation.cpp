#include "lockstep/train/evaluation/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "lockstep/base/errors.h"
#include "lockstep/base/timer.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/table/sources/feature_columns.h"
#include "lockstep/distributed/local_gradients.h"
#include "lockstep/nn/stages.h"
#include "lockstep/train/evaluation/prediction.h"
#include "lockstep/train/rank_peer_group.h"

namespace lockstep {
namespace {

// Sums of a block: samples, their weights and, times these, loss, correct, among the top k; then those of the
// reliability, where predictions are probabilities, of the metrics, and of the positions of horizons.
enum EvaluationColumn : std::size_t { kSamples, kPositions, kWeight, kLoss, kCorrect, kTopK, kColumns };

// Blocks that a thread takes before it is asked whether the evaluation is to go on.
constexpr Index kRoundBlocks = 8;

// Whether outputs may be divided by a temperature, or put in order.
bool changes_outputs(const OutputForm& form) {
  return has_probabilities(form) || form.quantiles.size() > 1;
}

template <class T>
void append_moved(std::vector<T>& all, std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
  more = {};
}

// *Collective.* All ranks get the values of rank 0.
void share_values(Communicator& comm, std::vector<MetricValue>& values) {
  std::vector<double> numbers;
  for (const MetricValue& each : values) {
    numbers.push_back(each.value.value_or(0));
    numbers.push_back(each.value ? 1 : 0);
  }
  comm.broadcast(as_buffer(std::span(numbers)), 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i].value = numbers[2 * i + 1] > 0 ? std::optional(numbers[2 * i]) : std::nullopt;
  }
}

}  // namespace

RecordPasses::RecordLane::RecordLane(const RecordPasses& of, Index rows)
    : passes(of.model_, rows),
      features(of.part_ == RecordPart::kAll ? rows * of.model_.input().size() : 0),
      labels(of.part_ == RecordPart::kNothing ? 0 : rows * of.info_.label_columns()),
      lengths(of.info_.has_lengths ? rows : 0) {}

RecordPasses::RecordPasses(const Model& model, const Normaliser& normaliser, Pipeline* pipeline,
                           DatasetInfo info, bool measures)
    : info_(std::move(info)),
      part_(needed_part(needs_features(model), (measures && needs_targets(model)) || info_.has_lengths)),
      model_(model),
      normaliser_(normaliser),
      pipeline_(pipeline),
      measures_(measures) {}

// The features of the records lane.ids; null where this chunk needs none.
ConstMatrix RecordPasses::take_features(RecordLane& lane, Index chunk) {
  const Model& own = model_.chunk(chunk);
  const Index rows = std::ssize(lane.ids);
  const ConstMatrix none(nullptr, rows, model_.input().size());
  const bool needed = needs_features(own);
  if (!needed && !(measures_ && needs_targets(own)) && !info_.has_lengths) return none;
  const Index columns = part_ == RecordPart::kAll ? model_.input().size() : 0;
  Matrix x(lane.features.data(), rows, columns);
  Matrix labels(lane.labels.data(), rows, info_.label_columns());
  records_->gather(lane.ids, x, labels);
  take_lengths(info_, labels, lane.lengths.span());
  if (!needed) return none;
  if (change_) change_(lane.ids, x);
  normaliser_.apply(x);
  return {x.data(), rows, columns};
}

std::optional<ConstMatrix> RecordPasses::forward(RecordLane& lane, const ModelValues& values, Range ids,
                                                 Index chunk) {
  lane.ids.resize(static_cast<std::size_t>(ids.size()));
  std::iota(lane.ids.begin(), lane.ids.end(), ids.begin);
  Pass pass{.values = values, .x = take_features(lane, chunk), .batch = {}};
  if (info_.has_lengths) pass.batch.lengths = part(lane.lengths.span(), {0, ids.size()});
  return forward_stage(pipeline_, model_, chunk, lane.passes, pass);
}

Evaluation::Lane::Lane(const Evaluation& evaluation)
    : RecordLane(evaluation, evaluation.rows_),
      weights(evaluation.weighing_.has_weights(evaluation.info_) ? evaluation.rows_ : 0),
      present(evaluation.weighing_.has_shares() ? evaluation.rows_ : 0),
      scaled(evaluation.context_.measures() && changes_outputs(evaluation.context_.loss.form())
                 ? evaluation.rows_ * evaluation.context_.model.whole().output().size()
                 : 0),
      counts(static_cast<std::size_t>(
          counted_cells(evaluation.context_.loss.targets(), evaluation.context_.outputs()))),
      scores(static_cast<std::size_t>(evaluation.context_.metrics.needs().rankings)),
      samples(static_cast<std::size_t>(evaluation.context_.metrics.needs().samples)) {}

Evaluation::Evaluation(const EvaluationContext& context, const RecordSource& source, Split split)
    : RecordPasses(context.model, context.normaliser, context.pipeline, source.info(), true),
      context_(context),
      split_(split),
      weighing_{.of_class = context.class_weights, .of_positions = context.loss.form().positions > 0},
      rows_(std::min(context.options.batch, info_.rows)),
      blocks_(divide_up(info_.rows, rows_)),
      local_blocks_(split_evenly(blocks_, context.workers().size(), context.workers().rank())),
      measured_blocks_(context.measures() ? local_blocks_ : Range{local_blocks_.begin, local_blocks_.begin}),
      tied_weights_(context.pipeline, context.model) {
  const Index count =
      intersect({local_blocks_.begin * rows_, local_blocks_.end * rows_}, {0, info_.rows}).size();
  RankPeerGroup peers(context.workers());
  std::atomic<bool> any_missing = false;
  const Model& whole = context.model.whole();
  TargetRule rule = target_rule(context.loss, whole, context.normaliser);
  rule.any_missing = &any_missing;
  // Each stage loads for itself: all ranks end together if one of them cannot.
  agree(context.comm, [&] {
    RecordNeeds needs = needed_by_owner([this](Index id) { return owner(id); }, count);
    needs.part = part_;
    records_ = load_records(source, rule, needs, peers);
    measure_naive_forecasts(source);
    if (context.loss.targets() != TargetKind::kBinary || context.outputs() == 1) return;
    for (const TargetLabel& label : target_labels(source)) output_names_.push_back(label.name);
  });
  weighing_.masks = may_miss_targets(rule, info_) && any_rank(peers, any_missing);
  agree(context.comm, [&] {
    weights_.emplace(context.model);
    for (int thread = 0; thread < context.team.size(); ++thread) lanes_.emplace_back(*this);
  });
  block_sums_.resize(static_cast<std::size_t>(measured_blocks_.size() * columns()));
}

void Evaluation::measure_naive_forecasts(const RecordSource& source) {
  const OutputForm form = context_.loss.form();
  const auto* const windows = source.as_windows();
  if (windows == nullptr || form.targets != TargetKind::kValue || form.direction) return;
  forecast_form_ = {.form = form, .scales = label_scales(source)};
  horizon_ = windows->windows().horizon;
  if (context_.comm.rank() == 0) naive_.naive = windows->naive_forecasts();
}

Range Evaluation::reliability_columns() const {
  const Index begin{kColumns};
  return {begin, begin + (has_probabilities(context_.loss.form()) ? kReliabilitySums : 0)};
}

std::optional<EvalMetrics> Evaluation::run(const ModelValues& values,
                                           const std::function<bool()>& interrupted) {
  const Stopwatch watch;
  for (Lane& lane : lanes_) {
    std::ranges::fill(lane.counts, 0);
    std::ranges::fill(lane.scores, Scores{});
    std::ranges::fill(lane.samples, ScoredSamples{});
    lane.crossed = 0;
  }
  const bool finished = visit_blocks(
      values, interrupted,
      [this](Lane& lane, const MetricRows& rows, Index block) { measure_block(lane, rows, block); });
  if (!finished) return std::nullopt;
  EvalMetrics metrics = combine();
  metrics.seconds = watch.seconds();
  return metrics;
}

bool Evaluation::visit_blocks(const ModelValues& values, const std::function<bool()>& interrupted,
                              const BlockWork& work) {
  const ModelValues operands = weights_->prepare(tied_weights_.share(values), context_.team);
  // All ranks take the number of rounds of the first: rounds are collective.
  const Index rank_blocks = split_evenly(blocks_, context_.workers().size(), 0).size();
  const Index thread_blocks = split_evenly(rank_blocks, context_.team.size(), 0).size();
  const Index round = interrupted ? kRoundBlocks : thread_blocks;
  for (Index begin = 0; begin < thread_blocks; begin += round) {
    context_.team.run([&](int thread) {
      const Range all = split_evenly(local_blocks_, context_.team.size(), thread);
      const Range mine = intersect(all, {all.begin + begin, all.begin + begin + round});
      Lane& lane = at(lanes_, thread);
      for_each_pass(context_.model, context_.pipeline, mine,
                    [&](Index block, Index chunk) { run_block(lane, operands, block, chunk, work); });
    });
    for (Lane& lane : lanes_) lane.passes.finish();
    tied_weights_.finish();
    if (interrupted && interrupted()) return false;
  }
  return true;
}

void Evaluation::visit(const ModelValues& values, const Visit& visit) {
  visit_blocks(values, {}, [&](Lane& lane, const MetricRows& rows, Index) {
    visit(static_cast<int>(&lane - lanes_.data()), rows, lane.ids);
  });
}

// Leaves the targets at the start of `labels`.
SampleWeights Evaluation::take_labels(Lane& lane, Matrix& labels) const {
  weigh(weighing_, info_, labels, lane.weights.span(), lane.present.span());
  SampleWeights weights{.values = {}, .present = {}, .targets = info_.target_columns};
  if (lane.weights.size() > 0) weights.values = part(lane.weights.span(), {0, labels.rows()});
  if (lane.present.size() > 0) weights.present = part(lane.present.span(), {0, labels.rows()});
  return weights;
}

// The outputs as predictions have them.
ConstMatrix Evaluation::take_outputs(Lane& lane, const ConstMatrix& given) const {
  const OutputForm form = context_.loss.form();
  if (form.quantiles.size() < 2) return divide_outputs(given, temperature_, lane.scaled.span());
  Matrix ordered(lane.scaled.data(), given.rows(), given.cols());
  std::ranges::copy(given.values(), ordered.data());
  lane.crossed += sort_quantiles(form, ordered);
  return ordered;
}

void Evaluation::run_block(Lane& lane, const ModelValues& values, Index block, Index chunk,
                           const BlockWork& work) {
  const Range ids = rows_of_block(block);
  const Index rows = ids.size();
  const std::optional<ConstMatrix> given = forward(lane, values, ids, chunk);
  if (!given) return;
  Matrix labels(lane.labels.data(), rows, info_.label_columns() - (info_.has_lengths ? 1 : 0));
  const SampleWeights weights = take_labels(lane, labels);
  const ConstMatrix targets(lane.labels.data(), rows, info_.target_columns);
  const Index positions = context_.loss.form().positions;
  if (positions == 0) {
    const ConstMatrix outputs = take_outputs(lane, *given);
    return work(lane, {.outputs = outputs, .targets = targets, .weights = weights}, block);
  }
  lane.positions.fill({.outputs = *given, .targets = targets, .weights = weights}, positions,
                      context_.class_weights);
  const std::span<const Index> numbers = lane.positions.numbers();
  lane.ids.resize(numbers.size());
  std::ranges::transform(numbers, lane.ids.begin(),
                         [&](Index number) { return ids.begin * positions + number; });
  const MetricRows counted = lane.positions.rows();
  const ConstMatrix outputs = take_outputs(lane, counted.outputs);
  work(lane, {.outputs = outputs, .targets = counted.targets, .weights = counted.weights}, block);
}

void Evaluation::measure_block(Lane& lane, const MetricRows& measured, Index block) {
  const ConstMatrix& outputs = measured.outputs;
  const ConstMatrix& right = measured.targets;
  const SampleWeights& weights = measured.weights;
  const Index rows = outputs.rows();
  const TargetKind kind = context_.loss.targets();
  double* sums = block_sums_.data() + (block - local_blocks_.begin) * columns();
  sums[kSamples] = static_cast<double>(rows_of_block(block).size());
  sums[kPositions] = context_.loss.form().positions > 0 ? static_cast<double>(rows) : 0;
  sums[kWeight] = weights.sum(rows);
  sums[kLoss] = evaluate_weighted(context_.loss.of_position(), outputs, right, weights, nullptr);
  sums[kCorrect] = count_correct(kind, outputs, right, weights);
  sums[kTopK] =
      kind == TargetKind::kClass ? count_in_top_k(outputs, right, weights, context_.options.top_k) : 0;
  count_cells(kind, measured, lane.counts);
  std::fill(sums + kColumns, sums + columns(), 0.0);
  const Range reliability = reliability_columns();
  if (!reliability.empty()) {
    collect_reliability(kind, measured, std::span(sums + reliability.begin, sums + reliability.end));
  }
  context_.metrics.collect(measured, {.sums = std::span(sums + reliability.end, sums + columns()),
                                      .scores = lane.scores,
                                      .samples = lane.samples});
  if (forecast_form_)
    forecast_form_->add_errors(measured, std::span(sums + columns() - horizon_, sums + columns()));
}

std::optional<Calibration> Evaluation::calibrate(const ModelValues& values,
                                                 const std::function<bool()>& interrupted) {
  KeptBlocks kept{.local = measured_blocks_, .all = blocks_, .outputs = context_.outputs()};
  agree(context_.comm, [&] {
    for (Index block = kept.local.begin; block < kept.local.end; ++block) {
      const Index positions = std::max<Index>(1, context_.loss.form().positions);
      kept.blocks.emplace_back(rows_of_block(block).size() * positions, kept.outputs,
                               info_.target_columns / positions, has_weights());
    }
  });
  const bool finished =
      visit_blocks(values, interrupted, [&](Lane&, const MetricRows& measured, Index block) {
        at(kept.blocks, block - kept.local.begin).keep(measured);
      });
  if (!finished) return std::nullopt;
  return fit_temperature(context_.comm, context_.team, context_.loss.targets(), kept);
}

TargetSample Evaluation::targets() const {
  constexpr Index kMost = 50'000;
  const Range mine =
      intersect({measured_blocks_.begin * rows_, measured_blocks_.end * rows_}, {0, info_.rows});
  std::vector<Index> ids;
  for (Index id = mine.begin; id < mine.end; id += divide_up(mine.size(), kMost)) ids.push_back(id);
  const Index features = part_ == RecordPart::kAll ? info_.features.size() : 0;
  return gather_targets(context_.comm, *records_, ids, info_, weighing_, features);
}

EvalMetrics Evaluation::combine() {
  const std::vector<double> sums =
      ordered_sums(context_.comm, block_sums_, measured_blocks_, blocks_, columns());
  const TargetKind kind = context_.loss.targets();
  if (context_.loss.form().positions > 0 && sums[kPositions] == 0) {
    throw AgreedError(
        fmt::format("'{}' ({} set): no position of its {} samples counts, so there is nothing to "
                    "measure: they are shorter than what the layers need for one output",
                    info_.name, to_string(split_), info_.rows),
        kExitData);
  }
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
  metrics.positions = static_cast<Index>(sums[kPositions]);
  metrics.loss = sums[kLoss] / sums[kWeight];
  if (kind != TargetKind::kValue) metrics.accuracy = sums[kCorrect] / sums[kWeight];
  metrics.others = combine_metrics(sums);
  metrics.of_scaled_label = !info_.scaled_label.empty();
  for (const Lane& lane : lanes_) metrics.crossed += lane.crossed;
  context_.comm.all_reduce_sum(as_buffer(std::span(&metrics.crossed, 1)));
  if (kind == TargetKind::kClass) {
    metrics.classes = context_.outputs();
    metrics.top_k = context_.options.top_k;
    if (metrics.top_k < metrics.classes) metrics.top_k_accuracy = sums[kTopK] / sums[kWeight];
  } else if (kind == TargetKind::kBinary && context_.outputs() == 1) {
    metrics.classes = 2;
  }
  metrics.names = output_names_;
  if (metrics.classes > 0 && std::ssize(info_.class_names) == metrics.classes)
    metrics.names = info_.class_names;
  combine_counts(metrics);
  metrics.forecast = naive_;
  const double of_step =
      static_cast<double>(info_.rows * info_.target_columns) / static_cast<double>(horizon_);
  for (const double sum : std::span(sums).last(static_cast<std::size_t>(horizon_)))
    metrics.forecast.by_step.push_back(sum / of_step);
  const Range reliability = reliability_columns();
  metrics.reliability =
      reliability.empty()
          ? std::vector<ReliabilityBin>()
          : reliability_bins(std::span(sums).subspan(static_cast<std::size_t>(reliability.begin),
                                                     static_cast<std::size_t>(reliability.size())));
  return metrics;
}

void Evaluation::combine_counts(EvalMetrics& metrics) {
  std::vector<Index>& counts = metrics.classes > 0 ? metrics.confusion : metrics.answers;
  counts.assign(lanes_.front().counts.size(), 0);
  if (counts.empty()) return;
  for (const Lane& lane : lanes_) {
    std::ranges::transform(counts, lane.counts, counts.begin(), std::plus<>());
  }
  context_.comm.all_reduce_sum(as_buffer(std::span(counts)));
}

std::vector<MetricValue> Evaluation::combine_metrics(std::span<const double> sums) {
  std::vector<Scores>& scores = lanes_.front().scores;
  for (Lane& lane : std::span(lanes_).subspan(1)) {
    for (std::size_t i = 0; i < scores.size(); ++i) {
      append_moved(scores[i].positives, lane.scores[i].positives);
      append_moved(scores[i].negatives, lane.scores[i].negatives);
      append_moved(scores[i].positive_weights, lane.scores[i].positive_weights);
      append_moved(scores[i].negative_weights, lane.scores[i].negative_weights);
    }
  }
  std::vector<RankedPairs> rankings;
  for (Scores& each : scores) {
    rankings.push_back(has_weights() ? rank_weighted_pairs(context_.comm, each)
                                     : rank_pairs(context_.comm, each));
    each = {};  // not kept until the next evaluation
  }
  std::vector<ScoredSamples>& samples = lanes_.front().samples;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (Lane& lane : std::span(lanes_).subspan(1)) append_moved(samples[i], lane.samples[i]);
    samples[i] = gather_samples(context_.comm, samples[i]);
  }
  const auto first = static_cast<std::size_t>(reliability_columns().end);
  std::vector<MetricValue> values = context_.metrics.values(
      {.weight = sums[kWeight], .sums = sums.subspan(first), .rankings = rankings, .samples = samples});
  if (!samples.empty()) share_values(context_.comm, values);
  std::ranges::fill(samples, ScoredSamples{});
  return values;
}

ForwardLane::ForwardLane(const Model& model, Index rows) : sending(static_cast<std::size_t>(model.chunks())) {
  for (Index i = 0; i < model.chunks(); ++i) {
    workspaces.push_back(
        std::make_unique<Workspace>(model.chunk(i), rows, ActivationRetention::kForEvaluation));
  }
}

void ForwardLane::finish() {
  for (std::unique_ptr<Request>& message : sending) {
    if (message) std::exchange(message, nullptr)->wait();
  }
}

std::optional<ConstMatrix> forward_stage(Pipeline* pipeline, const Model& model, Index number,
                                         ForwardLane& lane, const Pass& pass) {
  using Direction = Pipeline::Direction;
  const Model& chunk = model.chunk(number);
  Workspace& workspace = *at(lane.workspaces, number);
  std::unique_ptr<Request>& sending = at(lane.sending, number);
  if (sending) std::exchange(sending, nullptr)->wait();
  workspace.begin(pass);
  const std::vector<Buffer> received = incoming_tensors(Direction::kForward, chunk, workspace);
  if (!received.empty()) pipeline->start_receive(Direction::kForward, received)->wait();
  workspace.forward({0, std::ssize(chunk.ops())});
  const std::vector<ConstBuffer> sent = outgoing_tensors(Direction::kForward, chunk, workspace);
  if (!sent.empty()) sending = pipeline->start_send(Direction::kForward, sent);
  const bool last_stage = pipeline == nullptr || pipeline->is_last();
  if (!last_stage || number + 1 < model.chunks()) return std::nullopt;
  return workspace.outputs();
}

void for_each_pass(const Model& model, const Pipeline* pipeline, Range blocks,
                   const std::function<void(Index block, Index chunk)>& pass) {
  const Index chunks = model.chunks();
  const Index at_once = chunks == 1 ? std::max<Index>(blocks.size(), 1) : pipeline->stages();
  for (Index begin = blocks.begin; begin < blocks.end; begin += at_once) {
    for (Index chunk = 0; chunk < chunks; ++chunk) {
      for (Index block = begin; block < std::min(begin + at_once, blocks.end); ++block) pass(block, chunk);
    }
  }
}

}  // namespace lockstep
