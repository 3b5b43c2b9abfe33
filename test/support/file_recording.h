// What a trainer did to the files in one place: each call that changed something there, or synced it, of all
// ranks in the order in which they took effect. A library (recording_files.cpp) between it and the C library
// writes them down.
#pragma once

#include "support/common.h"
#include "support/trainer_process.h"

namespace lockstep::test {

struct RecordedCall {
  std::string kind;  ///< create, write, truncate, sync, rename, mkdir, remove
  int rank = 0;
  std::string path;        ///< below the place
  std::string to = {};     ///< of a rename
  std::size_t offset = 0;  ///< of a write; the length that truncate leaves
  std::string bytes = {};  ///< of a write
};

std::string describe(const RecordedCall& call);

struct RecordedRun {
  ProcessResult result;
  std::vector<RecordedCall> calls;
};

/// trainer ARGUMENTS, on more than one rank under mpiexec, with all calls recorded that concern files below
/// `place`, an absolute path.
RecordedRun record_trainer(int ranks, const std::string& arguments, const std::filesystem::path& place);

}  // namespace lockstep::test
