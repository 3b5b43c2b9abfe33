#include "lockstep/train/evaluation/prediction.h"

#include <algorithm>
#include <cmath>

#include "lockstep/comm/agree.h"
#include "lockstep/data/load_records.h"
#include "lockstep/distributed/tied_weights.h"
#include "lockstep/math/elementary.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/stages.h"
#include "lockstep/train/evaluation/calibration.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/rank_peer_group.h"

namespace lockstep {
namespace {

constexpr int kResults = 0;  // channel

// Blocks of a group in a round, by stage: at the start and at the end of a round stages wait for each other,
// a fifth of the time.
constexpr Index kBlocksPerStage = 4;

void softmax(std::span<const Scalar> x, Scalar* probabilities) {
  const Scalar largest = *std::ranges::max_element(x);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    probabilities[i] = exp_nonpositive(x[i] - largest);
    sum += static_cast<double>(probabilities[i]);
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    probabilities[i] = static_cast<Scalar>(static_cast<double>(probabilities[i]) / sum);
  }
}

// Values are predictions by their link, in the units of their labels.
void predict_values(const OutputForm& form, std::span<const Scalar> x, Scalar* values,
                    std::span<const LabelScale> scales) {
  if (form.link == Link::kLog) {
    std::ranges::transform(x, values, exponential);
  } else if (scales.empty() || form.direction) {
    std::ranges::copy(x, values);
  } else {
    const auto levels = static_cast<std::size_t>(form.outputs_per_target());
    for (std::size_t i = 0; i < x.size(); ++i) values[i] = scales[i / levels].undo(x[i]);
  }
}

}  // namespace

PredictionColumns prediction_columns(const OutputForm& form, Index outputs) {
  switch (form.targets) {
    case TargetKind::kClass:
      return {.labels = 1, .values = outputs};
    case TargetKind::kBinary:
      return {.labels = outputs, .values = outputs};
    case TargetKind::kValue:
      return {.labels = 0, .values = outputs, .quantiles = form.quantiles};
  }
  return {};
}

void predict_rows(const OutputForm& form, const ConstMatrix& outputs, Matrix& predictions,
                  std::span<const LabelScale> scales) {
  const Index count = outputs.cols();
  for (Index row = 0; row < outputs.rows(); ++row) {
    const std::span<const Scalar> x(outputs.data() + row * count, static_cast<std::size_t>(count));
    Scalar* labels = predictions.data() + row * predictions.cols();
    Scalar* values = labels + (predictions.cols() - count);
    if (form.targets == TargetKind::kClass) labels[0] = static_cast<Scalar>(predicted_class(outputs, row));
    if (form.targets == TargetKind::kBinary) {
      std::ranges::transform(x, labels, [](Scalar value) { return value > 0 ? Scalar{1} : Scalar{0}; });
    }
    if (form.link == Link::kSoftmax) {
      softmax(x, values);
    } else if (form.link == Link::kLogit) {
      std::ranges::transform(x, values, sigmoid);
    } else if (form.targets == TargetKind::kValue) {
      predict_values(form, x, values, scales);
    } else {
      std::ranges::copy(x, values);
    }
  }
}

Prediction::Lane::Lane(const PredictionContext& context, Index label_columns)
    : passes(context.model, context.batch),
      features(needs_features(context.model) ? context.batch * context.model.input().size() : 0),
      labels(features.size() > 0 ? context.batch * label_columns : 0),
      scaled(context.temperature == 1 || !context.has_outputs() ? 0 : context.batch * context.outputs()),
      ids(static_cast<std::size_t>(context.batch)) {}

Prediction::Prediction(const PredictionContext& context, const RecordSource& source)
    : context_(context),
      columns_(prediction_columns(context.form, context.outputs())),
      rows_(source.info().rows),
      label_columns_(source.info().label_columns()),
      thread_blocks_(context.pipeline == nullptr ? 1 : kBlocksPerStage * context.pipeline->stages()),
      share_rows_(context.batch * context.team.size() * thread_blocks_) {
  const Index worker = context.workers().rank();
  Index count = 0;
  for (Index round = 0; share(round, 0).begin < rows_; ++round) count += share(round, worker).size();
  RankPeerGroup peers(context.workers());
  // Each stage loads for itself: all ranks end together if one of them cannot.
  agree(context.comm, [&] {
    RecordNeeds needs =
        needed_by_owner([this](Index id) { return id / share_rows_ % context_.workers().size(); }, count);
    needs.part = needed_part(needs_features(context_.model), false);
    // No target is used; one that is missing is no fault.
    records_ = load_records(source, {.may_miss = true}, needs, peers);
  });
  agree(context.comm, [&] {
    for (int thread = 0; thread < context.team.size(); ++thread) lanes_.emplace_back(context, label_columns_);
    const Index results = context.comm.rank() == 0 ? context.workers().size() : context.has_outputs() ? 1 : 0;
    for (Index i = 0; i < results; ++i) results_.emplace_back(share_rows_ * columns_.size());
  });
}

// The rows of a worker in a round; empty behind the end.
Range Prediction::share(Index round, Index worker) const {
  const Index begin = (round * context_.workers().size() + worker) * share_rows_;
  return {std::min(begin, rows_), std::min(begin + share_rows_, rows_)};
}

void Prediction::run(const ModelValues& values, const Sink& sink) {
  KernelWeights weights(context_.model);
  TiedWeights tied(context_.pipeline, context_.model);
  const ModelValues operands = weights.prepare(tied.share(values), context_.team);
  for (Index round = 0; share(round, 0).begin < rows_; ++round) {
    predict_share(operands, share(round, context_.workers().rank()));
    tied.finish();
    collect(round, sink);
  }
}

void Prediction::predict_share(const ModelValues& values, Range rows) {
  context_.team.run([&](int thread) {
    Lane& lane = at(lanes_, thread);
    const Index blocks = divide_up(rows.size(), context_.batch);
    const Range mine = intersect({thread * thread_blocks_, (thread + 1) * thread_blocks_}, {0, blocks});
    for_each_pass(context_.model, context_.pipeline, mine, [&](Index i, Index chunk) {
      const Index begin = rows.begin + i * context_.batch;
      const Range block = intersect({begin, begin + context_.batch}, rows);
      Scalar* first =
          context_.has_outputs() ? results_.front().data() + i * context_.batch * columns_.size() : nullptr;
      Matrix predictions(first, block.size(), columns_.size());
      predict_block(lane, values, block, chunk, predictions);
    });
    lane.passes.finish();
  });
}

// Null where this chunk needs none.
ConstMatrix Prediction::take_features(Lane& lane, Range rows, Index chunk) {
  const std::span<Index> ids = std::span(lane.ids).first(static_cast<std::size_t>(rows.size()));
  for (Index row = rows.begin; row < rows.end; ++row) at(ids, row - rows.begin) = row;
  Matrix x(lane.features.data(), rows.size(), context_.model.input().size());
  if (!needs_features(context_.model.chunk(chunk))) return {nullptr, x.rows(), x.cols()};
  Matrix labels(lane.labels.data(), rows.size(), label_columns_);
  records_->gather(ids, x, labels);
  if (change_) change_(ids, x);
  context_.normaliser.apply(x);
  return {x.data(), x.rows(), x.cols()};
}

void Prediction::predict_block(Lane& lane, const ModelValues& values, Range rows, Index chunk,
                               Matrix& predictions) {
  const Pass pass{.values = values, .x = take_features(lane, rows, chunk), .batch = {}};
  const std::optional<ConstMatrix> given =
      forward_stage(context_.pipeline, context_.model, chunk, lane.passes, pass);
  if (!given) return;
  const ConstMatrix outputs = divide_outputs(*given, context_.temperature, lane.scaled.span());
  predict_rows(context_.form, outputs, predictions, context_.label_scales);
}

// The results of a worker are at the last rank of its group.
void Prediction::collect(Index round, const Sink& sink) {
  const Index workers = context_.workers().size();
  const auto scalars = [&](Index worker) { return share(round, worker).size() * columns_.size(); };
  const auto memory = [&](Index worker) {
    return as_buffer(part(at(results_, context_.comm.rank() == 0 ? worker : 0).span(), {0, scalars(worker)}));
  };
  Communicator& comm = context_.comm;
  if (comm.rank() > 0) {
    const Index worker = context_.workers().rank();
    if (!context_.has_outputs() || scalars(worker) == 0) return;
    const Send send{.peer = 0, .buffer = memory(worker)};
    comm.start_exchange(kResults, {&send, 1}, {})->wait();
    return;
  }
  const auto rank_with_outputs = [&](Index worker) {
    if (context_.pipeline == nullptr) return worker;
    const StageGrid& grid = context_.pipeline->grid();
    return grid.rank_of(worker, grid.stages() - 1);
  };
  std::vector<Receive> receives;
  for (Index worker = 0; worker < workers && scalars(worker) > 0; ++worker) {
    const Index peer = rank_with_outputs(worker);
    if (peer > 0) receives.push_back({.peer = static_cast<int>(peer), .buffer = memory(worker)});
  }
  comm.start_exchange(kResults, {}, receives)->wait();
  for (Index worker = 0; worker < workers && scalars(worker) > 0; ++worker) {
    sink(ConstMatrix(at(results_, worker).data(), share(round, worker).size(), columns_.size()));
  }
}

}  // namespace lockstep
