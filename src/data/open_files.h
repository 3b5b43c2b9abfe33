// Opening the files of a data set whose sizes stand in their headers, or follow from their sizes.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "lockstep/data/format.h"

namespace lockstep {

/// One file of records, and the files of its labels and weights ("" where there is none), with the config
/// keys that name them.
struct FileGroup {
  std::string records;
  std::string labels;
  std::string weights;
  std::string records_key;
  std::string labels_key;
  std::string weights_key;
};

/// How a format opens one file, or a group. Errors: DataError.
using OpenGroup = std::function<std::unique_ptr<RecordSource>(const FileGroup&)>;

/// The files in which a format keeps its labels, and its weights if it has any.
enum class Labels { kInFilesOfTheirOwn, kWithTheRecords };

/// *Collective.* FormatEntry::open for such formats: all files that the config names for the split.
/// `extensions` are those of the format. Errors as there.
std::unique_ptr<RecordSource> open_files(const OpenRequest& request, Labels labels,
                                         std::span<const std::string> extensions, const OpenGroup& open);

/// *Collective.* FormatEntry::open_input likewise.
std::unique_ptr<RecordSource> open_input_files(const InputRequest& request,
                                               std::span<const std::string> extensions,
                                               const OpenGroup& open);

}  // namespace lockstep
