// What the config says about data. Defaults stand here and nowhere else.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

/// Which samples a replica gets: its own shard, or the whole data set in its own order.
enum class DataMode { kShard, kFull };

/// What happens to the samples after the last full global batch of an epoch.
enum class Tail { kKeep, kDrop };

struct SyntheticOptions {
  Index rows = 0;
  Index validation_rows = 0;
  Index test_rows = 0;
  Index features = 16;
  Index classes = 2;
  double noise = 1.0;
};

struct DataOptions {
  std::string format;
  std::string train;
  std::string train_labels;
  std::string validation;
  std::string validation_labels;
  std::string test;
  std::string test_labels;
  DataMode mode = DataMode::kShard;
  std::vector<double> mean = {0.0};
  std::vector<double> std = {1.0};
  std::string augment;
  Index prefetch = 2;
  SyntheticOptions synthetic;
};

}  // namespace lockstep
