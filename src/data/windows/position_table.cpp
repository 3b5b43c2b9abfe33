#include "position_table.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "lockstep/data/table/sources/feature_columns.h"

namespace lockstep {

PositionTable::PositionTable(std::unique_ptr<RecordSource> table, TableSchema schema, TimeAxis axis,
                             const WindowOptions& options, PeerGroup& peers)
    : table_(std::move(table)),
      axis_(std::move(axis)),
      options_(options),
      schema_(std::move(schema)),
      scales_(label_scales(schema_)),
      labels_(schema_.labels()) {
  if (schema_.windows->steps.empty()) schema_.windows->steps = axis_.steps();
  const std::vector<FeatureColumn> columns = feature_columns_of(schema_);
  features_ = columns.empty() ? 0 : columns.back().features.end;
  for (const FeatureRange& range : schema_.layout()) {
    const std::string& name = schema_.columns[range.column].name;
    const bool is_series = windows().names_series(name);
    for (Index i = range.features.begin; i < range.features.end; ++i) {
      (is_series ? series_ : moving_).push_back(i);
      if (!is_series) known_ahead_.push_back(windows().values_of(name) > windows().window);
    }
  }
  load(peers);
}

bool PositionTable::has_labels(Index position) const {
  for (Index i = 0; i < labels_; ++i) {
    if (std::isnan(label(i)[position])) return false;
  }
  return true;
}

void PositionTable::write_features(Index origin, Scalar* to) const {
  const Index window = windows().window;
  for (Index i = 0; i < labels_; ++i) to = std::copy_n(label(i) + origin - window, window, to);
  for (Index i = 0; i < std::ssize(moving_); ++i) {
    const Index ahead = at(known_ahead_, i) ? windows().horizon : 0;
    to = std::copy_n(column(labels_ + i) + origin - window, window + ahead, to);
  }
  for (Index i = 0; i < std::ssize(series_); ++i)
    *to++ = column(labels_ + std::ssize(moving_) + i)[origin - 1];
}

void PositionTable::write_targets(Index origin, Scalar* to) const {
  for (Index i = 0; i < labels_; ++i) to = std::copy_n(label(i) + origin, windows().horizon, to);
}

// *Collective.* Records are read once, and put in the order of the positions.
void PositionTable::load(PeerGroup& peers) {
  const Range ranks{0, peers.size()};
  const RecordNeeds all{
      .ranks = [ranks](Index) { return ranks; }, .count = table_->info().rows, .everyone = true};
  const std::unique_ptr<Records> records =
      load_records(*table_, {.anything = true}, all, peers, &fingerprint_);
  const Index numbers = (columns() + (options_.fill == FillGaps::kLast ? 1 : 0)) * axis_.positions();
  shared_ = peers.share_on_node(numbers * Index{sizeof(Scalar)});
  peers.agree([&] {
    if (!shared_) own_ = AlignedBuffer<Scalar>(numbers);
    Scalar* const values = shared_ ? reinterpret_cast<Scalar*>(shared_->bytes().data()) : own_.data();
    values_ = values;
    if (!shared_ || peers.writes_for_node(peers.rank())) fill(*records, values);
  });
  if (shared_) shared_->publish();
}

void PositionTable::fill(const Records& records, Scalar* values) const {
  constexpr Index kBlock = 1024;
  const Index positions = axis_.positions();
  const Index features = table_->info().features.size();
  const Index label_columns = table_->info().label_columns();
  AlignedBuffer<Scalar> x_memory(kBlock * features);
  AlignedBuffer<Scalar> y_memory(kBlock * label_columns);
  for (Index begin = 0; begin < positions; begin += kBlock) {
    const Index rows = std::min(kBlock, positions - begin);
    Matrix x(x_memory.data(), rows, features);
    Matrix y(y_memory.data(), rows, label_columns);
    records.gather(
        std::span(axis_.records).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(rows)), x,
        y);
    for (Index row = 0; row < rows; ++row) {
      Scalar* to = values + begin + row;
      const auto put = [&](Scalar value) {
        *to = value;
        to += positions;
      };
      for (Index i = 0; i < labels_; ++i) put(y(row, i));
      for (const Index i : moving_) put(x(row, i));
      for (const Index i : series_) put(x(row, i));
    }
  }
  fill_labels(values);
}

// data.fill_gaps.
void PositionTable::fill_labels(Scalar* values) const {
  if (options_.fill == FillGaps::kNone) return;
  Scalar* const made_up = values + columns() * axis_.positions();
  if (options_.fill == FillGaps::kLast)
    std::ranges::transform(axis_.filled, made_up, [](bool filled) { return Scalar{filled ? 1.0F : 0.0F}; });
  for (Index i = 0; i < labels_; ++i) {
    const Scalar zero =
        scales_.empty() ? Scalar{0} : static_cast<Scalar>(at(scales_, i * windows().horizon).scaled(0));
    Scalar* const label = values + i * axis_.positions();
    for (Index series = 0; series < axis_.series_count(); ++series) {
      Range range = axis_.positions_of(series);
      for (Index p = range.begin; p < range.end; ++p) {
        // It has the record before so far.
        if (at(axis_.filled, p)) label[p] = std::numeric_limits<Scalar>::quiet_NaN();
      }
      // Behind the last label of a series lies its future, and no gap.
      while (!range.empty() && std::isnan(label[range.end - 1])) --range.end;
      for (Index p = range.begin; p < range.end; ++p) {
        if (options_.fill == FillGaps::kZero) {
          if (std::isnan(label[p])) label[p] = zero;
        } else if (std::isnan(label[p]) && p > range.begin) {
          label[p] = label[p - 1];
          made_up[p] = 1;
        }
      }
    }
  }
}

}  // namespace lockstep
