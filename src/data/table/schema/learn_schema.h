// The schema of the training data: kinds from the options or inferred, statistics and vocabularies from all
// records, by all ranks together.
#pragma once

#include <string>
#include <vector>

#include "lockstep/data/table/schema/scan.h"
#include "lockstep/data/table/values/schema.h"
#include "lockstep/data/validation_split.h"

namespace lockstep {

struct LearntSchema {
  TableSchema schema;
  Scan scan;                         ///< summaries of all records
  std::vector<std::string> remarks;  ///< remarks for the user on the choices made
  std::vector<std::string> doubts;   ///< values that may be misread
};

/// *Collective.* From the records that are not held back for validation. Errors, the same on all ranks:
/// ConfigError if the options do not fit the columns; DataError as of scan_table.
LearntSchema learn_schema(const TableText& table, const TableOptions& options, const HoldOut& held,
                          PeerGroup& peers);

/// How the columns of a table are read for a schema that was learnt from another; cells are the columns of
/// the schema. They find each other by name, or by position where the table has no header.
/// Errors: DataError if a column of the schema is not there (labels only if wanted).
std::vector<RowColumn> match_columns(const TableText& table, const TableSchema& schema, bool labels);

}  // namespace lockstep
