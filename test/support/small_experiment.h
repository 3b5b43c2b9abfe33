// A complete experiment in a temporary directory: small IDX files and a config that trains on them. Runs of
// it that save themselves often and keep little, and what of them must be the same bytes whatever befell
// them.
#pragma once

#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/types.h"
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
  /// The summary of such a run, which is run_, and has said output_.
  nlohmann::json summarised(int ranks, const std::string& flags);
  /// A run goes on on so many ranks, the last of which fails in a step if that is not 0.
  void go_on(int ranks, const std::string& run, const std::string& flags, int fails_at) const;
  /// Of a new run; it leaves no directory.
  void expect_refused(int ranks, const std::string& flags, const std::vector<std::string>& parts,
                      int exit_code = kExitConfig) const;

  const SmallExperiment experiment_;
  const std::string flags_;
  std::string run_;
  std::string output_;
};

/// The flags of a run of nine steps with checkpoints after the 3rd, 6th and 9th, two evaluations, and a best
/// one. `flags` come after those. `validated`: whether the validation set is the test set of the experiment,
/// not one that its config names.
std::string saving_arguments(const SmallExperiment& experiment, const std::string& run,
                             const std::string& flags = "", bool validated = true);

/// "RUN/checkpoints/step-000000006".
std::string checkpoint_of(const std::string& run, Index step);
/// Steps of the finished checkpoints of a run, in order; and the last of them, -1 if there is none.
std::vector<Index> finished_checkpoints(const std::string& run);
Index newest_checkpoint(const std::string& run);
/// Files and directories that bear a name for unfinished ones.
std::vector<std::string> unfinished_names(const std::string& run);

std::string model_of(const std::string& run);
/// metrics.jsonl without what time decides.
std::string metrics_of(const std::string& run);
/// Both are those of another run.
void expect_same_run(const std::string& found, const std::string& expected);

}  // namespace lockstep::test
