// Tables as text: CSV, TSV and their like, raw or packed with gzip.
#include "table_source.h"

namespace lockstep {
namespace {

const std::vector<std::string> kCsvExtensions = {".csv", ".csv.gz", ".tsv", ".tsv.gz", ".tab", ".tab.gz"};

}  // namespace

FormatEntry csv_format() {
  return {
      .name = "csv",
      .help =
          "tables as text (RFC 4180), raw or gzip, with the columns to learn in them; 'trainer inspect "
          "FILE' shows what is in one and writes its [data] section",
      .extensions = kCsvExtensions,
      .options = {"data.train",     "data.validation",     "data.test",          "data.label",
                  "data.positive",  "data.weight",         "data.numeric",       "data.categorical",
                  "data.ignore",    "data.columns",        "data.scale",         "data.missing",
                  "data.encode",    "data.missing_values", "data.vocabulary",    "data.header",
                  "data.separator", "data.quotes",         "data.on_bad_record", "data.max_bad_share",
                  "data.chunk_kib", "data.decimal",        "data.thousands",     "data.strict",
                  "data.encoding",  "data.skip_lines",     "data.fold_case",     "data.time",
                  "data.series",    "data.window",         "data.horizon",       "data.stride",
                  "data.future",    "data.window_scale",   "data.fill_gaps",     "data.season"},
      .open = [](const OpenRequest& request) { return open_tables<TableSource>(request, kCsvExtensions); }};
}

}  // namespace lockstep
