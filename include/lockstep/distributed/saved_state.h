// The state that a run needs beside its config and its model to resume: named arrays, of which each rank
// holds parts. They do not depend on ranks, so that a run can resume with another number of them.
#pragma once

#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep {

/// A part of such an array.
struct SavedPart {
  std::string array;  ///< its name, equal on all ranks
  Index size = 0;     ///< elements of the whole
  Range range;        ///< elements that this rank holds, and that it needs again
  Buffer memory;      ///< memory of the elements in `range`
  Range written;      ///< elements of `range` that this rank saves; each element is saved by one rank
  /// Left as it is where it was not saved: it belongs to a number of ranks.
  bool optional = false;
  bool by_stage = false;  ///< each stage of the model has an array of its own: see offset_by_stage()
  /// With by_stage: where each chunk of the model but the first (Model::chunks()) begins in the array.
  std::vector<Index> chunk_offsets = {};
};

using SavedState = std::vector<SavedPart>;

/// State that rank 0 saves and every rank needs.
template <class T>
SavedPart saved_by_first(int rank, std::string array, std::span<T> values) {
  const Range all{0, std::ssize(values)};
  return {.array = std::move(array),
          .size = all.end,
          .range = all,
          .memory = as_buffer(values),
          .written = rank == 0 ? all : Range{0, 0}};
}

}  // namespace lockstep
