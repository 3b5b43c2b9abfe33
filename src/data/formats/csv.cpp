// Tables as text: CSV, TSV and their like, raw or packed with gzip.
#include "lockstep/base/errors.h"
#include "lockstep/data/file_list.h"
#include "lockstep/data/format.h"
#include "lockstep/data/table/table_source.h"

namespace lockstep {
namespace {

const std::vector<std::string> kExtensions = {".csv", ".csv.gz", ".tsv", ".tsv.gz", ".tab", ".tab.gz"};

std::string path_of(const DataOptions& options, Split split) {
  if (split != Split::kTrain) return split == Split::kValidation ? options.validation : options.test;
  if (!options.train.empty()) return options.train;
  throw ConfigError("data.train is not set: name the file to train on, or set data.format = \"synthetic\"");
}

// *Collective.*
std::unique_ptr<RecordSource> open_tables(const std::string& text, const std::string& key, bool labels,
                                          const TableOptions& options, const std::string& schema,
                                          Colleagues& colleagues) {
  std::vector<std::string> paths;
  colleagues.agree([&] { paths = list_files(text, kExtensions, key); });
  return std::make_unique<TableSource>(TableRequest{.paths = paths,
                                                    .key = key,
                                                    .name = text,
                                                    .options = options,
                                                    .schema = schema,
                                                    .labels = labels,
                                                    .colleagues = colleagues});
}

std::unique_ptr<RecordSource> open(const OpenRequest& request) {
  std::string path;
  request.colleagues.agree([&] { path = path_of(request.options, request.split); });
  if (path.empty()) return nullptr;
  return open_tables(path, "data." + to_string(request.split), true, request.options.table, request.schema,
                     request.colleagues);
}

std::unique_ptr<RecordSource> open_input(const InputRequest& request) {
  return open_tables(request.path, "--input", false, request.options.table, request.schema,
                     request.colleagues);
}

}  // namespace

FormatEntry csv_format() {
  return {.name = "csv",
          .help =
              "tables as text (RFC 4180), raw or gzip, with the columns to learn in them; 'trainer inspect "
              "FILE' shows what is in one and writes its [data] section",
          .extensions = kExtensions,
          .options = {"data.train",          "data.validation_share",
                      "data.validation",     "data.test",
                      "data.label",          "data.numeric",
                      "data.categorical",    "data.ignore",
                      "data.columns",        "data.scale",
                      "data.missing",        "data.encode",
                      "data.missing_values", "data.vocabulary",
                      "data.header",         "data.separator",
                      "data.quotes",         "data.on_bad_record",
                      "data.max_bad_share",  "data.chunk_kib"},
          .open = open,
          .open_input = open_input};
}

}  // namespace lockstep
