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

/// Whether the first record of a file names its columns.
enum class Header { kAuto, kYes, kNo };

/// What becomes of a record that cannot be used.
enum class OnBadRecord { kFail, kSkip };

/// How tables (csv) are read and turned into numbers. Columns are known by their names; those of a file
/// without a header are c1, c2, ...
struct TableOptions {
  std::vector<std::string> label = {};
  std::vector<std::string> numeric = {};
  std::vector<std::string> categorical = {};
  std::vector<std::string> ignore = {};
  std::vector<std::string> columns = {};  ///< "zip: hash(256)": what is special of a column
  std::string scale = "standard";
  std::string missing = "mean";
  std::string encode = "onehot";
  std::vector<std::string> missing_values = {"", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"};
  Index vocabulary = 1000;
  Header header = Header::kAuto;
  std::string separator = "auto";
  bool quotes = true;
  OnBadRecord on_bad_record = OnBadRecord::kFail;
  double max_bad_share = 0.01;
  Index chunk_kib = 1024;
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
  TableOptions table;
};

}  // namespace lockstep
