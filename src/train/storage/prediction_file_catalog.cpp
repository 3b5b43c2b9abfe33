#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/output_file.h"
#include "lockstep/data/table/text/table_text.h"
#include "lockstep/train/storage/prediction_file.h"

namespace lockstep {

// One line for each file in prediction_files/.
PredictionFileEntry csv_predictions();
PredictionFileEntry jsonl_predictions();
PredictionFileEntry npy_predictions();

// Text comes first.
std::span<const PredictionFileEntry> prediction_file_catalog() {
  static const std::array kEntries{csv_predictions(), jsonl_predictions(), npy_predictions()};
  return kEntries;
}

namespace {

const PredictionFileEntry* find_by_extension(const std::string& path) {
  for (const PredictionFileEntry& entry : prediction_file_catalog()) {
    if (std::filesystem::path(path).extension() == entry.extension) return &entry;
  }
  return nullptr;
}

}  // namespace

const PredictionFileEntry& choose_prediction_file(const std::string& path, const std::string& format) {
  const PredictionFileEntry* const found = find_by_extension(path);
  if (!format.empty()) {
    const PredictionFileEntry& named = find_entry(prediction_file_catalog(), "format of predictions", format);
    if (found == nullptr || found == &named) return named;
    throw ConfigError(fmt::format("--format {} does not fit the end of --output '{}': leave one of them out",
                                  format, path));
  }
  if (found != nullptr) return *found;
  if (is_stream(path)) return prediction_file_catalog().front();
  std::vector<std::string> known;
  for (const PredictionFileEntry& entry : prediction_file_catalog()) known.push_back(entry.extension);
  throw ConfigError(
      fmt::format("--output '{}': expected a name that ends in {}, or - for standard output, or --format",
                  path, fmt::join(known, " or ")));
}

std::vector<std::string> names_of_columns(const PredictionFileRequest& request) {
  std::vector<std::string> names{"row"};
  if (request.kept != nullptr) {
    for (const std::string& name : request.kept->names()) names.push_back(name);
  }
  for (const PredictionColumn& column : request.columns) names.push_back(column.name);
  return distinct_names(names);
}

}  // namespace lockstep
