#include "lockstep/data/split_files.h"

#include <fmt/format.h>

#include "lockstep/base/errors.h"

namespace lockstep {

namespace {

[[noreturn]] void fail_without_training_set() {
  throw ConfigError("data.train is not set: name the file to train on, or set data.format = \"synthetic\"");
}

std::string path_of(const DataOptions& options, Split split) {
  return split == Split::kTrain        ? options.train
         : split == Split::kValidation ? options.validation
                                       : options.test;
}

}  // namespace

std::string records_path(const DataOptions& options, Split split) {
  const std::string path = path_of(options, split);
  if (path.empty() && split == Split::kTrain) fail_without_training_set();
  return path;
}

SplitFiles split_files(const DataOptions& options, Split split) {
  SplitFiles files;
  files.records_key = "data." + to_string(split);
  files.labels_key = files.records_key + "_labels";
  files.records = path_of(options, split);
  files.labels = split == Split::kTrain        ? options.train_labels
                 : split == Split::kValidation ? options.validation_labels
                                               : options.test_labels;
  if (files.records.empty() && files.labels.empty()) {
    if (split != Split::kTrain) return files;
    fail_without_training_set();
  }
  if (files.records.empty() || files.labels.empty()) {
    const bool no_labels = files.labels.empty();
    throw ConfigError(fmt::format("{} is set, but {} is not: name the file with the {}",
                                  no_labels ? files.records_key : files.labels_key,
                                  no_labels ? files.labels_key : files.records_key,
                                  no_labels ? "labels of these records" : "records of these labels"));
  }
  return files;
}

}  // namespace lockstep
