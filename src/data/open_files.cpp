#include "open_files.h"

#include <fmt/format.h>

#include "joined_source.h"
#include "lockstep/base/errors.h"
#include "lockstep/data/file_list.h"

namespace lockstep {
namespace {

constexpr const char* kInputKey = "--input";

// The files that the config names for a split; all paths are empty if it names nothing.
FileGroup files_of(const DataOptions& options, Split split, Labels labels) {
  FileGroup files;
  files.records_key = "data." + to_string(split);
  files.labels_key = files.records_key + "_labels";
  files.weights_key = files.records_key + "_weights";
  files.records = split == Split::kTrain        ? options.train
                  : split == Split::kValidation ? options.validation
                                                : options.test;
  if (labels == Labels::kInFilesOfTheirOwn) {
    files.labels = split == Split::kTrain        ? options.train_labels
                   : split == Split::kValidation ? options.validation_labels
                                                 : options.test_labels;
    files.weights = split == Split::kTrain        ? options.train_weights
                    : split == Split::kValidation ? options.validation_weights
                                                  : options.test_weights;
  }
  if (files.records.empty() && files.labels.empty() && !files.weights.empty()) {
    throw ConfigError(fmt::format("{} is set, but {} is not: name the file with the records of these weights",
                                  files.weights_key, files.records_key));
  }
  if (files.records.empty() && files.labels.empty()) {
    if (split != Split::kTrain) return files;
    throw ConfigError("data.train is not set: name the file to train on, or set data.format = \"synthetic\"");
  }
  const bool no_labels = files.labels.empty();
  if (files.records.empty() || (no_labels && labels == Labels::kInFilesOfTheirOwn)) {
    throw ConfigError(fmt::format("{} is set, but {} is not: name the file with the {}",
                                  no_labels ? files.records_key : files.labels_key,
                                  no_labels ? files.labels_key : files.records_key,
                                  no_labels ? "labels of these records" : "records of these labels"));
  }
  return files;
}

std::unique_ptr<RecordSource> open_all(const FileGroup& files, std::span<const std::string> extensions,
                                       const OpenGroup& open) {
  const bool of_input = files.records_key == kInputKey;
  const std::vector<std::string> records = of_input
                                               ? list_input_files(files.records, extensions)
                                               : list_files(files.records, extensions, files.records_key);
  // A file beside each file of records; "" for each if the config names none.
  const auto list_beside = [&](const std::string& path, const std::string& key, const char* noun) {
    if (path.empty()) return std::vector<std::string>(records.size());
    std::vector<std::string> beside = list_files(path, extensions, key);
    if (beside.size() == records.size()) return beside;
    throw DataError(
        fmt::format("{} names {} files, but {} names {}: expected a file of {} for each file of records",
                    files.records_key, records.size(), key, beside.size(), noun));
  };
  const std::vector<std::string> labels = list_beside(files.labels, files.labels_key, "labels");
  const std::vector<std::string> weights = list_beside(files.weights, files.weights_key, "weights");
  std::vector<std::unique_ptr<RecordSource>> sources;
  for (std::size_t i = 0; i < records.size(); ++i) {
    FileGroup group = files;
    group.records = records[i];
    group.labels = labels[i];
    group.weights = weights[i];
    sources.push_back(open(group));
  }
  return join_sources(std::move(sources), files.records);
}

}  // namespace

std::unique_ptr<RecordSource> open_files(const OpenRequest& request, Labels labels,
                                         std::span<const std::string> extensions, const OpenGroup& open) {
  std::unique_ptr<RecordSource> source;
  request.peers.agree([&] {
    const FileGroup files = files_of(request.options, request.split, labels);
    if (!files.records.empty()) source = open_all(files, extensions, open);
  });
  return source;
}

std::unique_ptr<RecordSource> open_input_files(const InputRequest& request,
                                               std::span<const std::string> extensions,
                                               const OpenGroup& open) {
  std::unique_ptr<RecordSource> source;
  request.peers.agree([&] {
    FileGroup input;
    input.records = request.path;
    input.records_key = kInputKey;
    source = open_all(input, extensions, open);
  });
  return source;
}

}  // namespace lockstep
