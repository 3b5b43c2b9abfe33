// The numbers of a table in order of series and time, from which windows are cut.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/data/loading/fingerprint.h"
#include "lockstep/data/loading/load_records.h"
#include "lockstep/data/options.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/table/values/schema.h"
#include "time_axis.h"

namespace lockstep {

/// All positions, column after column, so that the past of a window is one run of memory. A node that can
/// share memory holds it once.
class PositionTable {
 public:
  /// *Collective.* Errors, the same on all ranks: DataError.
  PositionTable(std::unique_ptr<RecordSource> table, TableSchema schema, TimeAxis axis,
                const WindowOptions& options, PeerGroup& peers);

  const TimeAxis& axis() const { return axis_; }
  const TableSchema& schema() const { return schema_; }
  const TableWindows& windows() const { return *schema_.windows; }
  const WindowOptions& options() const { return options_; }
  const RecordSource& table() const { return *table_; }
  /// See label_scales().
  const std::vector<LabelScale>& scales() const { return scales_; }
  const Fingerprint& fingerprint() const { return fingerprint_; }
  Index labels() const { return labels_; }
  /// Features of a window.
  Index features() const { return features_; }
  bool knows_ahead() const { return std::ranges::count(known_ahead_, true) > 0; }
  /// A label at all positions; NaN where it is missing.
  const Scalar* label(Index number) const { return column(number); }
  bool has_labels(Index position) const;
  /// Whether they stand in the table, or are zeros of its gaps; not what data.fill_gaps = "last" made up.
  bool are_measured(Index position) const {
    return options_.fill != FillGaps::kLast || column(columns())[position] == 0;
  }

  /// features() numbers of the window at that origin.
  void write_features(Index origin, Scalar* to) const;
  /// labels() times the horizon of them.
  void write_targets(Index origin, Scalar* to) const;

 private:
  Index columns() const { return labels_ + std::ssize(moving_) + std::ssize(series_); }
  const Scalar* column(Index number) const { return values_ + number * axis_.positions(); }
  void load(PeerGroup& peers);
  void fill(const Records& records, Scalar* values) const;
  void fill_labels(Scalar* values) const;

  std::unique_ptr<RecordSource> table_;
  TimeAxis axis_;
  WindowOptions options_;
  TableSchema schema_;
  std::vector<LabelScale> scales_;
  Fingerprint fingerprint_;
  Index labels_ = 0;
  Index features_ = 0;
  std::vector<Index> moving_;      // features of a record that change with time
  std::vector<bool> known_ahead_;  // of each of these
  std::vector<Index> series_;      // features of a record that name the series
  // Column after column; of FillGaps::kLast there is one more: 1 where a label was made up.
  std::unique_ptr<NodeMemory> shared_;
  AlignedBuffer<Scalar> own_;
  const Scalar* values_ = nullptr;  // in one of these
};

}  // namespace lockstep
