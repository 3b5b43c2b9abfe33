// Suspicious facts about the records of a table, beyond the notation of its values, and a sketch of the
// records in bounded memory that they are found in: a sample, which records occur more than once, and which
// columns are different in each.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lockstep/data/inspect/inspect.h"

namespace lockstep {

/// How often each of many hashes occurs. Beyond `limit` different ones only those are kept that are below a
/// bound, which is halved again and again: a sample of the different ones.
class HashCounts {
 public:
  explicit HashCounts(std::size_t limit) : limit_(limit) {}

  struct Entry {
    Index count = 0;
    Index first = -1;   ///< record
    Index second = -1;  ///< another one of the same hash; -1: there is none
  };
  void add(std::uint64_t hash, Index record);

  const std::unordered_map<std::uint64_t, Entry>& entries() const { return entries_; }
  /// The share of all hashes that is kept.
  double share() const { return static_cast<double>(bound_) * 0x1p-64; }
  /// Whether a hash would be kept.
  bool keeps(std::uint64_t hash) const { return hash <= bound_; }

 private:
  std::size_t limit_;
  std::uint64_t bound_ = ~std::uint64_t{0};
  std::unordered_map<std::uint64_t, Entry> entries_;
};

/// A value of a column: the number of a numeric one, the hash of the text of any other.
struct SketchValue {
  bool missing = false;
  double number = 0;
  std::uint64_t text = 0;
};

/// A record of the sample, with a value for each column.
struct SketchedRecord {
  std::uint64_t hash = 0;
  std::vector<SketchValue> values;

  /// Whether it is in the first of two halves, which have nothing to do with the order of the records.
  bool in_first_half() const { return hash % 2 == 0; }
};

class RecordSketch {
 public:
  /// `columns`: of the training data, which say what is a number. `positions`: of these in the file; -1: it
  /// has none, and every value is missing.
  RecordSketch(const std::vector<TableColumn>& columns, const std::vector<Index>& positions);

  /// The cells of the next record, one for each column.
  void add(std::span<const Cell> cells);

  Index records() const { return records_; }
  /// The contents of the records, in all columns that are used, and in the features alone.
  const HashCounts& whole() const { return whole_; }
  const HashCounts& features() const { return features_; }

  /// In the order of the file.
  const std::vector<SketchedRecord>& sample() const { return sample_; }
  /// So many numbers of a column are whole and all different; 0: two are the same, or one is not whole.
  Index different(std::size_t column) const {
    return wholes_[column].all_different ? wholes_[column].count : 0;
  }
  double example(std::size_t column) const { return wholes_[column].first; }

 private:
  struct Wholes {
    bool all_different = true;
    Index count = 0;
    double first = 0;
    std::unordered_set<std::int64_t> seen;

    void add(const SketchValue& value);
  };

  void keep_sample();

  const std::vector<TableColumn>& columns_;
  const std::vector<Index>& positions_;
  Index records_ = 0;
  HashCounts whole_;
  HashCounts features_;
  std::size_t max_sampled_;
  std::uint64_t bound_ = ~std::uint64_t{0};
  std::vector<SketchedRecord> sample_;
  std::vector<SketchValue> values_;  // values of the record at hand
  std::vector<Wholes> wholes_;
};

/// Reads all records of a table whose column `positions[i]` is column i of `columns`; -1: it has none.
RecordSketch sketch_records(TableText& table, const std::vector<TableColumn>& columns,
                            const std::vector<Index>& positions, const std::vector<std::string>& missing);

/// The numbers of a column in the sample, in ascending order.
std::vector<double> numbers_of(const RecordSketch& sketch, std::size_t column);

/// Whether a label is learned as classes: texts, or numbers that stand for classes.
inline bool holds_classes(const TableColumn& label, const ColumnSummary& summary) {
  return label.kind == ColumnKind::kCategorical || look_like_classes(summary.values());
}

/// The line that leaves a column out; "" for a name so long that the line would not be read.
std::string ignore_line(const std::string& column);

inline double percent(Index part, Index whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

/// Everything but the findings of the inspection is known. Errors: DataError if a file cannot be read.
std::vector<Finding> find_suspicious(TableInspection& inspection, const std::vector<FileSet>& others);

/// Values that the training data does not have, columns that are distributed otherwise, and records that the
/// training data has, too. `sketch`: of the training data. Errors: DataError if the set cannot be read.
std::vector<Finding> compare_with(const TableInspection& inspection, const RecordSketch& sketch,
                                  const FileSet& other);

}  // namespace lockstep
