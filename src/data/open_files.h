// Opening the files of a data set whose sizes stand in their headers, or follow from their sizes.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "lockstep/data/format.h"

namespace lockstep {

/// One file of records, and the file of its labels ("" where there is none), with the config keys that name
/// them.
struct FilePair {
  std::string records;
  std::string labels;
  std::string records_key;
  std::string labels_key;
};

/// How a format opens one file, or a pair. Errors: DataError.
using OpenPair = std::function<std::unique_ptr<RecordSource>(const FilePair&)>;

/// The files in which a format keeps its labels.
enum class Labels { kInFilesOfTheirOwn, kWithTheRecords };

/// *Collective.* FormatEntry::open for such formats: all files that the config names for the split.
/// `extensions` are those of the format. Errors as there.
std::unique_ptr<RecordSource> open_files(const OpenRequest& request, Labels labels,
                                         std::span<const std::string> extensions, const OpenPair& open);

/// *Collective.* FormatEntry::open_input likewise.
std::unique_ptr<RecordSource> open_input_files(const InputRequest& request,
                                               std::span<const std::string> extensions, const OpenPair& open);

}  // namespace lockstep
