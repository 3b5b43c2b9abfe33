#include "lockstep/data/file_list.h"
#include "foreign_file.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <vector>

#include "lockstep/base/errors.h"
#include "lockstep/data/byte_stream.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

bool ends_as_one_of(const std::string& path, std::span<const std::string> extensions) {
  return std::ranges::any_of(extensions, [&](const std::string& end) { return path.ends_with(end); });
}

std::vector<std::string> files_of_directory(const std::string& path, std::span<const std::string> extensions,
                                            const std::string& key) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    const char first = entry.path().filename().string().front();
    if (first != '.' && first != '_' && entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<std::string> known;
  std::ranges::copy_if(files, std::back_inserter(known),
                       [&](const std::string& file) { return ends_as_one_of(file, extensions); });
  if (!known.empty()) return known;
  if (files.empty()) throw DataError(fmt::format("{} names '{}', a directory without files", key, path));
  return files;
}

// Empty if nothing matches. Braces first, so that what a pattern with them gives is sorted as a whole.
std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> files;
  if (glob(pattern.c_str(), GLOB_BRACE, nullptr, &found) == 0) {
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  std::ranges::sort(files);
  return files;
}

// Splits a list at commas outside of braces.
std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (c == ',' && depth <= 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// " in '/home/me'" for a path that begins nowhere else.
std::string describe_start(const std::string& path) {
  std::error_code unknown;
  const fs::path here = fs::current_path(unknown);
  return unknown || fs::path(path).is_absolute() ? "" : fmt::format(" in '{}'", here.string());
}

[[noreturn]] void fail_missing(const std::string& text, const std::string& key) {
  if (text.find_first_of("*?[{") != std::string::npos) {
    throw DataError(
        fmt::format("{} names '{}', which does not exist{} and matches no file: correct it, or "
                    "fetch the data set",
                    key, text, describe_start(text)));
  }
  throw DataError(
      fmt::format("{} names '{}', which does not exist{}: correct the path, or fetch the data set", key, text,
                  describe_start(text)));
}

std::vector<std::string> list(const std::string& text, std::span<const std::string> extensions,
                              const std::string& key) {
  const std::vector<std::string> parts = split_list(text);
  std::error_code error;
  const bool exists = fs::exists(text, error);
  const bool no_path = error == std::errc::filename_too_long && parts.size() > 1;  // but a list of many
  if (!no_path && fs::is_directory(text)) return files_of_directory(text, extensions, key);
  if (exists) return {text};
  std::vector<std::string> files;
  if (parts.size() == 1) {
    files = matches(text);
    if (files.empty()) fail_missing(text, key);
    return files;
  }
  for (const std::string& part : parts) {
    const std::vector<std::string> more = list(part, extensions, key);
    files.insert(files.end(), more.begin(), more.end());
  }
  return files;
}

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

std::vector<std::string> list_files(const std::string& text, std::span<const std::string> extensions,
                                    const std::string& key) {
  const ArrayPath path = split_array_path(text);
  try {
    std::vector<std::string> files = list(path.file, extensions, key);
    for (std::string& file : files) file += path.inside();
    return files;
  } catch (const fs::filesystem_error& error) {
    throw DataError(
        fmt::format("{}: cannot open '{}': {}", key, error.path1().string(), error.code().message()));
  }
}

bool is_standard_input(const std::string& name) {
  return name == "-";
}

std::vector<std::string> list_input_files(const std::string& text, std::span<const std::string> extensions) {
  if (is_standard_input(text)) return {text};
  return list_files(text, extensions, "--input");
}

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
