// The schema of a table: what each column is, and all that was learnt from the training data to turn it into
// numbers. Saved with the model; another data set is read with it unchanged.
//
// The features of a record are its numeric columns in the order of the file, then its categorical ones.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/options.h"
#include "lockstep/data/table/values/column_stats.h"
#include "lockstep/data/table/values/notation.h"

namespace lockstep {

class RecordSource;

enum class ColumnKind { kUnknown, kNumeric, kCategorical, kIgnored };

/// The scaling of a number x. With `log`, l(x) = sign(x) log(1 + |x|) comes first.
enum class Scale {
  kNone,      ///< x
  kStandard,  ///< (x - mean) / deviation
  kMinMax,    ///< (x - min) / (max - min)
  kLog,       ///< (l(x) - mean) / deviation, both of l(x)
  kRobust,    ///< s / sqrt(1 + (s / 3)^2) with s = (x - median) / (upper - lower quartile)
};

/// Most bins of a column.
inline constexpr Index kMaxBins = 256;

/// The rule that decides where the bins of a column end.
enum class BinEdges {
  kQuantiles,  ///< quantiles of its numbers
  kLabel,      ///< the thresholds of a decision tree that tells the label from this column alone
};

/// Fewest records of a leaf of that tree, unless the config says another number.
inline constexpr Index kLeafRecords = 32;

/// Its name in the config: "minmax".
const char* to_string(Scale scale);

/// The features that a category becomes.
enum class Encoding {
  kOneHot,  ///< one feature for each value and a first one for values that training has not seen
  kIndex,   ///< one feature: 0 for values that training has not seen, else 1 + the position of the value
  kHash,    ///< one feature for each of so many buckets
};

struct TableColumn {
  std::string name;
  ColumnKind kind = ColumnKind::kUnknown;
  bool label = false;
  bool weight = false;  ///< weight of the record; a number as it is, neither label nor feature
  std::vector<std::string> missing_values = {};  ///< texts and numbers that are missing in this column only

  // Numeric. Statistics are those of l(x) with Scale::kLog.
  Scale scale = Scale::kStandard;
  std::optional<double> fill = {};              ///< stands for a missing number; none: the mean
  std::optional<NumberNotation> notation = {};  ///< how numbers are written, if they are not plain
  std::optional<DateReading> date = {};         ///< its numbers are days of dates, with several features
  NumberStats numbers = {};
  std::optional<Quartiles> quartiles = {};  ///< with Scale::kRobust, once they are learnt
  Index bins = 0;                           ///< at most so many features of a piecewise linear encoding
  BinEdges bin_edges = BinEdges::kQuantiles;
  Index leaf_records = kLeafRecords;  ///< with BinEdges::kLabel, before the edges are learnt
  bool keeps_number = true;           ///< with bins: the scaled number is a feature before them
  std::vector<double> edges = {};     ///< of the bins, increasing, once they are learnt

  // Categorical.
  bool fold_case = false;  ///< its texts are read in one case, with one blank for several
  Encoding encoding = Encoding::kOneHot;
  Index buckets = 0;                     ///< number of buckets, with kHash
  std::vector<std::string> values = {};  ///< a feature's: the most frequent first; a label's: in order

  Index missing = 0;  ///< records of the training data without a value

  bool is_label_or_weight() const { return label || weight; }
  bool is_feature() const { return !label && !weight && kind != ColumnKind::kIgnored; }
  /// A number that is no date.
  bool is_number() const { return kind == ColumnKind::kNumeric && !date; }
  /// A category that becomes one of so many buckets.
  bool is_hashed() const { return kind == ColumnKind::kCategorical && !label && encoding == Encoding::kHash; }
  /// Features that it becomes; before bins are learnt, as if there were as many as were asked for.
  Index width() const;
  /// Features of its bins: one less than edges; 1 for a column that never changes.
  Index bin_features() const;
};

/// Which features a column becomes.
struct FeatureRange {
  std::size_t column = 0;
  Range features;
};

/// The records are positions in time, of which a model takes windows (time_windows.h).
struct TableWindows {
  Index window = 0;
  Index horizon = 0;
  std::vector<std::string> series = {};  ///< columns that say which series a record belongs to
  std::vector<std::string> future = {};  ///< columns that are known ahead
  std::vector<std::string> steps = {};   ///< the patterns of times of the training data, see TimeGrid::term()

  bool names_series(const std::string& column) const { return std::ranges::count(series, column) > 0; }
  /// The values of a column that is no label in one window: one of a column that names the series, else those
  /// of the past and, if it is known ahead, of the horizon.
  Index values_of(const std::string& column) const {
    if (names_series(column)) return 1;
    return window + (std::ranges::count(future, column) > 0 ? horizon : 0);
  }
};

struct TableSchema {
  std::vector<std::string> missing_values;
  std::vector<TableColumn> columns = {};  ///< the columns in the order of the file
  std::optional<TableWindows> windows = {};

  std::vector<FeatureRange> layout() const;
  /// The labels, in the order in which a record has them: numbers come first, then categories.
  std::vector<std::size_t> targets() const;
  Index features() const;
  Index labels() const;
  bool weighted() const;
  /// The names of its columns are those of a table without a header: c1, c2, ...
  bool is_nameless() const;
  /// One line for each label, feature column and weight, for people.
  std::vector<std::string> describe() const;
};

/// The texts that stand for a missing value in a category, too: an empty one, and those that `missing` has
/// beside the usual ones. None, NA, "." and their like name something as often as they name nothing.
std::vector<std::string> missing_in_categories(const std::vector<std::string>& missing);

/// l(x) = sign(x) log(1 + |x|), the logarithm that takes every number.
double signed_log(double x);

/// The columns as the options declare them; kUnknown for those that they do not name. Labels are never
/// scaled unless data.columns asks for it. Errors: ConfigError naming the key, also for a name that no column
/// has.
std::vector<TableColumn> declare_columns(const TableOptions& options, const std::vector<std::string>& names);

/// JSON. The same schema gives the same text.
std::string to_json(const TableSchema& schema);
/// Errors: DataError saying that `name` is no schema, and why.
TableSchema parse_schema(const std::string& json, const std::string& name);
/// The schema that a run keeps: nothing from "" and from that of another format. Errors: DataError.
std::optional<TableSchema> read_table_schema(const std::string& json);

// The piecewise linear encoding of a number (Gorishniy, Rubachev & Babenko 2022): a feature for each bin,
// which is 0 for numbers below the bin, 1 for those above, and rises linearly inside. Numbers beyond the
// first and the last edge are encoded as these.

/// The bin that a number lies in, from 0 on, and as a fraction how far in it. Requires edges, increasing; 0
/// if there is a single one.
inline double bin_position(const std::vector<double>& edges, double x) {
  if (!(x > edges.front())) return 0;
  if (x >= edges.back()) return static_cast<double>(edges.size() - 1);
  const auto above = std::upper_bound(edges.begin(), edges.end(), x);
  const double low = *(above - 1);
  return static_cast<double>(above - 1 - edges.begin()) + (x - low) / (*above - low);
}

/// The number at a position: bin_position() the other way, between the first and the last edge.
inline double number_at(const std::vector<double>& edges, double position) {
  const auto bin = static_cast<std::size_t>(position);
  if (bin + 1 >= edges.size()) return edges.back();
  return edges[bin] + (position - static_cast<double>(bin)) * (edges[bin + 1] - edges[bin]);
}

/// The features of a position among `bins` bins.
inline void put_bins(Scalar position, Index bins, Scalar* features) {
  for (Index i = 0; i < bins; ++i)
    features[i] = std::clamp(position - static_cast<Scalar>(i), Scalar{0}, Scalar{1});
}

// How a label of a table became the target that a model learns, and the way back: predictions are given in
// the units of the label.

/// target = (l(label) - shift) / range, where l is the signed logarithm or, without it, the label itself.
struct LabelScale {
  double shift = 0;
  double range = 1;
  bool logarithm = false;
  bool clips = false;  ///< what comes of that is clipped smoothly; for features only

  /// 1 / range; 0 for a column that never changes, whose numbers all become 0.
  double factor() const { return range > 0 ? 1 / range : 0; }
  /// The target, or the feature, that l(number), or the number, becomes.
  double scaled(double x) const;
  /// The label of which this is the target. In double: labels may lie close together and far from 0.
  double undo(double target) const;
  /// Significant digits that tell labels apart whose targets differ in single precision; 0 where a label is
  /// as good in single precision.
  int digits() const;
};

/// x / sqrt(1 + (x / 3)^2), which stays between -3 and 3 (Holzmueller et al. 2024).
double smooth_clip(double x);

/// The scale of a numeric column, label or feature.
LabelScale scale_of(const TableColumn& column);

/// The number in place of a missing one, as scaled() takes it: column.fill or, without it, the mean.
double missing_number(const TableColumn& column);

/// One for each target, in their order; empty if no label is scaled. In windows each position of the horizon
/// is a target, label after label.
std::vector<LabelScale> label_scales(const TableSchema& schema);

/// The scales of opened data.
std::vector<LabelScale> label_scales(const RecordSource& source);

/// Reads them from a saved schema: none from "" and from that of another format. Errors: DataError.
std::vector<LabelScale> read_label_scales(const std::string& json);

/// The first label that is scaled, as data.columns says it: "price: log". "": none is.
std::string describe_scaled_label(const TableSchema& schema);

}  // namespace lockstep
