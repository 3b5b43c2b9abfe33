// Small runs of each strategy that promises exact resume, which save themselves.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/agree.h"
#include "lockstep/train/storage/checkpoint/directory.h"
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
  Config config = tiny_config();
  config.model.layers = "dense(9) batch_norm relu dropout(0.1) dense(7) tanh dense(3)";
  config.checkpoint.dir = directory;
  config.checkpoint.every = every;
  config.checkpoint.keep = 100;
  return config;
}

struct SavingCase {
  std::string name;
  std::function<void(Config&)> change;
};

inline const std::vector<SavingCase>& saving_cases() {
  static const std::vector<SavingCase> kCases{
      {"allreduce", [](Config&) {}},
      {"adam, clipped", [](Config& c) { c.optimizer.optimizer = "adam", c.optimizer.clip_norm = 0.5; }},
      {"zero1", [](Config& c) { c.distribute.strategy = "zero1", c.optimizer.optimizer = "adam"; }},
      {"adafactor", [](Config& c) { c.optimizer.optimizer = "adafactor"; }},
      {"zero1 with muon",
       [](Config& c) {
         c.distribute.strategy = "zero1";
         c.distribute.bucket_kib = 0;
         c.optimizer.optimizer = "muon";
       }},
      {"central_storage", [](Config& c) { c.distribute.strategy = "central_storage"; }},
      {"nodes", [](Config& c) { c.distribute.strategy = "central_storage", c.debug.ranks_per_node = 2; }},
      {"full mode", [](Config& c) { c.data.mode = DataMode::kFull; }},
      {"moments of all", [](Config& c) { c.model.batch_norm = "averaged"; }},
      {"an exponential average", [](Config& c) { c.distribute.strategy = "zero1", c.train.ema = 0.8; }},
      {"one with moments measured anew",
       [](Config& c) { c.train.ema = 0.8, c.eval.precise_bn = 3, c.eval.every = "5 steps"; }},
      {"a uniform average", [](Config& c) { c.train.swa_from = "1 epoch"; }},
      {"audited", [](Config& c) { c.data.audit = true; }},
      {"local_sgd", [](Config& c) { c.distribute.strategy = "local_sgd", c.distribute.average_every = 3; }},
      {"local_sgd with blocks", [](Config& c) {
         c.distribute.strategy = "local_sgd";
         c.distribute.average_every = 3;
         c.distribute.local_after = "5 steps";
         c.distribute.block_momentum = 0.5;
         c.optimizer.optimizer = "adam";
       }}};
  return kCases;
}

inline std::string step_in(const std::string& directory, Index step) {
  return CheckpointDirectory(directory).finished(step).string();
}

}  // namespace lockstep::test
