// A number that looks random for each record id: which records are held back for validation, and what proves
// that each was seen.
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/base/hash.h"
#include "lockstep/base/types.h"
#include "lockstep/data/folds/folds.h"

namespace lockstep {

/// SplitMix64 once for the key and once for the id.
inline std::uint64_t id_hash(std::uint64_t key, Index id) {
  const std::uint64_t mixed = mix_bits(key + kGoldenStep);
  return mix_bits((mixed ^ static_cast<std::uint64_t>(id)) + kGoldenStep);
}

/// Which records of the training data are held back for validation.
struct HoldOut {
  double share = 0;  ///< share of all records
  std::uint64_t key = 0;
  std::shared_ptr<const FoldAssignment> folds = nullptr;  ///< not null: `fold` is held back instead
  Index fold = 0;

  bool any() const { return share > 0 || folds != nullptr; }
  bool holds(Index id) const {
    if (folds) return folds->validates(fold, id);
    return static_cast<double>(id_hash(key, id) >> 11) * 0x1p-53 < share;
  }
  /// Whether it is trained on; a record may be neither.
  bool leaves(Index id) const { return folds ? folds->trains(fold, id) : !holds(id); }
};

}  // namespace lockstep
