// Files of a run that could not be written, as on a full disk. They are logged together at the end and kept
// in summary.json; the same command then writes again what its newest checkpoint allows.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/train/loop/observer.h"
#include "lockstep/train/storage/checkpoint/writer.h"
#include "resume_state.h"

namespace lockstep {

class LostFiles {
 public:
  /// So far: files that lack lines, and the last checkpoint. `command`: see resume_command().
  LostFiles(const Observer& output, const CheckpointWriter& writer, std::string command);

  /// Calls `write`, whose DataError means that this file is lost. Whether it is not.
  bool attempt(const std::string& file, const std::function<void()>& write);

  bool empty() const { return files_.empty(); }
  const std::vector<std::string>& names() const { return files_; }
  /// "lines of log.txt; model.safetensors (cannot write ...)", and what to do.
  std::string describe() const;

 private:
  std::string command_;
  std::vector<std::string> files_;
  std::string text_;
};

/// The files of a resumed run that lack lines that it cannot write again.
std::vector<std::string> incomplete_before(const ResumeState& resume);

/// *Collective.* If a run that went to its end lost files: logs it, or refuses if there is no checkpoint to
/// write them again from. Errors: AgreedError.
void report_lost_before(Communicator& comm, const ResumeState& resume);

}  // namespace lockstep
