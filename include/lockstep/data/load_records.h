// Loading a data set into the memory of all ranks together: each rank reads its share of the chunks, nobody
// reads the rest, and packed records are sent to the ranks that need them.
#pragma once

#include <functional>
#include <memory>

#include "lockstep/data/fingerprint.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/records.h"

namespace lockstep {

/// Which records each rank needs; the same on all ranks but for `count`.
struct RecordNeeds {
  std::function<Range(Index id)> ranks;  ///< the range of ranks that need a record; may be empty
  /// Records that this rank needs. Stated, not found: a data set that is computed can have more ids than
  /// anyone wants to go through.
  Index count = 0;
  /// A rank that needs any needs all: a node keeps one copy.
  bool everyone = false;
  /// The part of them that is kept; the same on all ranks. With kNothing no file is read.
  RecordPart part = RecordPart::kAll;
};

/// Each record is needed by one rank: `owner(id)`.
RecordNeeds needed_by_owner(std::function<Index(Index id)> owner, Index count);

/// *Collective.* The records that this rank needs, whose targets obey the rule. The source must outlive them.
/// Peak memory is that of the records and of a round of the exchange: some tens of MiB.
/// `fingerprint`: becomes that of all records of the source, the same on all ranks; unknown if they are
/// computed, or if nobody needs anything of them. Errors, the same on all ranks: DataError with file, record,
/// expected, found.
std::unique_ptr<Records> load_records(const RecordSource& source, const TargetRule& rule,
                                      const RecordNeeds& needs, PeerGroup& peers,
                                      Fingerprint* fingerprint = nullptr);

/// The chunks that each of so many ranks reads: contiguous runs of about as many records, where chunks that
/// follow on stay together.
std::vector<Range> share_chunks(std::span<const Chunk> chunks, Index ranks);

}  // namespace lockstep
