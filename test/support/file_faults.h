// What goes wrong with the files of a trainer that a test starts: a library (faulty_files.cpp) between it and
// the C library counts its calls in one place and lets some of them fail.
#pragma once

#include "support/common.h"
#include "support/temporary_directory.h"
#include "support/trainer_process.h"

namespace lockstep::test {

/// Kinds of calls: open (to read), create (to write), read, write, sync, close, rename, mkdir, remove,
/// truncate.
///
/// Effects: ENOSPC, EDQUOT, EIO, ENOENT and EROFS: the call fails with that and does nothing. "die": the
/// process ends by SIGKILL instead of the call, of a write after the first half of its bytes. "half": half is
/// written or read, as is legal. "flip": a bit of what is written is another. "end": there is nothing more to
/// be read. "hang": the call never comes back. "wait": it is made a moment later.
struct FileFault {
  std::string in;           ///< counts calls for files whose absolute path begins with this
  std::string effect = {};  ///< of each call from `from` on, with commas; the last for all that follow
  std::string calls = {};   ///< kinds, with commas; only these are counted; empty: all
  int from = 1;             ///< the first call that goes wrong
  int count = 1;            ///< so many do
  int rank = 0;             ///< of this rank; kEveryRank: each counts its own
};
inline constexpr int kEveryRank = -1;
inline constexpr int kForever = 1 << 30;

struct FileCall {
  std::string kind;
  std::string path;
  std::string effect;  ///< "": all was well
};

class FileFaults {
 public:
  explicit FileFaults(FileFault fault) : fault_(std::move(fault)) {}

  /// The words that start a trainer with it, see rank_words().
  std::string words() const;
  /// All calls of a rank at files in that place, of any kind.
  std::vector<FileCall> calls(int rank) const;
  /// How many went wrong, of all ranks.
  int hits() const;

 private:
  FileFault fault_;
  TemporaryDirectory directory_;
};

/// mpiexec -n RANKS trainer ARGUMENTS with these faults. A failure of the test if it has not ended after some
/// time, or leaves processes behind.
ProcessResult run_trainer(int ranks, const std::string& arguments, const FileFaults& faults);

}  // namespace lockstep::test
