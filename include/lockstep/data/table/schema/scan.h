// One pass of all ranks over the records of a table: each rank goes through its share of the chunks, and what
// it finds is put together in the order of the chunks.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/table/text/table_text.h"
#include "lockstep/data/table/values/column_stats.h"
#include "lockstep/data/table/values/notation.h"

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
  Index texts = 0;  ///< values that are no numbers (with Reading::kText: all)
  NumberStats numbers = {};
  ValueCounts text_counts{};
  ValueCounts number_counts{};
  NotationCounts notations{};
  ValueSample quantiles{};

  Index present() const { return texts + numbers.count; }
  /// There are too many different values: their counts are forgotten.
  bool countless() const { return text_counts.overflowed() || number_counts.overflowed(); }
  Index distinct() const { return text_counts.distinct() + number_counts.distinct(); }
  /// The different values, the most frequent first; none if they are countless.
  std::vector<ValueCounts::Entry> values() const;
};

/// Whether all values are whole numbers.
bool all_whole(const std::vector<ValueCounts::Entry>& values);

/// The treatment of bad records.
struct BadRecords {
  OnBadRecord action = OnBadRecord::kFail;
  double most = 1;  ///< share of all records that may be skipped
};

inline constexpr std::size_t kMaxRejects = 100;  // descriptions of bad records that are kept

/// Errors: DataError with some of the `rejects` if more of the records are bad than may be skipped.
void check_bad_share(Index good, Index bad, const std::vector<std::string>& rejects, const BadRecords& limit);

struct ScanRequest {
  const TableText& table;
  const std::vector<RowColumn>& columns;    ///< columns of the file
  const std::vector<ColumnWants>& wants;    ///< statistics that are wanted of each cell
  const std::vector<std::string>& missing;  ///< texts that stand for a missing value
  BadRecords bad = {};
  /// Called with the cells of each record on the rank that reads it; BadRecord makes it a bad one.
  std::function<void(std::span<const Cell>)> check = {};
  /// Whether a good record, number `position` of those of the chunk, counts in the summaries; empty: all do.
  std::function<bool(std::size_t chunk, Index position)> counts = {};
};

struct Scan {
  std::vector<Index> chunk_rows;  ///< good records of each chunk
  Index good = 0;
  Index bad = 0;
  std::vector<Index> bad_positions;  ///< their numbers among all records, from 0 on
  std::vector<std::string> rejects;  ///< the first hundred bad ones: file, line, column, found, expected
  std::vector<ColumnSummary> columns;

  double bad_share() const;
};

/// *Collective.* Errors, the same on all ranks: DataError for what makes it impossible to go on; for the
/// first bad record, if such are not skipped; or if too many are.
Scan scan_table(const ScanRequest& request, PeerGroup& peers);

}  // namespace lockstep
