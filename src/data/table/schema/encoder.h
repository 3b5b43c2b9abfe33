// The schema of the training data, and records of any table as numbers by it. A packed record holds a float
// for each numeric feature column (for one with bins its position among their edges, for the day of the year
// its number), a 32-bit number for each categorical one, then a float for each label, then one for the
// weight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "lockstep/data/table/schema/column_texts.h"
#include "lockstep/data/table/schema/scan.h"
#include "lockstep/data/table/text/row.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

/// Kinds are those of the options, or inferred; statistics and vocabularies are from all records, by all
/// ranks together.
struct LearntSchema {
  TableSchema schema;
  Scan scan;                        ///< summaries of all records
  std::vector<Note> remarks;        ///< remarks for the user on the choices made
  std::vector<std::string> doubts;  ///< values that may be misread
};

/// *Collective.* From the records that `questions` (null: none) do not hold back. `name`: of the table.
/// Errors, the same on all ranks: ConfigError if the options do not fit the columns; DataError as of
/// scan_table.
LearntSchema learn_schema(TableText& table, const TableOptions& options, const std::string& name,
                          const TableQuestions* questions, PeerGroup& peers);

/// *Collective.* A pass over the records for the texts that `questions` ask for, and for the kinds that
/// `columns` lack.
Scan take_texts(TableText& table, const TableOptions& options, const std::vector<TableColumn>& columns,
                const std::string& name, ColumnTexts& texts, PeerGroup& peers);

/// How the columns of a table are read for a schema that was learnt from another; cells are the columns of
/// the schema. They find each other by name, or by position where the table has no header.
/// Errors: DataError if a column of the schema is not there (labels only if wanted).
std::vector<RowColumn> match_columns(const TableText& table, const TableSchema& schema, bool labels);

/// Says which columns of the schema those of a table without a header are taken for; "" if names tell it.
std::string describe_positions(const TableText& table, const TableSchema& schema);

class Encoder {
 public:
  /// `labels`: with targets, and the weight if the schema has one. The schema must outlive it.
  Encoder(const TableSchema& schema, bool labels);

  Index record_bytes() const { return record_bytes_; }
  Index features() const { return features_; }
  Index targets() const { return targets_; }
  bool weighted() const { return weight_.has_value(); }
  /// The targets and the weight.
  Index label_columns() const { return targets_ + (weighted() ? 1 : 0); }

  /// Packs the cells, one for each column of the schema. unseen[column] grows where a category was not in
  /// the training data. Errors: BadRecord, with the number of the cell.
  void pack(std::span<const Cell> cells, std::byte* packed, std::span<Index> unseen) const;
  /// The features of a packed record, and its label_columns().
  void unpack(const std::byte* packed, Scalar* features, Scalar* labels) const;

 private:
  struct Numeric {
    std::size_t cell = 0;
    bool logarithm = false;
    double shift = 0;  // (l(x) - shift) * factor
    double factor = 1;
    Scalar missing = 0;
    DatePart part = DatePart::kDay;  // part of a date; kDay: the number as it is
    bool cosine = false;             // the cosine of that part; else the sine
    bool clips = false;              // the scaled number is clipped smoothly
    Index bins = 0;                  // features of the position among `edges`; 0: one feature, the number
    const std::vector<double>* edges = nullptr;  // of l(x)

    Index features() const { return part == DatePart::kDayOfYear ? kDaysOfYear : std::max<Index>(bins, 1); }
  };
  struct Categorical {
    std::size_t cell = 0;
    bool label = false;
    std::uint32_t buckets = 0;  // hashes into so many, if not 0
    Index width = 0;            // features; 0: the number itself is the one feature
    // Numbers of the values: a label's from 0 on, else from 1 on.
    std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> positions = {};
    std::string classes = {};  // the first of a label's, for messages
  };

  void add(const TableColumn& column, std::size_t cell);
  void add_date(const TableColumn& column, const Numeric& days);
  void unpack_numbers(const std::byte* packed, Scalar* features) const;
  Scalar number_of(const Numeric& column, const Cell& cell) const;
  std::uint32_t position_of(const Categorical& column, const Cell& cell, std::span<Index> unseen) const;

  std::vector<Numeric> numbers_;
  Index number_features_ = 0;  // as many as numbers, and more with bins
  std::vector<Categorical> categories_;
  std::vector<Numeric> number_labels_;
  std::vector<Categorical> category_labels_;
  std::optional<Numeric> weight_;
  Index features_ = 0;
  Index targets_ = 0;
  Index record_bytes_ = 0;
};

}  // namespace lockstep
