// The set is evaluated as it is, and then once for each column and repeat with that column permuted. A
// permutation pi says that record i gets the column of record pi(i), its donor. A rank evaluates its own
// share of the records, and needs their donors beside them: these are loaded anew in each repeat, for all
// columns. On one rank, which holds all records, they are at hand.
#include "lockstep/train/evaluation/importance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/base/timer.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/loading/load_records.h"
#include "lockstep/math/eigen_matrix.h"
#include "lockstep/train/rank_peer_group.h"

namespace lockstep {
namespace {

KeyedPermutation permutation_of(Index rows, std::uint64_t seed, Index repeat) {
  return {rows,
          {.seed = seed, .purpose = Purpose::kImportance, .a = static_cast<std::uint64_t>(repeat), .b = 0}};
}

// *Collective.* The donors of the records that this rank evaluates.
std::unique_ptr<Records> load_donors(const Evaluation& evaluation, const RecordSource& source,
                                     const KeyedPermutation& order, Communicator& comm) {
  RankPeerGroup peers(comm);
  const auto owner = [&](Index id) { return evaluation.owner(order.inverse(id)); };
  return load_records(source, {.may_miss = true}, needed_by_owner(owner, evaluation.records().rows()), peers);
}

// Gives records the features of a column that their donors have.
FeatureChange swap_column(const Records& donors, const KeyedPermutation& order, Range features,
                          Index label_columns) {
  return [&donors, &order, features, label_columns](std::span<const Index> ids, Matrix& x) {
    std::vector<Index> others(ids.begin(), ids.end());
    order.apply(others);
    AlignedBuffer<Scalar> stored(x.size() + x.rows() * label_columns);
    Matrix theirs(stored.data(), x.rows(), x.cols());
    Matrix labels(stored.data() + x.size(), x.rows(), label_columns);
    donors.gather(others, theirs, labels);
    as_eigen(x).middleCols(features.begin, features.size()) =
        as_eigen(theirs).middleCols(features.begin, features.size());
  };
}

double value_of(const Measure& measure, const EvalMetrics& metrics, const std::string& of) {
  const std::optional<double> value = measure.of(metrics);
  if (value) return *value;
  throw AgreedError(fmt::format("the {} of {} is not defined, or no finite number: choose another measure "
                                "(--metric) or another set",
                                measure.name(), of),
                    kExitData);
}

}  // namespace

double ColumnImportance::mean() const {
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

double ColumnImportance::deviation() const {
  double squares = 0;
  for (const double loss : losses) squares += (loss - mean()) * (loss - mean());
  return std::sqrt(squares / static_cast<double>(losses.size()));
}

Importance permutation_importance(const EvaluationContext& context, const RecordSource& source, Split split,
                                  const ModelValues& values, const ImportanceRequest& request) {
  Evaluation evaluation(context, source, split);
  evaluation.set_temperature(request.temperature);
  const DatasetInfo& info = source.info();
  const std::string set = fmt::format("{} ({} set)", in_quotes(info.name), to_string(split));
  const double sign = smaller_is_better(request.measure.name()) ? 1 : -1;
  Importance importance{.samples = info.rows,
                        .baseline = value_of(request.measure, evaluation.run(values), set),
                        .columns = {}};
  for (const FeatureColumn& column : request.columns) importance.columns.push_back({column.name, {}});
  for (Index repeat = 0; repeat < request.repeats; ++repeat) {
    const Stopwatch watch;
    const KeyedPermutation order = permutation_of(info.rows, request.seed, repeat);
    std::unique_ptr<Records> loaded;
    if (context.comm.size() > 1) loaded = load_donors(evaluation, source, order, context.comm);
    const Records& donors = loaded ? *loaded : evaluation.records();
    for (std::size_t i = 0; i < request.columns.size(); ++i) {
      const FeatureColumn& column = request.columns[i];
      evaluation.change_features(swap_column(donors, order, column.features, info.label_columns()));
      const std::string of = fmt::format("{} with column {} permuted", set, in_quotes(column.name));
      const double permuted = value_of(request.measure, evaluation.run(values), of);
      importance.columns[i].losses.push_back(sign * (permuted - importance.baseline));
    }
    if (context.comm.rank() == 0) {
      log_info("importance: repeat {} of {}, {}, in {}", repeat + 1, request.repeats,
               plural(std::ssize(request.columns), "column"), human_seconds(watch.seconds()));
    }
  }
  std::ranges::stable_sort(importance.columns, [](const ColumnImportance& a, const ColumnImportance& b) {
    return a.mean() > b.mean();
  });
  return importance;
}

std::vector<Scalar> read_feature(const RecordSource& source, Index feature, Communicator& comm) {
  constexpr Index kRows = 1024;
  const DatasetInfo& info = source.info();
  const Range share = split_evenly(info.rows, comm.size(), comm.rank());
  const auto owner = [&](Index id) { return part_of(info.rows, comm.size(), id); };
  RankPeerGroup peers(comm);
  const std::unique_ptr<Records> records =
      load_records(source, {.may_miss = true}, needed_by_owner(owner, share.size()), peers);
  AlignedBuffer<Scalar> features(kRows * info.features.size());
  AlignedBuffer<Scalar> labels(kRows * info.label_columns());
  std::vector<Scalar> mine;
  for (Index begin = share.begin; begin < share.end; begin += kRows) {
    std::vector<Index> ids(static_cast<std::size_t>(std::min(kRows, share.end - begin)));
    std::iota(ids.begin(), ids.end(), begin);
    Matrix x(features.data(), std::ssize(ids), info.features.size());
    Matrix targets(labels.data(), std::ssize(ids), info.label_columns());
    records->gather(ids, x, targets);
    for (Index row = 0; row < x.rows(); ++row) mine.push_back(x(row, feature));
  }
  std::vector<Scalar> all;
  for (const Bytes& message : peers.all_gather(std::as_bytes(std::span(mine)))) {
    const std::size_t before = all.size();
    all.resize(before + message.size() / sizeof(Scalar));
    std::memcpy(all.data() + before, message.data(), message.size());
  }
  return all;
}

std::vector<std::vector<double>> partial_dependence(const PredictionContext& context,
                                                    std::span<const LabelScale> scales,
                                                    const RecordSource& source, const ModelValues& values,
                                                    Range features, std::span<const ColumnValue> grid) {
  Prediction prediction(context, source);
  std::vector<std::vector<double>> means;
  for (const ColumnValue& point : grid) {
    prediction.change_features([&](std::span<const Index>, Matrix& x) {
      for (Index i = 0; i < features.size(); ++i)
        as_eigen(x).col(features.begin + i).setConstant(at(point.features, i));
    });
    const PredictionColumns columns = prediction_columns(context.form, context.model.output().size());
    std::vector<double> sums(static_cast<std::size_t>(columns.values));
    Index rows = 0;
    prediction.run(values, [&](const ConstMatrix& predictions) {
      rows += predictions.rows();
      for (Index row = 0; row < predictions.rows(); ++row) {
        for (Index i = 0; i < columns.values; ++i)
          at(sums, i) += in_label_units(context.form, scales, i, predictions(row, columns.labels + i));
      }
    });
    for (double& sum : sums) sum /= static_cast<double>(rows);
    means.push_back(context.comm.rank() == 0 ? std::move(sums) : std::vector<double>());
  }
  return means;
}

}  // namespace lockstep
