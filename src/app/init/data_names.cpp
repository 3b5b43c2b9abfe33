// The files beside a data file that belong to it, found by their names: the labels of its records, and its
// validation and test sets. A name is compared word by word: a word ends where letters do, so that "train" is
// no part of "strain", and "x" stands in "x_train" but not in "index".
#include <algorithm>
#include <filesystem>
#include <regex>

#include "init.h"
#include "lockstep/base/text.h"
#include "lockstep/data/inputs/byte_stream.h"

namespace lockstep {
namespace {

struct Exchange {
  std::string from;
  std::string to;
  bool keeps_case = true;  // X becomes Y, not y
};

// The text with the last word `from` exchanged; nothing if it has no such word.
std::optional<std::string> exchanged(const std::string& text, const Exchange& exchange) {
  const std::regex parts("(.*[^a-zA-Z]|)(" + exchange.from + ")([^a-zA-Z].*|)", std::regex::icase);
  std::smatch found;
  if (!std::regex_match(text, found, parts)) return std::nullopt;
  const std::string to = exchange.keeps_case ? in_case_of(found.str(2), exchange.to) : exchange.to;
  return found.str(1) + to + found.str(3);
}

// In the name of the array, else in that of the file, else in those of its directories.
std::optional<std::string> exchanged_in_path(const std::string& path, const Exchange& exchange) {
  const ArrayPath parts = split_array_path(path);
  if (!parts.array.empty()) {
    if (const auto array = exchanged(parts.array, exchange))
      return parts.file + ArrayPath{parts.file, *array, parts.fields}.inside();
  }
  const std::filesystem::path file = parts.file;
  const std::string array = parts.inside();
  if (const auto name = exchanged(file.filename().string(), exchange))
    return (file.parent_path() / *name).string() + array;
  if (const auto directory = exchanged(file.parent_path().string(), exchange))
    return (std::filesystem::path(*directory) / file.filename()).string() + array;
  return std::nullopt;
}

// Whether an array, file or directory of that name is there ("data.h5:x": that the file has the array).
bool data_exists(const std::string& path) {
  const ArrayPath parts = split_array_path(path);
  std::error_code ignored;
  if (parts.array.empty()) return std::filesystem::exists(parts.file, ignored);
  if (!std::filesystem::is_regular_file(parts.file, ignored)) return false;
  const std::vector<std::string> names = list_arrays(parts.file);
  const std::string name = parts.array.starts_with('/') ? parts.array.substr(1) : parts.array;
  return std::ranges::find(names, name) != names.end();
}

// The first of these exchanges that gives the name of data which are there.
std::optional<std::string> find_partner(const std::string& path, const std::vector<Exchange>& exchanges) {
  for (const Exchange& exchange : exchanges) {
    for (const bool keeps_case : {true, false}) {
      std::optional<std::string> partner = exchanged_in_path(path, {exchange.from, exchange.to, keeps_case});
      if (!partner) continue;
      // MNIST: train-images-idx3-ubyte has its labels in train-labels-idx1-ubyte.
      const std::size_t dimensions = partner->find("idx3");
      if (dimensions != std::string::npos) partner->replace(dimensions, 4, "idx1");
      if (data_exists(*partner)) return partner;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_labels(const std::string& path) {
  return find_partner(path, {{"images", "labels"},
                             {"features", "labels"},
                             {"features", "targets"},
                             {"inputs", "targets"},
                             {"data", "labels"},
                             {"data", "target"},
                             {"x", "y"},
                             {"images", "targets"}});
}

std::optional<std::string> find_lengths(const std::string& path) {
  return find_partner(
      path, {{"x", "lengths"}, {"features", "lengths"}, {"inputs", "lengths"}, {"data", "lengths"}});
}

std::optional<std::string> find_beside(const std::string& path, const std::vector<std::string>& words) {
  for (const char* train : {"train", "training"}) {
    for (const std::string& word : words) {
      const std::optional<std::string> other = exchanged_in_path(path, {train, word});
      if (other && data_exists(*other)) return other;
    }
  }
  return std::nullopt;
}

}  // namespace lockstep
