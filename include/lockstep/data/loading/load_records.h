// Loading a data set into the memory of all ranks together: each rank reads its share of the chunks, nobody
// reads the rest, and packed records are sent to the ranks that need them.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "lockstep/base/types.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/loading/fingerprint.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"
#include "lockstep/math/matrix.h"

namespace lockstep {

// The records that a rank trains or evaluates on. A record is known by its id, its number in the data set,
// 0 <= id < rows.

class Records {
 public:
  virtual ~Records() = default;

  /// Records held here, and the memory that they take in bytes.
  virtual Index rows() const = 0;
  virtual Index bytes() const = 0;

  /// Writes the features of the records `ids`, as the file has them (bytes are scaled to [0, 1]), to the rows
  /// of x (ids.size() x features), and their targets, with the weight behind them if there is one, to the
  /// rows of `targets` (ids.size() x label_columns). Local; safe from several threads. Requires that each id
  /// is held here.
  virtual void gather(std::span<const Index> ids, Matrix& x, Matrix& targets) const = 0;

  /// The steps before this one are over; it and those after it will be gathered next. A hint: records that
  /// are read as they are needed are read ahead.
  virtual void expect(Index) const {}
};

// The part of a record that a rank keeps: all of it, or less where its stage of the model needs less.

enum class RecordPart {
  kAll,
  kTargets,  ///< the targets, and the weight behind them: what the loss needs
  kNothing,
};

/// The part that holds features, if they are needed, and targets, if they are. Features come with targets:
/// these are few bytes.
inline RecordPart needed_part(bool features, bool targets) {
  if (features) return RecordPart::kAll;
  return targets ? RecordPart::kTargets : RecordPart::kNothing;
}

/// Bytes of that part of a packed record; 0 where records are computed.
inline Index bytes_of_part(RecordPart part, Index record_bytes, Index label_columns) {
  if (part == RecordPart::kNothing || record_bytes == 0) return 0;
  return part == RecordPart::kAll ? record_bytes : label_columns * Index{sizeof(Scalar)};
}

/// Which records each rank needs; the same on all ranks but for `count`.
struct RecordNeeds {
  /// The range of ranks that need a record; may be empty. One thread asks, fastest for one record after the
  /// other.
  std::function<Range(Index id)> ranks;
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

/// Calls `use` with the features (those of padding left out) and the targets of each record of this rank's
/// share of the source, in order.
/// Errors: DataError.
void for_each_record(
    const RecordSource& source, const TargetRule& rule, const PeerGroup& peers,
    const std::function<void(std::span<const Scalar> features, std::span<const Scalar> targets)>& use);

/// The chunks that each of so many ranks reads: contiguous runs of about as many records, where chunks that
/// follow on stay together.
std::vector<Range> share_chunks(std::span<const Chunk> chunks, Index ranks);

}  // namespace lockstep
