// One pass of all ranks over the records of libsvm files.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/table/schema/scan.h"
#include "lockstep/data/table/text/row.h"
#include "lockstep/data/table/text/text_files.h"

namespace lockstep {

// One record of a libsvm file:
//
//   record = label { blank index ":" value } [ "#" any ]       indices ascending, each once

struct SparseValue {
  Index index = 0;  ///< number of the feature as the file has it
  Scalar value = 0;
};

struct SparseRow {
  double label = 0;
  bool query = false;  ///< it names the query of a ranking, "qid:3", which is left out
  std::vector<SparseValue> values;
};

/// Parses a record. Errors: BadRecord, column -1.
void parse_sparse_row(std::string_view record, SparseRow& row);

struct SparseScan {
  std::vector<Index> chunk_rows;  ///< good records of each chunk
  Index good = 0;
  Index bad = 0;
  std::vector<Index> bad_positions;  ///< their numbers among all records, from 0 on
  Index smallest = 0;                ///< index; above `largest` if there is none
  Index largest = -1;                ///< index
  Index max_values = 0;              ///< values in a record
  std::set<double> labels;           ///< all that there are, or `too_many_labels`
  bool too_many_labels = false;
  bool queries = false;  ///< some records name the query of a ranking (qid)
  std::vector<std::string> rejects;
};

/// "'FILE', line 12: found 'x', expected INDEX:NUMBER"
std::string describe_sparse(const BadRecord& bad, const std::string& path, Index line);

/// Calls use(row) for each record of a chunk, in order, and on_error(description) for the bad ones.
template <class Use, class OnError>
void for_each_sparse_row(const TextFiles& text, TextReader& reader, const TextChunk& chunk, const Use& use,
                         const OnError& on_error) {
  SparseRow row;
  const std::string_view records = reader.read(chunk);
  RecordLines lines(records, text.dialect, reader.first_line());
  for (std::string_view record; lines.next(record);) {
    if (record.front() == '#') continue;  // a line of comment
    try {
      parse_sparse_row(record, row);
      use(row);
    } catch (const BadRecord& bad) {
      on_error(describe_sparse(bad, text.files[chunk.file].path, lines.line()));
    }
  }
}

/// *Collective.* Errors as of scan_table.
SparseScan scan_sparse(const TextFiles& text, const BadRecords& bad, PeerGroup& peers);

}  // namespace lockstep
