// Records as their files have them: rows of tables, and of arrays and all other formats.
#include "lockstep/data/formats/format.h"
#include "lockstep/data/kinds/kind.h"
#include "lockstep/data/parts/validation_split.h"
#include "lockstep/data/table/schema/column_texts.h"

namespace lockstep {
namespace {

std::unique_ptr<RecordSource> open_records(const InputRequest& request) {
  const FormatEntry* format = nullptr;
  request.peers.agree([&] { format = &format_of_input(request.input, request.data); });
  return format->open({.options = request.data,
                       .peers = request.peers,
                       .schema = request.schema,
                       .input = request.input,
                       .lengths = request.lengths});
}

DataSets open_record_sets(const SetsRequest& request) {
  const FormatEntry* format = nullptr;
  DataParts parts;
  request.peers.agree([&] {
    format = &choose_format(request.data);
    parts = parts_beside_files(request.data);
  });
  const DataOptions data = data_of_files(request.data, parts);
  const auto open = [&](Split split, const std::string& schema,
                        const TableQuestions* questions = nullptr) -> std::unique_ptr<RecordSource> {
    if (!request.wanted.contains(split)) return nullptr;
    return format->open({data, split, request.seed, request.peers, schema, questions});
  };
  DataSets sets;
  HoldOut held;
  ColumnTexts texts(dividing_columns(parts, data.table));
  const TableQuestions questions{.texts = texts, .divide = [&](const TableRecords& records) {
                                   return held = hold_out(parts, request.seed, records, request.peers);
                                 }};
  sets.train = open(Split::kTrain, request.schema, parts.any() ? &questions : nullptr);
  texts.forget();
  if (parts.any() && sets.train && sets.train->table() == nullptr)
    held = hold_out(parts, request.seed, *sets.train, request.peers);
  const std::string schema = sets.train ? sets.train->schema() : request.schema;
  sets.validation = open(Split::kValidation, schema);
  sets.test = open(Split::kTest, schema);
  if (!held.any()) return sets;
  request.peers.agree([&] {
    DataSets divided = split_validation(std::move(sets.train), held);
    if (!divided.validation) divided.validation = std::move(sets.validation);
    if (!divided.test) divided.test = std::move(sets.test);
    sets = std::move(divided);
  });
  return sets;
}

}  // namespace

DataKind table_kind() {
  return {.name = "table",
          .is_of = [](const DataOptions& data) { return data.format == "csv"; },
          .open = open_record_sets,
          .open_input = open_records};
}

DataKind array_kind() {
  return {.name = "array",
          .is_of = [](const DataOptions&) { return true; },
          .open = open_record_sets,
          .open_input = open_records};
}

}  // namespace lockstep
