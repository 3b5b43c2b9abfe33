#include "lockstep/train/evaluation/evaluation_details.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lockstep/base/hash.h"
#include "lockstep/base/json.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/table/sources/feature_columns.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/evaluation/prediction.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// One thread collects these.
struct Lane {
  ThresholdCounts counts;
  FitSamples fits;
  WorstRecords worst;
};

// *Collective.* The worst records of all ranks, on all ranks.
std::vector<WorstRecord> merge_worst(Communicator& comm, WorstRecords worst) {
  Json mine = Json::array();
  for (const WorstRecord& each : worst.records()) {
    // JSON has no infinity.
    const Json loss = std::isfinite(each.loss) ? Json(each.loss) : Json(nullptr);
    mine.push_back({loss, each.id, each.target, each.prediction});
  }
  const std::vector<std::string> texts =
      gather_texts(comm, mine.dump(-1, ' ', false, Json::error_handler_t::replace));
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    if (static_cast<int>(rank) == comm.rank()) continue;
    for (const Json& each : parse_json<Json>(texts[rank])) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      worst.add({.loss = each[0].is_null() ? kInfinity : each[0].get<double>(),
                 .id = each[1],
                 .target = each[2],
                 .prediction = each[3]});
    }
  }
  return worst.records();
}

constexpr Index kMaxFeatures = Index{256} * 256 * 3;

// The columns of a table, or features of vectors; none for images and for what is too long to be looked at.
std::vector<FeatureColumn> shown_columns(const RecordSource& source) {
  constexpr std::size_t kMaxColumns = 16;
  const Shape& features = source.info().features;
  if (features.dims.size() > 1 || features.size() > kMaxFeatures) return {};
  std::vector<FeatureColumn> columns = feature_columns(source.schema(), features.size());
  if (columns.size() > kMaxColumns) columns.resize(kMaxColumns);
  return columns;
}

// *Collective.* The features of a record, from the rank that holds it: on all ranks.
std::vector<Scalar> features_of(const EvaluationContext& context, const Evaluation& evaluation, Index id) {
  const DatasetInfo& info = evaluation.info();
  std::vector<Scalar> features(static_cast<std::size_t>(info.features.size()));
  // The first rank of the group that evaluates it.
  const Index group = evaluation.owner(id);
  const auto owner =
      static_cast<int>(context.pipeline == nullptr ? group : context.pipeline->grid().rank_of(group, 0));
  if (owner == context.comm.rank()) {
    std::vector<Scalar> labels(static_cast<std::size_t>(info.label_columns()));
    Matrix x(features.data(), 1, std::ssize(features));
    Matrix targets(labels.data(), 1, std::ssize(labels));
    evaluation.records().gather({&id, 1}, x, targets);
  }
  context.comm.broadcast(as_buffer(std::span(features)), owner);
  return features;
}

std::string file_of(const RecordSource& source, Index id) {
  const auto holds = [&](const Chunk& chunk) { return chunk.records.contains(id); };
  return source.file_of(*std::ranges::find_if(source.chunks(), holds));
}

// A sample is drawn if a hash of its id is below a bound, so that a few more than wanted are; those with the
// least hashes stay. So the sample does not depend on who evaluates what.

constexpr Index kWanted = 1000;

std::uint64_t key_of(Index id) {
  const std::array<Index, 1> one{id};
  return hash_bytes(std::as_bytes(std::span(one)));
}

constexpr Index kMaxNumbers = 6;

bool is_worse(double loss, Index id, const WorstRecord& other) {
  return loss > other.loss || (loss == other.loss && id < other.id);
}

SampleWeights present_of(const SampleWeights& weights, Index row) {
  if (weights.present.empty()) return {};
  return {.values = {}, .present = part(weights.present, {row, row + 1}), .targets = weights.targets};
}

// The loss of one sample: the mean over its targets that are there.
double loss_of(const Loss& loss, const MetricRows& rows, Index row) {
  const Range one{row, row + 1};
  const SampleWeights present = present_of(rows.weights, row);
  return evaluate_weighted(loss, rows_of(rows.outputs, one), rows_of(rows.targets, one), present, nullptr) /
         present.sum(1);
}

std::string name_of(const PredictionWords& words, Index of_class) {
  const bool named = of_class < std::ssize(words.classes);
  return named ? at(words.classes, of_class) : fmt::format("{}", of_class);
}

// In the units of the labels. `per_target`: values of each target.
std::string numbers(const OutputForm& form, const PredictionWords& words, std::span<const Scalar> values,
                    Index per_target) {
  constexpr int kDigits = 5;
  constexpr int kDigitsOfSingle = 9;
  OutputForm alone = form;
  if (per_target == 1) alone.quantiles.clear();
  std::vector<std::string> texts;
  for (Index i = 0; i < std::min(std::ssize(values), kMaxNumbers); ++i) {
    const int needed = words.scales.empty() ? 0 : at(words.scales, i / per_target).digits();
    texts.push_back(fmt::format("{:.{}g}", in_label_units(alone, words.scales, i, at(values, i)),
                                kDigits + std::max(0, needed - kDigitsOfSingle)));
  }
  if (std::ssize(values) > kMaxNumbers) texts.emplace_back("...");
  return fmt::format("{}", fmt::join(texts, ", "));
}

// "Shirt (97.1 %); Coat has 1.2 %"
std::string class_text(const OutputForm& form, const PredictionWords& words, std::span<const Scalar> values,
                       Index of_class) {
  const Index predicted = std::ranges::max_element(values) - values.begin();
  if (form.link == Link::kIdentity) return name_of(words, predicted);
  const auto share = [&](Index i) { return 100 * static_cast<double>(at(values, i)); };
  std::string text = fmt::format("{} ({:.1f} %)", name_of(words, predicted), share(predicted));
  if (predicted != of_class)
    text += fmt::format("; {} has {:.1f} %", name_of(words, of_class), share(of_class));
  return text;
}

// Texts of the target and of the prediction of one row.
WorstRecord describe(const OutputForm& form, const PredictionWords& words, const MetricRows& rows,
                     Index row) {
  const ConstMatrix outputs = rows_of(rows.outputs, {row, row + 1});
  const PredictionColumns columns = prediction_columns(form, outputs.cols());
  std::vector<Scalar> predicted(static_cast<std::size_t>(columns.size()));
  Matrix prediction(predicted.data(), 1, columns.size());
  predict_rows(form, outputs, prediction);
  const std::span<const Scalar> values(predicted.data() + columns.labels,
                                       static_cast<std::size_t>(columns.values));
  const ConstMatrix target = rows_of(rows.targets, {row, row + 1});
  std::vector<Scalar> targets(target.values().begin(), target.values().end());
  if (form.targets == TargetKind::kClass) {
    const Index of_class = true_class(rows.targets, row);
    return {.target = name_of(words, of_class), .prediction = class_text(form, words, values, of_class)};
  }
  if (form.targets == TargetKind::kBinary && targets.size() == 1) {
    return {.target = name_of(words, class_of(targets)),
            .prediction = form.link == Link::kLogit
                              ? fmt::format("{} has {:.1f} %", name_of(words, 1), 100 * values[0])
                              : numbers(form, words, values, 1)};
  }
  return {.target = numbers(form, words, targets, 1),
          .prediction = numbers(form, words, values, form.outputs_per_target())};
}

}  // namespace

EvaluationDetails describe_evaluation(const EvaluationContext& context, Evaluation& evaluation,
                                      const RecordSource& source, const ModelValues& values) {
  const DatasetInfo& info = evaluation.info();
  const OutputForm form = context.loss.form();
  const Index outputs = context.outputs();
  const Index positions = std::max<Index>(1, form.positions);
  const std::optional<ForecastForm>& forecasts = evaluation.forecast_form();
  const auto* const windows = source.as_windows();
  PredictionWords words{.classes = info.class_names};
  std::vector<FeatureColumn> columns;
  std::vector<ShownWindow> shown;
  agree(context.comm, [&] {
    words.scales = label_scales(source);
    if (windows == nullptr) columns = shown_columns(source);
    if (forecasts) shown = choose_windows(*windows, *forecasts);
  });
  std::vector<Lane> lanes;
  for (int thread = 0; thread < evaluation.threads(); ++thread) {
    lanes.push_back({.counts = {form, outputs},
                     .fits = {form, windows == nullptr ? outputs : 0, info.rows * positions, words.scales},
                     .worst = {context.loss.of_position(), words}});
  }
  evaluation.visit(values, [&](int thread, const MetricRows& rows, std::span<const Index> ids) {
    Lane& lane = at(lanes, thread);
    lane.counts.add(rows);
    lane.fits.add(rows, ids);
    lane.worst.add(rows, ids);
    if (forecasts) add_forecasts(*forecasts, rows, ids, shown);
  });
  const bool outputs_named = form.targets == TargetKind::kBinary && outputs > 1;
  Lane& first = lanes.front();
  for (Lane& lane : std::span(lanes).subspan(1)) {
    first.counts.add(lane.counts);
    first.fits.add(lane.fits);
    for (const WorstRecord& record : lane.worst.records()) first.worst.add(record);
  }
  EvaluationDetails details{.split = evaluation.split(),
                            .samples = info.rows,
                            .shape = info.features,
                            .classes = outputs_named ? std::vector<std::string>() : info.class_names,
                            .outputs = outputs_named ? evaluation.output_names() : std::vector<std::string>(),
                            .curves = first.counts.curves(context.comm),
                            .fits = first.fits.fits(context.comm)};
  share_forecasts(context.comm, shown);
  details.windows = std::move(shown);
  for (const WorstRecord& record : merge_worst(context.comm, first.worst)) {
    const Index id = record.id / positions;
    details.worst.push_back({.record = record, .position = source.position(id), .file = file_of(source, id)});
    if (form.positions > 0) details.worst.back().of_record = record.id % positions;
    if (windows != nullptr) {
      details.worst.back().cells = windows->series_of(id);
      details.worst.back().cells.push_back(windows->time_of(id, 0));
      continue;
    }
    if (columns.empty() && (!as_image(info.features) || info.features.size() > kMaxFeatures)) continue;
    std::vector<Scalar> features = features_of(context, evaluation, id);
    for (const FeatureColumn& column : columns)
      details.worst.back().cells.push_back(value_text(column, part(std::span(features), column.features)));
    if (columns.empty()) details.worst.back().pixels = std::move(features);
  }
  for (const FeatureColumn& column : columns) details.columns.push_back(column.name);
  if (windows != nullptr) details.columns = windows->windows().series;
  if (windows != nullptr) details.columns.emplace_back("first time ahead");
  return details;
}

FitSamples::FitSamples(const OutputForm& form, Index outputs, Index rows, std::vector<LabelScale> scales)
    : form_(form), scales_(std::move(scales)) {
  if (form.targets != TargetKind::kValue || form.direction) return;
  targets_.resize(static_cast<std::size_t>(std::min(outputs / form.outputs_per_target(), kMaxFits)));
  const double share = 2 * static_cast<double>(kWanted) / static_cast<double>(std::max<Index>(rows, 1));
  drawn_below_ = share >= 1 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(share * 0x1p64);
}

void FitSamples::add(const MetricRows& rows, std::span<const Index> ids) {
  if (targets_.empty()) return;
  const Index levels = form_.outputs_per_target();
  std::vector<Scalar> values(static_cast<std::size_t>(rows.outputs.size()));
  Matrix predictions(values.data(), rows.outputs.rows(), rows.outputs.cols());
  predict_rows(form_, rows.outputs, predictions);
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const auto column = static_cast<Index>(i);
    const Index output = column * levels + levels / 2;
    const auto in_units = [&](Scalar value) { return in_label_units(form_, scales_, output, value); };
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      const double prediction = in_units(predictions(row, output));
      const double target = in_units(rows.targets(row, column));
      if (!std::isfinite(prediction) || !std::isfinite(target)) continue;
      targets_[i].residuals.push_back(static_cast<Scalar>(prediction - target));
      const std::uint64_t key = key_of(at(ids, row));
      if (key <= drawn_below_) targets_[i].drawn.push_back({key, target, prediction});
    }
  }
}

void FitSamples::add(FitSamples& other) {
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const OneTarget& theirs = other.targets_[i];
    targets_[i].drawn.insert(targets_[i].drawn.end(), theirs.drawn.begin(), theirs.drawn.end());
    targets_[i].residuals.insert(targets_[i].residuals.end(), theirs.residuals.begin(),
                                 theirs.residuals.end());
  }
}

std::vector<TargetFit> FitSamples::fits(Communicator& comm) {
  std::vector<TargetFit> fits;
  for (const OneTarget& samples : targets_) fits.push_back(fit(comm, samples));
  return fits;
}

TargetFit FitSamples::fit(Communicator& comm, const OneTarget& samples) {
  std::vector<Drawn> drawn = gather_records<Drawn>(comm, samples.drawn);
  std::ranges::sort(drawn);
  const Index wanted = broadcast_value(comm, std::min(std::ssize(drawn), kWanted));
  drawn.resize(static_cast<std::size_t>(wanted));
  comm.broadcast(as_buffer(std::as_writable_bytes(std::span(drawn))), 0);

  TargetFit fit;
  std::vector<double> sizes;
  for (const Drawn& each : drawn) {
    fit.sample.emplace_back(each.target, each.prediction);
    sizes.push_back(std::abs(each.prediction - each.target));
  }
  std::ranges::sort(sizes);
  // A few wild residuals do not squeeze all others into one bin.
  if (!sizes.empty()) fit.width = 1.2 * sizes[(sizes.size() - 1) * 98 / 100];
  if (fit.width <= 0) fit.width = 1;
  fit.residuals.resize(kResidualBins);
  for (const Scalar residual : samples.residuals) {
    const double place =
        (static_cast<double>(residual) / fit.width + 1) / 2 * static_cast<double>(kResidualBins);
    const double bin = std::clamp(place, 0.0, static_cast<double>(kResidualBins - 1));
    ++at(fit.residuals, static_cast<Index>(bin));
  }
  comm.all_reduce_sum(as_buffer(std::span(fit.residuals)));
  return fit;
}

bool WorstRecords::is_wanted(double loss, Index id) const {
  return records_.size() < kWorstRecords || is_worse(loss, id, records_.back());
}

void WorstRecords::add(const WorstRecord& record) {
  if (!is_wanted(record.loss, record.id)) return;
  if (records_.size() == kWorstRecords) records_.pop_back();
  const auto before = std::ranges::find_if(
      records_, [&](const WorstRecord& each) { return is_worse(record.loss, record.id, each); });
  records_.insert(before, record);
}

void WorstRecords::add(const MetricRows& rows, std::span<const Index> ids) {
  const OutputForm form = loss_.form();
  for (Index row = 0; row < rows.outputs.rows(); ++row) {
    if (!rows.weights.present.empty() && at(rows.weights.present, row) == 0) continue;
    double loss = loss_of(loss_, rows, row);
    if (std::isnan(loss)) loss = std::numeric_limits<double>::infinity();
    if (!is_wanted(loss, at(ids, row))) continue;
    WorstRecord record = describe(form, words_, rows, row);
    record.loss = loss;
    record.id = at(ids, row);
    add(record);
  }
}

}  // namespace lockstep
