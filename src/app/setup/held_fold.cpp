#include "held_fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {

HeldFold held_fold(const Config& config) {
  const FoldOptions& folds = config.folds;
  HeldFold held{.fold = folds.fold, .part = parse_held_part(config.data.validation), .column = ""};
  if (held.part) {
    held.fold = 1;
    if (held.part->by == HeldPart::By::kGroup) held.column = held.part->column;
  } else if (folds.fold > 0 && (folds.by == "group" || folds.by == "column")) {
    held.column = folds.column;
  }
  return held;
}

DataOptions data_of_files(const DataOptions& data, const HeldFold& held) {
  DataOptions opened = data;
  if (held.part) opened.validation.clear();
  if (held.column.empty()) return opened;
  TableOptions& table = opened.table;
  for (const auto* used : {&table.numeric, &table.categorical, &table.ignore}) {
    if (std::ranges::count(*used, held.column) > 0) return opened;
  }
  table.ignore.push_back(held.column);
  return opened;
}

void refuse_file_of_that_name(const DataOptions& data) {
  std::error_code unreadable;  // then there is none to be meant
  if (!parse_held_part(data.validation) || !std::filesystem::exists(data.validation, unreadable)) return;
  throw ConfigError(fmt::format(
      "data.validation = {} is a part of the training samples, but there is a file of that name, too: "
      "write \"./{}\" if you mean the file, or rename it",
      in_quotes(data.validation), excerpt(data.validation)));
}

}  // namespace lockstep
