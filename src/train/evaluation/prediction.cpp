#include "lockstep/train/evaluation/prediction.h"

#include <algorithm>
#include <cmath>

#include "lockstep/data/load_records.h"
#include "lockstep/math/elementary.h"
#include "lockstep/nn/kernel_weights.h"
#include "lockstep/train/evaluation/calibration.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/rank_peer_group.h"

namespace lockstep {
namespace {

constexpr int kResults = 0;  // channel

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
    : workspace(context.model, context.batch, ActivationRetention::kForEvaluation),
      features(context.batch * context.model.input().size()),
      labels(context.batch * label_columns),
      scaled(context.temperature == 1 ? 0 : context.batch * context.model.output().size()),
      ids(static_cast<std::size_t>(context.batch)) {}

Prediction::Prediction(const PredictionContext& context, const RecordSource& source)
    : context_(context),
      columns_(prediction_columns(context.form, context.model.output().size())),
      rows_(source.info().rows),
      label_columns_(source.info().label_columns()),
      share_rows_(context.batch * context.team.size()) {
  const Index rank = context.comm.rank();
  Index count = 0;
  for (Index round = 0; share(round, 0).begin < rows_; ++round) count += share(round, rank).size();
  RankPeerGroup peers(context.comm);
  // No target is used; one that is missing is no fault.
  records_ = load_records(
      source, {.may_miss = true},
      needed_by_owner([this](Index id) { return id / share_rows_ % context_.comm.size(); }, count), peers);
  peers.agree([&] {
    for (int thread = 0; thread < context.team.size(); ++thread) lanes_.emplace_back(context, label_columns_);
    for (int i = 0; i < (rank == 0 ? context.comm.size() : 1); ++i) {
      results_.emplace_back(share_rows_ * columns_.size());
    }
  });
}

// The rows of a rank in a round; empty behind the end.
Range Prediction::share(Index round, Index rank) const {
  const Index begin = (round * context_.comm.size() + rank) * share_rows_;
  return {std::min(begin, rows_), std::min(begin + share_rows_, rows_)};
}

void Prediction::run(const ModelValues& values, const Sink& sink) {
  KernelWeights weights(context_.model);
  const ModelValues operands = weights.prepare(values, context_.team);
  for (Index round = 0; share(round, 0).begin < rows_; ++round) {
    predict_share(operands, share(round, context_.comm.rank()));
    collect(round, sink);
  }
}

void Prediction::predict_share(const ModelValues& values, Range rows) {
  context_.team.run([&](int thread) {
    const Range block =
        intersect({rows.begin + thread * context_.batch, rows.begin + (thread + 1) * context_.batch}, rows);
    if (block.empty()) return;
    Scalar* first = results_.front().data() + (block.begin - rows.begin) * columns_.size();
    Matrix predictions(first, block.size(), columns_.size());
    predict_block(at(lanes_, thread), values, block, predictions);
  });
}

void Prediction::predict_block(Lane& lane, const ModelValues& values, Range rows, Matrix& predictions) {
  const std::span<Index> ids = std::span(lane.ids).first(static_cast<std::size_t>(rows.size()));
  for (Index row = rows.begin; row < rows.end; ++row) at(ids, row - rows.begin) = row;
  Matrix x(lane.features.data(), rows.size(), context_.model.input().size());
  Matrix labels(lane.labels.data(), rows.size(), label_columns_);
  records_->gather(ids, x, labels);
  if (change_) change_(ids, x);
  context_.normaliser.apply(x);
  const ConstMatrix outputs = divide_outputs(
      lane.workspace.forward({.values = values, .x = ConstMatrix(x.data(), x.rows(), x.cols()), .batch = {}}),
      context_.temperature, lane.scaled.span());
  predict_rows(context_.form, outputs, predictions, context_.label_scales);
}

void Prediction::collect(Index round, const Sink& sink) {
  const auto scalars = [&](Index rank) { return share(round, rank).size() * columns_.size(); };
  Communicator& comm = context_.comm;
  if (comm.rank() > 0) {
    const std::span<Scalar> mine = part(results_.front().span(), {0, scalars(comm.rank())});
    if (mine.empty()) return;
    const Send send{.peer = 0, .buffer = as_buffer(mine)};
    comm.start_exchange(kResults, {&send, 1}, {})->wait();
    return;
  }
  std::vector<Receive> receives;
  for (int rank = 1; rank < comm.size() && scalars(rank) > 0; ++rank) {
    const auto position = static_cast<std::size_t>(rank);
    receives.push_back(
        {.peer = rank, .buffer = as_buffer(part(results_[position].span(), {0, scalars(rank)}))});
  }
  comm.start_exchange(kResults, {}, receives)->wait();
  for (int rank = 0; rank < comm.size() && scalars(rank) > 0; ++rank) {
    sink(ConstMatrix(at(results_, rank).data(), share(round, rank).size(), columns_.size()));
  }
}

}  // namespace lockstep
