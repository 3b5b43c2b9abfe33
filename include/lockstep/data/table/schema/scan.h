// One pass of all ranks over the records of a table: each rank goes through its share of the chunks, and what
// it finds is put together in the order of the chunks.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/table/text/table_text.h"
#include "lockstep/data/table/values/column_stats.h"
#include "lockstep/data/table/values/notation.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

/// The statistics that are wanted of a column's values.
struct ColumnWants {
  bool logarithm = false;  ///< statistics of signed_log(number)
  Index max_texts = 0;     ///< different values counted that are no numbers (with Reading::kText: any)
  Index max_numbers = 0;   ///< different values counted that are
  bool of_all = false;     ///< also of records that do not count
  Index quantiles = 0;     ///< numbers kept of records that count: ValueSample; for a text one that only
                           ///< this text has (but for two of one hash)
  bool notations = false;  ///< counts the forms of values that are no plain numbers; with Reading::kEither
};

struct ColumnSummary {
  Index missing = 0;
  ValueCounts
      missing_texts{};    ///< texts that stand for a missing number and may be categories, where they are few
  Index texts = 0;        ///< values that are no numbers (with Reading::kText: all)
  Index short_years = 0;  ///< dates whose year has two digits
  NumberStats numbers = {};
  ValueCounts text_counts{};
  ValueCounts number_counts{};
  NotationCounts notations{};
  ValueSample quantiles{};

  /// Takes those texts for values that stand for a missing value in numbers alone: not in this list.
  void count_missing_texts(const std::vector<std::string>& in_categories);
  Index present() const { return texts + numbers.count; }
  /// There are too many different values: their counts are forgotten.
  bool countless() const { return text_counts.overflowed() || number_counts.overflowed(); }
  Index distinct() const { return text_counts.distinct() + number_counts.distinct(); }
  /// The different values, the most frequent first; none if they are countless.
  std::vector<ValueCounts::Entry> values() const;
};

/// Whether all values are whole numbers.
bool all_whole(const std::vector<ValueCounts::Entry>& values);
/// Whether the values of a label are whole numbers that stand for classes: one or two, or at most 20 that
/// occur five times each on average.
bool look_like_classes(const std::vector<ValueCounts::Entry>& values);

/// The treatment of bad records.
struct BadRecords {
  OnBadRecord action = OnBadRecord::kFail;
  double most = 1;  ///< share of all records that may be skipped
};

/// The records that a pass goes over, counted.
struct RecordCounts {
  std::vector<Index> chunk_rows;  ///< good records of each chunk
  std::vector<Index> chunk_bad;   ///< bad ones
  Index good = 0;
  Index bad = 0;
  std::vector<Index> bad_positions;  ///< their numbers among all records, from 0 on
  std::vector<std::string> rejects;  ///< the first hundred bad ones: file, line, column, found, expected

  /// The share of bad records, from 0 to 1.
  double bad_share() const;
  /// The next record is bad, as `description` says. Errors: DataError if such are not skipped.
  void add_bad(const std::string& description, const BadRecords& treatment);
  /// Adds the counts of the records behind these.
  void append(const RecordCounts& behind);
  /// Errors: DataError with some of the rejects if more of the records are bad than may be skipped.
  void check_bad_share(const BadRecords& limit) const;

  template <class Message>
  void pass(Message& message) {
    message(chunk_rows, chunk_bad, good, bad, bad_positions, rejects);
  }
};

struct ScanRequest {
  TableText& table;                         ///< its chunks are found by the first scan
  const std::vector<RowColumn>& columns;    ///< columns of the file
  const std::vector<ColumnWants>& wants;    ///< statistics that are wanted of each cell
  const std::vector<std::string>& missing;  ///< texts that stand for a missing value
  BadRecords bad = {};
  /// Called with the cells of each record of a chunk on the rank that reads it; BadRecord makes it a bad one.
  std::function<void(std::span<const Cell>, const TextChunk& chunk)> check = {};
  std::function<void()> check_again = {};  ///< called where all that `check` saw comes once more
  std::vector<Index> texts = {};  ///< cells whose texts, as the file has them, are kept of all records
  /// Whether a good record, number `position` of those of the chunk, counts in the summaries; empty: all do.
  std::function<bool(std::size_t chunk, Index position)> counts = {};
};

struct Scan : RecordCounts {
  std::vector<ColumnSummary> columns;
  /// For each of ScanRequest::texts the text of each record; "" of a bad one.
  std::vector<std::vector<std::string>> texts;
};

/// *Collective.* Errors, the same on all ranks: DataError for what makes it impossible to go on; for the
/// first bad record, if such are not skipped; or if too many are.
Scan scan_table(const ScanRequest& request, PeerGroup& peers);

// The kinds of the columns of a table, guessed from all their values.

/// *Collective.* Looks at the columns of unknown kind (`columns`: one for each column of the table), or at
/// all of them. Bad records are left out and counted. `texts`: the columns whose texts are kept. Errors as of
/// scan_table.
Scan look_at_columns(TableText& table, const std::vector<TableColumn>& columns, bool all,
                     const std::vector<std::string>& missing, PeerGroup& peers,
                     const std::vector<Index>& texts = {});

/// The guess how a column is best used.
struct ColumnGuess {
  ColumnKind kind = ColumnKind::kIgnored;
  Index hash = 0;           ///< buckets, if it has too many categories for one feature each
  std::string remark = {};  ///< suspicious facts about it, or ""
  bool doubtful = false;    ///< the remark is of a value that may be misread
  std::optional<NumberNotation> notation = {};   ///< how numbers are written, if they are not plain
  std::optional<DateReading> date = {};          ///< numbers are the days of dates
  std::vector<std::string> missing_values = {};  ///< texts among numbers that stand for a missing one
  std::string mixture = {};  ///< that it has numbers of two kinds, which somebody has to declare; or ""
};
ColumnGuess guess_column(const ColumnSummary& summary, bool label, const FileSigns& file);
/// The signs in the columns of a table, together. `separator`: of its fields.
FileSigns signs_of(const Scan& scan, std::span<const TableColumn> columns, char separator);

/// Gives the column the kind that is guessed, and what belongs to it.
void take_guess(TableColumn& column, const ColumnGuess& guess);

/// A remark on a column of dates once they are read: on what its years of two digits are taken for, unless
/// the config says so, and on dates in the future.
struct YearsRemark {
  std::string text = {};  ///< "": nothing
  bool future = false;
  Index before = 0;  ///< with it as date(..., before=), no year of two digits is in the future
};
YearsRemark remark_on_years(const TableColumn& column, const ColumnSummary& summary);

/// Remarks on the kinds that were inferred.
struct Remarks {
  std::vector<Note> notes;
  std::vector<std::string> doubts;  ///< values that may be misread
};

/// Gives each column of unknown kind the one that is guessed from what look_at_columns() found. Errors:
/// DataError if all records are bad.
Remarks infer_kinds(const TableText& table, std::vector<TableColumn>& columns, const Scan& scan);

}  // namespace lockstep
