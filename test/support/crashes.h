// Crashes of the machine at every call of a recorded run: what each may leave on the disk, and what the next
// start must find there.
#pragma once

#include "lockstep/base/types.h"
#include "support/common.h"
#include "support/file_recording.h"
#include "support/simulated_disk.h"

namespace lockstep::test {

inline constexpr Index kNoStep = -1;

/// What a start must find after a crash: steps, or kNoStep.
struct Promise {
  Index reported = kNoStep;  ///< the newest checkpoint that the log told of
  Index renamed = kNoStep;   ///< the newest that has its name
  Index ended = kNoStep;     ///< steps of the run, once the trainer has ended well

  /// What changes with a call of the trainer.
  void note(const RecordedCall& call);
};

struct CrashRecording {
  FileTree before;
  FileTree after;
  std::vector<RecordedCall> calls;
  Promise first;          ///< before the first call
  Index steps = kNoStep;  ///< of the run, at its end
};

/// Records a trainer that ends well after so many steps. `newest`: the checkpoint that is there before.
/// Errors: std::runtime_error if the trainer fails, or if the calls do not lead to what is in the place then.
CrashRecording record_run(int ranks, const std::string& arguments, const std::filesystem::path& place,
                          Index newest, Index steps);

/// What a crash before each call, and one after the last, may leave, in each way of losing what was not
/// synced: makes each different state in the place, and has `look` look at it. Ends with the first failure of
/// the test. LOCKSTEP_CRASHES in the environment: how many random losses there are for each call.
using LookAfterCrash = std::function<void(const CrashRecording&, const Promise&, const FileTree&)>;
void crash_at_every_call(const CrashRecording& recording, const std::filesystem::path& place,
                         const LookAfterCrash& look);

/// Makes a state that a crash after so many calls may leave, with random losses.
void crash_after(std::size_t calls, const CrashRecording& recording, const std::filesystem::path& place);

}  // namespace lockstep::test
