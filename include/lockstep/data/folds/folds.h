// Folds: the training records divided into parts, one of which is the validation set. A pure function of the
// seed and the records, whatever ranks read them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/data/folds/options.h"
#include "lockstep/data/options.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"

namespace lockstep {

struct FoldAssignment {
  std::vector<std::int16_t> fold_of;  ///< fold of each record: 1, 2, ...; 0: it is in no validation set
  bool forward = false;               ///< a fold is validated by models of the folds before it alone

  bool validates(Index fold, Index record) const;
  bool trains(Index fold, Index record) const;
};

/// *Collective.* Divides the records of `whole`, the training set without anything held back, as data.folds,
/// data.fold_by and data.fold_column say. Errors, the same on all ranks: ConfigError if that cannot be done
/// with these records; DataError.
std::shared_ptr<const FoldAssignment> assign_folds(const FoldOptions& options, const DataOptions& data,
                                                   std::uint64_t seed, const RecordSource& whole,
                                                   PeerGroup& peers);

}  // namespace lockstep
