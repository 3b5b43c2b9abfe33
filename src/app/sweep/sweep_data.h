// The data that the trials of a sweep have been trained with: all are to be compared, so all must have had
// the same.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/commands.h"
#include "lockstep/comm/communicator.h"

namespace lockstep {

/// The file data.json of a sweep: a hash of each data set, and the trial that was the first to read it.
class SweepData {
 public:
  explicit SweepData(std::filesystem::path file) : file_(std::move(file)) {}

  /// *Collective.* Describes the first data set whose files have changed; "" if none has, as far as they are
  /// there and few enough to be listed.
  std::string find_change(Communicator& comm) const;
  /// *Collective.* Notes what the trial is about to read, and describes what has changed in it; "" if nothing
  /// has. Errors: AgreedError.
  std::string note(Communicator& comm, const std::vector<RunData>& data, const std::string& trial) const;

 private:
  std::filesystem::path file_;
};

}  // namespace lockstep
