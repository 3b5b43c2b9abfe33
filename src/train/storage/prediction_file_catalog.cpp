#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>

#include "lockstep/base/errors.h"
#include "lockstep/base/output_file.h"
#include "lockstep/train/storage/prediction_file.h"

namespace lockstep {

// One line for each file in prediction_files/.
PredictionFileEntry csv_predictions();
PredictionFileEntry npy_predictions();

// Text comes first.
std::span<const PredictionFileEntry> prediction_file_catalog() {
  static const std::array kEntries{csv_predictions(), npy_predictions()};
  return kEntries;
}

const PredictionFileEntry& choose_prediction_file(const std::string& path) {
  std::vector<std::string> known;
  for (const PredictionFileEntry& entry : prediction_file_catalog()) {
    if (std::filesystem::path(path).extension() == entry.extension) return entry;
    known.push_back(entry.extension);
  }
  if (is_stream(path)) return prediction_file_catalog().front();
  throw ConfigError(fmt::format("--output '{}': expected a name that ends in {}, or - for standard output",
                                path, fmt::join(known, " or ")));
}

}  // namespace lockstep
