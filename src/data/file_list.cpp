#include "lockstep/data/file_list.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>

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

}  // namespace lockstep
