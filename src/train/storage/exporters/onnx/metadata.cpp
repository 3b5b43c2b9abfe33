#include "metadata.h"

#include "answer.h"
#include "lockstep/base/json.h"
#include "table_inputs.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

void add_text(onnx::ModelProto& file, const std::string& name, const std::string& value) {
  onnx::StringStringEntryProto& entry = *file.add_metadata_props();
  entry.set_key(name);
  entry.set_value(value);
}

Json versions_of(const onnx::ModelProto& file) {
  Json versions{{"lockstep", file.producer_version()}};
  for (const onnx::OperatorSetIdProto& set : file.opset_import()) {
    versions[set.domain().empty() ? "ai.onnx" : set.domain()] = set.version();
  }
  return versions;
}

void add_table(onnx::ModelProto& file, const ModelToExport& exported) {
  Json columns = Json::array();
  for (const ColumnInput& input : column_inputs(*exported.schema)) {
    columns.push_back({{"name", input.name}, {"type", to_string(input.type)}, {"value", input.help}});
  }
  add_text(file, "columns", columns.dump());
  const AnswerNames names = answer_names(exported);
  add_text(file, "targets", Json(names.targets).dump());
  if (!names.classes.empty()) add_text(file, "classes", Json(names.classes).dump());
  add_text(file, "outputs", Json(names.outputs).dump());
}

}  // namespace

void add_metadata(onnx::ModelProto& file, const ModelToExport& exported) {
  add_text(file, "versions", versions_of(file).dump());
  for (const auto& [name, value] : exported.facts) add_text(file, name, value);
  if (exported.schema != nullptr) add_table(file, exported);
}

}  // namespace lockstep
