#include "lockstep/train/evaluation/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/distributed/tied_weights.h"
#include "lockstep/math/elementary.h"
#include "lockstep/nn/stages.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/evaluation/threshold.h"
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

// Puts the quantiles of each target in order; false if they were. What is not a number stays where it is.
bool sort_levels(std::span<Scalar> values, std::size_t levels) {
  bool crossed = false;
  for (; !values.empty(); values = values.subspan(levels)) {
    const std::span<Scalar> target = values.first(levels);
    const bool finite = std::ranges::all_of(target, [](Scalar x) { return std::isfinite(x); });
    if (!finite || std::ranges::is_sorted(target)) continue;
    std::ranges::sort(target);
    crossed = true;
  }
  return crossed;
}

using Names = std::shared_ptr<const std::vector<std::string>>;

std::vector<std::string> with_numbers(std::vector<std::string> names, Index count) {
  for (Index i = std::ssize(names); i < count; ++i) names.push_back(fmt::format("{}", i));
  return names;
}

// Names of no and yes of a target.
std::vector<std::string> names_of_answers(std::span<const TargetLabel> labels, Index target) {
  if (target >= std::ssize(labels)) return with_numbers({}, 2);
  return with_numbers(labels[static_cast<std::size_t>(target)].classes, 2);
}

std::string name_of_target(std::span<const TargetLabel> labels, Index target) {
  if (target >= std::ssize(labels)) return fmt::format("target{}", target);
  return labels[static_cast<std::size_t>(target)].name;
}

const char* prefix_of(const OutputForm& form) {
  return form.link == Link::kIdentity ? "score_" : "p_";
}

// The number of a column of a row.
auto copy_of(Index column) {
  return [column](const Scalar* row) { return static_cast<double>(row[column]); };
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

Index predict_rows(const OutputForm& form, const ConstMatrix& outputs, Matrix& predictions) {
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
    } else if (form.link == Link::kLog) {
      std::ranges::transform(x, values, exponential);
    } else {
      std::ranges::copy(x, values);
    }
  }
  return sort_quantiles(form, predictions);
}

Index sort_quantiles(const OutputForm& form, Matrix& rows) {
  Index crossed = 0;
  for (Index row = 0; row < rows.rows() && form.quantiles.size() > 1; ++row) {
    const std::span<Scalar> values(rows.data() + row * rows.cols(), static_cast<std::size_t>(rows.cols()));
    crossed += sort_levels(values, form.quantiles.size()) ? 1 : 0;
  }
  return crossed;
}

std::string describe_crossed(Index count, bool of_positions) {
  return fmt::format("quantiles of {} crossed, and were sorted",
                     plural(count, of_positions ? "position" : "record"));
}

double in_label_units(const OutputForm& form, std::span<const LabelScale> scales, Index output,
                      Scalar value) {
  const auto number = static_cast<double>(value);
  const bool scaled = form.targets == TargetKind::kValue && !form.direction && !scales.empty();
  return scaled ? at(scales, output / form.outputs_per_target()).undo(number) : number;
}

Prediction::Lane::Lane(const Prediction& prediction)
    : RecordLane(prediction, prediction.context_.batch),
      scaled(prediction.context_.temperature == 1 || !prediction.context_.has_outputs()
                 ? 0
                 : prediction.context_.batch * prediction.context_.outputs() *
                       prediction.context_.rows_of_record()) {}

Prediction::Prediction(const PredictionContext& context, const RecordSource& source)
    : RecordPasses(context.model, context.normaliser, context.pipeline, source.info(), false),
      context_(context),
      columns_(prediction_columns(context.form, context.outputs())),
      rows_(info_.rows),
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
    needs.part = part_;
    // No target is used; one that is missing is no fault.
    const TargetRule rule{.may_miss = true,
                          .rows = rows_of_embedding(context.model.whole(), context.normaliser)};
    records_ = load_records(source, rule, needs, peers);
  });
  agree(context.comm, [&] {
    for (int thread = 0; thread < context.team.size(); ++thread) lanes_.emplace_back(*this);
    const Index results = context.comm.rank() == 0 ? context.workers().size() : context.has_outputs() ? 1 : 0;
    for (Index i = 0; i < results; ++i)
      results_.emplace_back(share_rows_ * context.rows_of_record() * columns_.size());
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
  for (Lane& lane : lanes_) lane.crossed = 0;
  for (Index round = 0; share(round, 0).begin < rows_; ++round) {
    predict_share(operands, share(round, context_.workers().rank()));
    tied.finish();
    collect(round, sink);
  }
  crossed_ = 0;
  for (const Lane& lane : lanes_) crossed_ += lane.crossed;
  context_.comm.all_reduce_sum(as_buffer(std::span(&crossed_, 1)));
}

void Prediction::predict_share(const ModelValues& values, Range rows) {
  context_.team.run([&](int thread) {
    Lane& lane = at(lanes_, thread);
    const Index blocks = divide_up(rows.size(), context_.batch);
    const Range mine = intersect({thread * thread_blocks_, (thread + 1) * thread_blocks_}, {0, blocks});
    for_each_pass(context_.model, context_.pipeline, mine, [&](Index i, Index chunk) {
      const Index begin = rows.begin + i * context_.batch;
      const Range block = intersect({begin, begin + context_.batch}, rows);
      const Index rows_of_record = context_.rows_of_record();
      Scalar* first = context_.has_outputs()
                          ? results_.front().data() + i * context_.batch * rows_of_record * columns_.size()
                          : nullptr;
      Matrix predictions(first, block.size() * rows_of_record, columns_.size());
      predict_block(lane, values, block, chunk, predictions);
    });
    lane.passes.finish();
  });
}

void Prediction::predict_block(Lane& lane, const ModelValues& values, Range rows, Index chunk,
                               Matrix& predictions) {
  const std::optional<ConstMatrix> given = forward(lane, values, rows, chunk);
  if (!given) return;
  const ConstMatrix all = divide_outputs(*given, context_.temperature, lane.scaled.span());
  const ConstMatrix outputs(all.data(), rows.size() * context_.rows_of_record(), context_.outputs());
  lane.crossed += context_.form.positions > 0 && info_.has_lengths
                      ? predict_records(lane, outputs, predictions)
                      : predict_rows(context_.form, outputs, predictions);
}

// As predict_rows(), of the positions of each record that count; the others are padding.
Index Prediction::predict_records(const Lane& lane, const ConstMatrix& outputs, Matrix& predictions) const {
  const std::vector<Index>& lengths = context_.model.whole().ops().back().lengths_out;
  const Index positions = context_.form.positions;
  Index crossed = 0;
  for (Index begin = 0; begin < outputs.rows(); begin += positions) {
    const Index length = static_cast<Index>(at(lane.lengths.span(), begin / positions));
    const Range counted{begin, begin + at(lengths, length)};
    Matrix of_record(predictions.data() + begin * columns_.size(), counted.size(), columns_.size());
    crossed += predict_rows(context_.form, rows_of(outputs, counted), of_record);
    std::fill_n(of_record.data() + of_record.size(), (positions - counted.size()) * columns_.size(),
                kPadding);
  }
  return crossed;
}

// The results of a worker are at the last rank of its group.
void Prediction::collect(Index round, const Sink& sink) {
  const Index workers = context_.workers().size();
  const auto lines = [&](Index worker) { return share(round, worker).size() * context_.rows_of_record(); };
  const auto scalars = [&](Index worker) { return lines(worker) * columns_.size(); };
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
    sink(ConstMatrix(at(results_, worker).data(), lines(worker), columns_.size()));
  }
}

std::vector<std::string> class_names(const OutputForm& form, Index outputs,
                                     std::span<const TargetLabel> labels) {
  if (form.targets == TargetKind::kBinary) return names_of_answers(labels, 0);
  std::vector<std::string> names;
  if (labels.size() == 1 || (form.positions > 0 && !labels.empty())) {
    names = labels.front().classes;
  } else {  // each is the probability of a class
    for (const TargetLabel& label : labels) names.push_back(label.name);
  }
  return with_numbers(std::move(names), outputs);
}

void check_view(const PredictionView& view, const OutputForm& form, Index outputs) {
  const bool of_classes = form.targets != TargetKind::kValue;
  error_if(view.probabilities && (!of_classes || form.link == Link::kIdentity),
           "--proba: the model gives {}, not probabilities: leave --proba out",
           of_classes ? "scores (its train.loss is a hinge loss)" : "numbers");
  error_if(view.top > 0 && form.targets != TargetKind::kClass,
           "--top: the model {}, so there are no most probable classes: leave --top out",
           of_classes ? "says yes or no" : "gives numbers");
  error_if(view.top > outputs, "--top {}: the model has {} classes: give at most that many", view.top,
           outputs);
  error_if(view.threshold && !has_yes(form, outputs),
           "--threshold is the probability from which on a model says yes, but this one {}: leave "
           "--threshold out",
           !of_classes                    ? "gives numbers"
           : form.link == Link::kIdentity ? "gives scores (its train.loss is a hinge loss)"
                                          : fmt::format("has {} classes", outputs));
}

PredictionTable::PredictionTable(const OutputForm& form, Index outputs, std::span<const TargetLabel> labels,
                                 const PredictionView& view, std::vector<LabelScale> scales)
    : form_(form),
      outputs_(outputs),
      view_(view),
      scales_(form.direction ? std::vector<LabelScale>() : std::move(scales)),
      ranked_(static_cast<std::size_t>(outputs)) {
  switch (form.targets) {
    case TargetKind::kClass:
      add_classes(labels);
      break;
    case TargetKind::kBinary:
      add_answers(labels);
      break;
    case TargetKind::kValue:
      add_values(labels);
      break;
  }
}

void PredictionTable::add(PredictionColumn column, Value value) {
  columns_.push_back(std::move(column));
  values_.push_back(std::move(value));
}

// The class: that of the column `label` or, with a threshold, whether the probability in the column `yes`
// reaches it.
PredictionTable::Value PredictionTable::answer(Index label, Index yes) const {
  if (!view_.threshold) return copy_of(label);
  return [yes, threshold = *view_.threshold](const Scalar* row) {
    return static_cast<double>(row[yes]) >= threshold ? 1.0 : 0.0;
  };
}

// A row has the class first, then a value for each class.
void PredictionTable::add_classes(std::span<const TargetLabel> labels) {
  const auto names = std::make_shared<const std::vector<std::string>>(class_names(form_, outputs_, labels));
  const char* const prefix = prefix_of(form_);
  for (Index i = 0; i < view_.top; ++i) {
    add({.name = fmt::format("top{}", i + 1), .classes = names},
        [this, i](const Scalar*) { return static_cast<double>(at(ranked_, i)); });
    add({.name = fmt::format("{}top{}", prefix, i + 1)},
        [this, i](const Scalar* row) { return static_cast<double>(row[1 + at(ranked_, i)]); });
  }
  if (view_.top > 0) return;
  if (!view_.probabilities) add({.name = "prediction", .classes = names}, answer(0, 2));
  for (Index i = 0; i < outputs_; ++i)
    add({.name = fmt::format("{}{}", prefix, at(*names, i))}, copy_of(1 + i));
}

// A row has 0 or 1 for each target, then the probability of yes for each.
void PredictionTable::add_answers(std::span<const TargetLabel> labels) {
  const bool one = outputs_ == 1;
  for (Index i = 0; i < outputs_ && !view_.probabilities; ++i) {
    add({.name = one ? "prediction" : name_of_target(labels, i),
         .classes = std::make_shared<const std::vector<std::string>>(names_of_answers(labels, i))},
        answer(i, outputs_ + i));
  }
  const char* const prefix = prefix_of(form_);
  const std::vector<std::string> answers = names_of_answers(labels, 0);
  if (one && form_.link == Link::kLogit && !view_.outputs_only) {
    add({.name = fmt::format("{}{}", prefix, answers.front())},
        [](const Scalar* row) { return static_cast<double>(1 - row[1]); });
  }
  for (Index i = 0; i < outputs_; ++i) {
    add({.name = fmt::format("{}{}", prefix, one ? answers.back() : name_of_target(labels, i))},
        copy_of(outputs_ + i));
  }
}

void PredictionTable::add_values(std::span<const TargetLabel> labels) {
  const Index levels = form_.outputs_per_target();
  const bool one = outputs_ == levels;
  for (Index i = 0; i < outputs_; ++i) {
    std::string name = one ? "prediction" : name_of_target(labels, i / levels);
    if (!form_.quantiles.empty()) {
      const std::string level = fmt::format("q{}", at(form_.quantiles, i % levels));
      name = one ? level : fmt::format("{}_{}", name, level);
    }
    const int digits = scales_.empty() ? 0 : at(scales_, i / levels).digits();
    add({.name = std::move(name), .digits = digits},
        [this, i](const Scalar* row) { return in_label_units(form_, scales_, i, row[i]); });
  }
}

PredictedRows PredictionTable::convert(const ConstMatrix& rows) {
  converted_.clear();
  for (Index i = 0; i < rows.rows(); ++i) {
    const Scalar* const row = rows.data() + i * rows.cols();
    if (view_.top > 0) rank_values(row + 1);
    for (const Value& value : values_) converted_.push_back(value(row));
  }
  return {converted_.data(), rows.rows(), std::ssize(values_)};
}

// Equal values come in the order of their classes; what is not a number comes last.
void PredictionTable::rank_values(const Scalar* values) {
  const auto value = [values](Index output) {
    return std::isnan(values[output]) ? -std::numeric_limits<Scalar>::infinity() : values[output];
  };
  std::iota(ranked_.begin(), ranked_.end(), Index{0});
  std::partial_sort(ranked_.begin(), ranked_.begin() + view_.top, ranked_.end(),
                    [&](Index a, Index b) { return value(a) > value(b) || (value(a) == value(b) && a < b); });
}

}  // namespace lockstep
