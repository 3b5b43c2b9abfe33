// Small runs of each strategy that promises exact resume, which save themselves; and two that must have the
// same bits.
#pragma once

#include "lockstep/comm/agree.h"
#include "lockstep/train/storage/checkpoint.h"
#include "support/common.h"
#include "support/temporary_directory.h"
#include "support/tiny_run.h"

namespace lockstep::test {

// One for all ranks, wherever they are.
class SharedDirectory {
 public:
  explicit SharedDirectory(Communicator& comm) : comm_(comm) {
    if (comm.rank() == 0) own_.emplace();
    path_ = broadcast_text(comm, own_ ? own_->path().string() : "");
  }
  ~SharedDirectory() { comm_.barrier(); }
  SharedDirectory(const SharedDirectory&) = delete;
  SharedDirectory& operator=(const SharedDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  Communicator& comm_;
  std::optional<TemporaryDirectory> own_;
  std::string path_;
};

inline Config saving_config(const std::string& directory, const char* every) {
  Config config = tiny_config(
      "model.layers=dense(9) batch_norm relu dropout(0.1) dense(7) tanh dense(3); checkpoint.keep=100");
  config.checkpoint.dir = directory;
  config.checkpoint.every = every;
  return config;
}

struct SavingCase {
  std::string name;
  std::function<void(Config&)> change;
};

inline const std::vector<SavingCase>& saving_cases() {
  static const std::vector<SavingCase> kCases{
      {"allreduce", [](Config&) {}},
      {"adam, clipped", keys("train.optimizer=adam; train.clip_norm=0.5")},
      {"zero1", keys("distribute.strategy=zero1; train.optimizer=adam")},
      {"adafactor", keys("train.optimizer=adafactor")},
      {"zero1 with muon", keys("distribute.strategy=zero1; distribute.bucket_kib=0; train.optimizer=muon")},
      {"central_storage", keys("distribute.strategy=central_storage")},
      {"nodes", keys("distribute.strategy=central_storage; debug.ranks_per_node=2")},
      {"full mode", keys("data.mode=full")},
      {"moments of all", keys("model.batch_norm=averaged")},
      {"an exponential average", keys("distribute.strategy=zero1; train.ema=0.8")},
      {"one with moments measured anew", keys("train.ema=0.8; eval.precise_bn=3; eval.every=5 steps")},
      {"a uniform average", keys("train.swa_from=1 epoch")},
      {"audited", keys("data.audit=true")},
      {"local_sgd", keys("distribute.strategy=local_sgd; distribute.average_every=3")},
      {"local_sgd with blocks",
       keys("distribute.strategy=local_sgd; distribute.average_every=3; distribute.local_after=5 steps; "
            "distribute.block_momentum=0.5; train.optimizer=adam")}};
  return kCases;
}

inline std::string step_in(const std::string& directory, Index step) {
  return CheckpointDirectory(directory).finished(step).string();
}

/// Weights, running moments, losses and evaluations, on the rank that has them.
inline void expect_same_bits(const TinyResult& found, const TinyResult& expected, Communicator& comm) {
  if (comm.rank() != 0) return;
  EXPECT_TRUE(found.weights == expected.weights);
  EXPECT_TRUE(found.state == expected.state);
  EXPECT_TRUE(found.losses == expected.losses);
  ASSERT_EQ(found.evaluations.size(), expected.evaluations.size());
  for (std::size_t i = 0; i < found.evaluations.size(); ++i) {
    EXPECT_EQ(found.evaluations[i].loss, expected.evaluations[i].loss);
    EXPECT_EQ(found.evaluations[i].confusion, expected.evaluations[i].confusion);
  }
}

}  // namespace lockstep::test
