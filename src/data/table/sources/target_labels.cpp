#include "lockstep/data/table/sources/target_labels.h"

#include <fmt/format.h>

#include "lockstep/base/json.h"
#include "sparse_source.h"

namespace lockstep {

std::vector<TargetLabel> target_labels(const TableSchema& schema) {
  std::vector<TargetLabel> labels;
  for (const ColumnKind kind : {ColumnKind::kNumeric, ColumnKind::kCategorical}) {
    for (const TableColumn& column : schema.columns) {
      if (!column.label || column.kind != kind) continue;
      labels.push_back({.name = column.name, .classes = column.values});
    }
  }
  return labels;
}

std::vector<TargetLabel> read_target_labels(const std::string& json) {
  if (json.empty()) return {};
  if (parse_json<nlohmann::ordered_json>(json).contains("format")) {
    TargetLabel label{.name = "label"};
    for (const double value : parse_sparse_schema(json).classes)
      label.classes.push_back(fmt::format("{}", value));
    return {label};
  }
  return target_labels(parse_schema(json, "the schema of the model"));
}

}  // namespace lockstep
