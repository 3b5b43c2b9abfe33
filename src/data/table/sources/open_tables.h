// How the text formats open what the config names: all files that it means are one table.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/errors.h"
#include "lockstep/data/file_list.h"
#include "lockstep/data/format.h"
#include "table_source.h"

namespace lockstep {

/// *Collective.* FormatEntry::open for a Source that is made from a TableRequest. Errors as there.
template <class Source>
std::unique_ptr<RecordSource> open_tables(const OpenRequest& request,
                                          std::span<const std::string> extensions) {
  const DataOptions& data = request.options;
  const std::string& name = request.split == Split::kTrain        ? data.train
                            : request.split == Split::kValidation ? data.validation
                                                                  : data.test;
  if (name.empty() && request.split != Split::kTrain) return nullptr;
  const std::string key = "data." + to_string(request.split);
  std::vector<std::string> paths;
  request.peers.agree([&] {
    if (name.empty()) {
      throw ConfigError(
          "data.train is not set: name the file to train on, or set data.format = \"synthetic\"");
    }
    paths = list_files(name, extensions, key);
  });
  return std::make_unique<Source>(TableRequest{.paths = std::move(paths),
                                               .name = name,
                                               .options = data.table,
                                               .schema = request.schema,
                                               .held = {.share = data.validation_share,
                                                        .key = request.seed,
                                                        .folds = request.folds,
                                                        .fold = request.fold},
                                               .peers = request.peers});
}

/// *Collective.* FormatEntry::open_input likewise.
template <class Source>
std::unique_ptr<RecordSource> open_input_tables(const InputRequest& request,
                                                std::span<const std::string> extensions) {
  std::vector<std::string> paths;
  request.peers.agree([&] { paths = list_input_files(request.path, extensions); });
  return std::make_unique<Source>(TableRequest{.paths = std::move(paths),
                                               .name = request.path,
                                               .options = request.options.table,
                                               .schema = request.schema,
                                               .labels = false,
                                               .peers = request.peers});
}

}  // namespace lockstep
