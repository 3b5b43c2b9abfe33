// The list of data formats, and the choice of one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/inputs/byte_stream.h"
#include "lockstep/data/inputs/foreign.h"

namespace lockstep {
namespace {

const FormatEntry* find_by_extension(const std::string& name) {
  const std::string path = split_array_path(name).file;
  for (const FormatEntry& entry : format_catalog()) {
    if (ends_as(path, entry.extensions)) return &entry;
  }
  return nullptr;
}

// The format of the first file, by name, whose end is known; that of a text where there are no others.
const FormatEntry* find_in_directory(const std::string& path) {
  std::error_code ignored;  // opening the files gives the reason
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(path, ignored)) files.push_back(file.path());
  std::ranges::sort(files);
  const FormatEntry* text = nullptr;  // a README says nothing of the data beside it
  for (const std::string& file : files) {
    const FormatEntry* entry = find_by_extension(file);
    if (entry != nullptr && entry->name != "text") return entry;
    if (entry != nullptr) text = entry;
  }
  return text;
}

const FormatEntry* find_by_name(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    if (const FormatEntry* entry = find_in_directory(path)) return entry;
  }
  return find_by_extension(path);
}

// Errors: DataError if `path` is a directory without files.
void refuse_empty_directory(const std::string& key, const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored) || !std::filesystem::is_empty(path, ignored)) return;
  throw DataError("{} names '{}', a directory without files", key, path);
}

// Errors: ConfigError if the end of `path` is that of a file which other programs can convert.
void refuse_foreign(const std::string& key, const std::string& path) {
  const std::string foreign = describe_foreign(path);
  if (!foreign.empty()) throw ConfigError("{} names '{}', {}", key, path, foreign);
}

std::string known_extensions() {
  std::vector<std::string> known;
  for (const FormatEntry& entry : format_catalog()) {
    for (const std::string& extension : entry.extensions)
      known.push_back(fmt::format("{} ({})", extension, entry.name));
  }
  return fmt::format("{}", fmt::join(known, ", "));
}

}  // namespace

// Each stands in formats/.
FormatEntry cifar10_format();
FormatEntry cifar100_format();
FormatEntry csv_format();
FormatEntry hdf5_format();
FormatEntry idx_format();
FormatEntry libsvm_format();
FormatEntry numpy_format();
FormatEntry raw_format();
FormatEntry synthetic_format();
FormatEntry text_format();

std::span<const FormatEntry> format_catalog() {
  static const std::vector<FormatEntry> catalog = {
      csv_format(),  text_format(),    libsvm_format(),   idx_format(), numpy_format(),
      hdf5_format(), cifar10_format(), cifar100_format(), raw_format(), synthetic_format()};
  return catalog;
}

const FormatEntry& choose_format(const DataOptions& options) {
  const std::span<const FormatEntry> catalog = format_catalog();
  if (!options.format.empty()) return find_entry(catalog, "data format", options.format);
  if (const FormatEntry* entry = find_by_name(options.train)) return *entry;
  const std::vector<std::string> names = catalog_names(catalog);
  error_if(
      options.train.empty(),
      "neither data.train nor data.format is set: name the file to train on, or set data.format to one of {}",
      fmt::join(names, ", "));
  refuse_empty_directory("data.train", options.train);
  refuse_foreign("data.train", options.train);
  throw ConfigError(
      "the end of '{}' does not tell its format: give --data.format text for plain text, --data.format csv "
      "for a table, or another one of {} (known ends: {})",
      options.train, fmt::join(names, ", "), known_extensions());
}

const FormatEntry& format_of_input(const std::string& path, const DataOptions& options) {
  if (const FormatEntry* entry = find_by_name(path)) return *entry;
  const bool told_by_content = !options.format.empty() && has_known_start(path);
  if (!told_by_content) refuse_foreign("--input", path);
  if (!options.format.empty()) {
    const FormatEntry& entry = choose_format(options);
    if (entry.has_files) return entry;
  }
  refuse_empty_directory("--input", path);
  throw ConfigError("the end of --input '{}' does not tell its format: rename it (known ends: {})", path,
                    known_extensions());
}

}  // namespace lockstep
