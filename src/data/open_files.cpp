#include "open_files.h"

#include <fmt/format.h>

#include "joined_source.h"
#include "lockstep/base/errors.h"
#include "lockstep/data/file_list.h"

namespace lockstep {
namespace {

// The files that the config names for a split; both paths are empty if it names nothing.
FilePair files_of(const DataOptions& options, Split split, Labels labels) {
  FilePair files;
  files.records_key = "data." + to_string(split);
  files.labels_key = files.records_key + "_labels";
  files.records = split == Split::kTrain        ? options.train
                  : split == Split::kValidation ? options.validation
                                                : options.test;
  if (labels == Labels::kInFilesOfTheirOwn) {
    files.labels = split == Split::kTrain        ? options.train_labels
                   : split == Split::kValidation ? options.validation_labels
                                                 : options.test_labels;
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

std::unique_ptr<RecordSource> open_all(const FilePair& files, std::span<const std::string> extensions,
                                       const OpenPair& open) {
  const std::vector<std::string> records = list_files(files.records, extensions, files.records_key);
  std::vector<std::string> labels(records.size());
  if (!files.labels.empty()) labels = list_files(files.labels, extensions, files.labels_key);
  if (labels.size() != records.size()) {
    throw DataError(
        fmt::format("{} names {} files, but {} names {}: expected a file of labels for each file of records",
                    files.records_key, records.size(), files.labels_key, labels.size()));
  }
  std::vector<std::unique_ptr<RecordSource>> sources;
  for (std::size_t i = 0; i < records.size(); ++i) {
    sources.push_back(open({records[i], labels[i], files.records_key, files.labels_key}));
  }
  return join_sources(std::move(sources), files.records);
}

}  // namespace

std::unique_ptr<RecordSource> open_files(const OpenRequest& request, Labels labels,
                                         std::span<const std::string> extensions, const OpenPair& open) {
  std::unique_ptr<RecordSource> source;
  request.peers.agree([&] {
    const FilePair files = files_of(request.options, request.split, labels);
    if (!files.records.empty()) source = open_all(files, extensions, open);
  });
  return source;
}

std::unique_ptr<RecordSource> open_input_files(const InputRequest& request,
                                               std::span<const std::string> extensions,
                                               const OpenPair& open) {
  std::unique_ptr<RecordSource> source;
  request.peers.agree([&] {
    source = open_all({.records = request.path, .labels = "", .records_key = "--input", .labels_key = ""},
                      extensions, open);
  });
  return source;
}

}  // namespace lockstep
