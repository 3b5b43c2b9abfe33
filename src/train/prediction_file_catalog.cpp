#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "lockstep/base/errors.h"
#include "lockstep/train/prediction_file.h"
#include "prediction_files/entries.h"

namespace lockstep {

std::span<const PredictionFileEntry> prediction_file_catalog() {
  static const std::array kEntries{csv_predictions(), npy_predictions()};
  return kEntries;
}

const PredictionFileEntry& choose_prediction_file(const std::filesystem::path& path) {
  std::vector<std::string> known;
  for (const PredictionFileEntry& entry : prediction_file_catalog()) {
    if (path.extension() == entry.extension) return entry;
    known.push_back(entry.extension);
  }
  throw ConfigError(
      fmt::format("--output '{}': expected a name that ends in {}", path.string(), fmt::join(known, " or ")));
}

}  // namespace lockstep
