// The kinds of the columns of a table, guessed from all their values.
#pragma once

#include <string>
#include <vector>

#include "lockstep/data/table/scan.h"
#include "lockstep/data/table/schema.h"

namespace lockstep {

/// *Collective.* Looks at the columns of unknown kind (`columns`: one for each column of the table), or at
/// all of them. Bad records are left out and counted. Errors as of scan_table.
Scan look_at_columns(const TableText& table, const std::vector<TableColumn>& columns, bool all,
                     const std::vector<std::string>& missing, PeerGroup& peers);

/// The guess how a column is best used.
struct ColumnGuess {
  ColumnKind kind = ColumnKind::kIgnored;
  Index hash = 0;      ///< buckets, if it has too many categories for one feature each
  std::string remark;  ///< suspicious facts about it, or ""
};
ColumnGuess guess_column(const ColumnSummary& summary, bool label);

/// *Collective.* Gives each column of unknown kind the one that is guessed; columns that this leaves out are
/// logged. Errors as of scan_table.
void infer_kinds(const TableText& table, std::vector<TableColumn>& columns,
                 const std::vector<std::string>& missing, PeerGroup& peers,
                 std::vector<std::string>& remarks);

}  // namespace lockstep
