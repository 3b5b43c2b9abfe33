// Tables as text: CSV, TSV and their like, raw or packed with gzip.
#include "lockstep/base/errors.h"
#include "lockstep/data/format.h"
#include "lockstep/data/split_files.h"
#include "lockstep/data/table/table_source.h"

namespace lockstep {
namespace {

std::unique_ptr<RecordSource> open(const OpenRequest& request) {
  const std::string path = records_path(request.options, request.split);
  if (path.empty()) return nullptr;
  return std::make_unique<TableSource>(TableRequest{.paths = {path},
                                                    .key = "data." + to_string(request.split),
                                                    .name = path,
                                                    .options = request.options.table,
                                                    .schema = request.schema,
                                                    .colleagues = request.colleagues});
}

std::unique_ptr<RecordSource> open_input(const InputRequest& request) {
  return std::make_unique<TableSource>(TableRequest{.paths = {request.path},
                                                    .key = "--input",
                                                    .name = request.path,
                                                    .options = request.options.table,
                                                    .schema = request.schema,
                                                    .labels = false,
                                                    .colleagues = request.colleagues});
}

}  // namespace

FormatEntry csv_format() {
  return {
      .name = "csv",
      .help =
          "tables as text (RFC 4180), raw or gzip, with the columns to learn in them; 'trainer inspect "
          "FILE' shows what is in one and writes its [data] section",
      .extensions = {".csv", ".csv.gz", ".tsv", ".tsv.gz", ".tab", ".tab.gz"},
      .options = {"data.train", "data.validation", "data.test", "data.label", "data.numeric",
                  "data.categorical", "data.ignore", "data.columns", "data.scale", "data.missing",
                  "data.encode", "data.missing_values", "data.vocabulary", "data.header", "data.separator",
                  "data.quotes", "data.on_bad_record", "data.max_bad_share", "data.chunk_kib"},
      .open = open,
      .open_input = open_input};
}

}  // namespace lockstep
