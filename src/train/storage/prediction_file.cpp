#include "lockstep/train/storage/prediction_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/text/table_text.h"

namespace lockstep {

void PredictionLines::append(const ConstMatrix& rows) {
  Index begin = 0;
  while (begin < rows.rows()) {
    pass_skipped();
    const Index available = skipped_.empty() ? rows.rows() : skipped_.front() - next_;
    const Index count = std::min(available, rows.rows() - begin);
    const ConstMatrix part(rows.data() + begin * rows.cols(), count, rows.cols());
    const PredictedRows converted = table_.convert(part);
    note_bad_rows(part, converted);
    file_.append(converted);
    next_ += count;
    begin += count;
  }
}

void PredictionLines::finish() {
  pass_skipped();
  file_.finish();
}

void PredictionLines::note_bad_rows(const ConstMatrix& rows, const PredictedRows& converted) {
  constexpr auto kIsFinite = [](auto value) { return std::isfinite(value); };
  for (Index row = 0; row < rows.rows(); ++row) {
    if (is_padding(rows, row)) continue;
    if (std::ranges::all_of(rows_of(rows, {row, row + 1}).values(), kIsFinite) &&
        std::ranges::all_of(rows_of(converted, {row, row + 1}).values(), kIsFinite))
      continue;
    if (bad_rows_.count++ == 0) bad_rows_.first = next_ + row;
  }
}

void PredictionLines::pass_skipped() {
  for (; !skipped_.empty() && skipped_.front() == next_; skipped_ = skipped_.subspan(1), ++next_) {
    file_.append_unknown();
  }
}

// One line for each of those in prediction_files/.
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
    if (ends_as(path, entry.extension)) return &entry;
  }
  return nullptr;
}

}  // namespace

const PredictionFileEntry& choose_prediction_file(const std::string& path, const std::string& format) {
  const PredictionFileEntry* const found = find_by_extension(path);
  if (!format.empty()) {
    const PredictionFileEntry& named = find_entry(prediction_file_catalog(), "format of predictions", format);
    if (found == nullptr || found == &named) return named;
    throw ConfigError("--format {} does not fit the end of --output '{}': leave one of them out", format,
                      path);
  }
  if (found != nullptr) return *found;
  if (is_stream(path)) return prediction_file_catalog().front();
  std::vector<std::string> known;
  for (const PredictionFileEntry& entry : prediction_file_catalog()) known.push_back(entry.extension);
  throw ConfigError("--output '{}': expected a name that ends in {}, or - for standard output, or --format",
                    path, fmt::join(known, " or "));
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
