// A data set as trainer init sees it before it chooses a config: all of its records are read once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/table/inspect/inspect.h"
#include "lockstep/math/shape.h"

namespace lockstep {

/// The values of the labels.
struct LabelFacts {
  std::string name = {};  ///< name in messages: "label 'churn'", "labels 'y.npy'"
  Index columns = 1;      ///< columns of a record's labels
  /// Different values with their counts, the most frequent first; empty if there are very many.
  std::vector<ValueCounts::Entry> values = {};
  Index texts = 0;           ///< values that are no numbers
  bool whole = false;        ///< all numbers are whole
  NumberStats numbers = {};  ///< statistics of the values that are numbers
  /// Any values may be classes: the file format numbers them by data.columns = ["NAME: categorical"].
  bool can_be_named = false;
};

struct InitData {
  DataOptions options = {};  ///< data.train, data.train_labels, data.format and what was given
  std::string format = {};
  Index records = 0;
  Shape features = {};  ///< shape of the features as layers see them
  LabelFacts label = {};
  std::optional<TableInspection> table = {};   ///< inspection of a CSV file
  std::vector<NumberStats> numbers = {};       ///< of each feature of what is no table
  std::optional<std::string> validation = {};  ///< found beside it, by name
  std::optional<std::string> test = {};
  std::string input = {};                ///< file for the first predictions
  std::vector<std::string> doubts = {};  ///< doubts that the user should look at
};

/// `options`: as given by flags; data.label also names the labels of arrays. Errors: ConfigError, DataError.
InitData read_init_data(const std::string& path, const DataOptions& options);

/// The data in which one of `words` stands where `path` has the word "train": "x_test.npy" for "x_train.npy".
/// Nothing if there is none.
std::optional<std::string> find_beside(const std::string& path, const std::vector<std::string>& words);
/// The labels of the records in `path`, which is a file or an array of one: "y_train.npy" for "x_train.npy".
std::optional<std::string> find_labels(const std::string& path);

inline const std::vector<std::string> kTestWords{"test", "testing", "t10k"};
inline const std::vector<std::string> kValidationWords{"validation", "valid", "val", "dev"};

}  // namespace lockstep
