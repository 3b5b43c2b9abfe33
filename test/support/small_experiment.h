// A complete experiment in a temporary directory: small IDX files and a config that trains on them.
#pragma once

#include "lockstep/base/errors.h"

#include "support/idx_files.h"
#include "support/temporary_directory.h"

namespace lockstep::test {

class SmallExperiment {
 public:
  SmallExperiment()
      : train_(write_idx_pair(directory_ / "train", {.rows = 203, .classes = 4, .seed = 1})),
        test_(write_idx_pair(directory_ / "test", {.rows = 57, .classes = 4, .seed = 2})) {}

  /// Writes a config and gives its path. `extra` is appended; a key in it must not be one of those below.
  std::string config(const std::string& extra = "") const;

  const IdxPair& train() const { return train_; }
  const IdxPair& test() const { return test_; }
  const TemporaryDirectory& directory() const { return directory_; }
  /// A run directory that does not exist yet.
  std::string fresh_run() const;

 private:
  TemporaryDirectory directory_;
  IdxPair train_;
  IdxPair test_;
  mutable int runs_ = 0;
};

/// Runs of the experiment, with flags that all of them have and others of their own.
class SmallRuns : public testing::Test {
 protected:
  explicit SmallRuns(std::string flags = "") : flags_(std::move(flags)) {}

  std::string words(const std::string& run, const std::string& flags = "") const;
  /// The directory of a new run that ends well.
  std::string trained(int ranks, const std::string& flags = "") const;
  /// Of a new run; it leaves no directory.
  void expect_refused(int ranks, const std::string& flags, const std::vector<std::string>& parts,
                      int exit_code = kExitConfig) const;

  const SmallExperiment experiment_;
  const std::string flags_;
};

}  // namespace lockstep::test
