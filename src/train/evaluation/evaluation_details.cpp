#include "lockstep/train/evaluation/evaluation_details.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/base/json.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/table/sources/feature_columns.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

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
std::vector<FeatureColumn> shown_columns(const DatasetInfo& info, const std::string& schema) {
  constexpr std::size_t kMaxColumns = 16;
  if (info.features.dims.size() > 1 || info.features.size() > kMaxFeatures) return {};
  std::vector<FeatureColumn> columns = feature_columns(schema, info.features.size());
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

}  // namespace

EvaluationDetails describe_evaluation(const EvaluationContext& context, Evaluation& evaluation,
                                      const RecordSource& source, const ModelValues& values) {
  const DatasetInfo& info = evaluation.info();
  const OutputForm form = context.loss.form();
  const Index outputs = context.outputs();
  PredictionWords words{.classes = info.class_names};
  std::vector<FeatureColumn> columns;
  agree(context.comm, [&] {
    words.scales = read_label_scales(source.schema());
    columns = shown_columns(info, source.schema());
  });
  std::vector<Lane> lanes;
  for (int thread = 0; thread < evaluation.threads(); ++thread) {
    lanes.push_back({.counts = {form, outputs},
                     .fits = {form, outputs, info.rows, words.scales},
                     .worst = {context.loss, words}});
  }
  evaluation.visit(values, [&](int thread, const MetricRows& rows, std::span<const Index> ids) {
    Lane& lane = at(lanes, thread);
    lane.counts.add(rows);
    lane.fits.add(rows, ids);
    lane.worst.add(rows, ids);
  });
  Lane& first = lanes.front();
  for (Lane& lane : std::span(lanes).subspan(1)) {
    first.counts.add(lane.counts);
    first.fits.add(lane.fits);
    for (const WorstRecord& record : lane.worst.records()) first.worst.add(record);
  }
  EvaluationDetails details{.split = evaluation.split(),
                            .samples = info.rows,
                            .shape = info.features,
                            .classes = info.class_names,
                            .curves = first.counts.curves(context.comm),
                            .fits = first.fits.fits(context.comm)};
  for (const WorstRecord& record : merge_worst(context.comm, first.worst)) {
    details.worst.push_back(
        {.record = record, .position = source.position(record.id), .file = file_of(source, record.id)});
    if (columns.empty() && (!as_image(info.features) || info.features.size() > kMaxFeatures)) continue;
    std::vector<Scalar> features = features_of(context, evaluation, record.id);
    for (const FeatureColumn& column : columns)
      details.worst.back().cells.push_back(value_text(column, part(std::span(features), column.features)));
    if (columns.empty()) details.worst.back().pixels = std::move(features);
  }
  for (const FeatureColumn& column : columns) details.columns.push_back(column.name);
  return details;
}

}  // namespace lockstep
