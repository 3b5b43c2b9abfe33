#include "foreign_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace lockstep {
namespace {

struct ForeignFile {
  std::string_view name;
  std::vector<std::string_view> ends;  // endings of paths
  std::string_view start;              // first bytes of the content; "" where nothing tells it apart
  std::string_view convert;            // a command, in which {0} is the path, or what else to do
};

// The commands are of pandas, LibreOffice, SQLite, R and the packers themselves.
const std::vector<ForeignFile>& foreign_files() {
  static const std::vector<ForeignFile> kFiles{
      {"a Parquet file",
       {".parquet", ".pq"},
       "PAR1",
       R"~(convert it with python3 -c "import pandas; pandas.read_parquet('{0}').to_csv('table.csv', index=False)")~"},
      {"an Arrow (Feather) file",
       {".feather", ".arrow"},
       "ARROW1",
       R"~(convert it with python3 -c "import pandas; pandas.read_feather('{0}').to_csv('table.csv', index=False)")~"},
      {"a spreadsheet",
       {".xlsx", ".xls", ".ods", ".xlsb", ".xlsm"},
       "\xd0\xcf\x11\xe0",
       "convert it with soffice --headless --convert-to csv '{0}'"},
      {"a zip archive (or a spreadsheet in one)",
       {".zip"},
       "PK\x03\x04",
       "unpack it with unzip '{0}', or convert a spreadsheet with soffice --headless --convert-to csv '{0}'"},
      {"an SQLite database",
       {".sqlite", ".sqlite3", ".db"},
       "SQLite format 3",
       "convert a table of it with sqlite3 -header -csv '{0}' 'SELECT * FROM name' > table.csv"},
      {"a file of R objects",
       {".rds", ".rda", ".RData", ".Rdata"},
       "RDX",
       "write a data frame there with write.csv(data, 'table.csv', row.names = FALSE)"},
      {"a file of SAS, SPSS or Stata",
       {".sas7bdat", ".xpt", ".sav", ".dta"},
       "$FL2",
       "convert it with pandas (read_sas, read_spss or read_stata, then to_csv) or with haven in R"},
      {"JSON",
       {".json", ".jsonl", ".ndjson"},
       "",
       R"~(convert it with python3 -c "import pandas; pandas.read_json('{0}', lines=True).to_csv('table.csv', index=False)")~"},
      {"a pickle, which only Python reads",
       {".pt", ".pth", ".pkl", ".pickle", ".joblib"},
       "",
       "save its arrays there as .npy files, with numpy.save, and name those"},
      {"packed with bzip2", {".bz2"}, "BZh", "unpack it with bunzip2 '{0}'"},
      {"packed with xz",
       {".xz"},
       "\xfd"
       "7zXZ",
       "unpack it with unxz '{0}'"},
      {"packed with zstd", {".zst"}, "\x28\xb5\x2f\xfd", "unpack it with unzstd '{0}'"}};
  return kFiles;
}

bool ends_as(const std::string& path, const ForeignFile& file) {
  return std::ranges::any_of(file.ends, [&](std::string_view end) { return path.ends_with(end); });
}

}  // namespace

bool has_known_start(const std::string& path) {
  return std::ranges::any_of(
      foreign_files(), [&](const ForeignFile& file) { return ends_as(path, file) && !file.start.empty(); });
}

std::string describe_foreign(const std::string& path, std::string_view start) {
  const auto fits = [&](const ForeignFile& file) {
    return start.empty() ? ends_as(path, file) : !file.start.empty() && start.starts_with(file.start);
  };
  const auto found = std::ranges::find_if(foreign_files(), fits);
  if (found == foreign_files().end()) return "";
  return fmt::format("{}: {}", found->name, fmt::format(fmt::runtime(found->convert), path));
}

}  // namespace lockstep
