#include "lockstep/data/inputs/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "lockstep/base/embedded_text.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// Files that other programs write and that no format reads, with the way to convert them.
struct ForeignFile {
  std::string name;
  std::vector<std::string> ends;  // endings of paths
  std::string start;              // first bytes of the content; "" where nothing tells it apart
  std::string convert;            // a command, in which {0} is the path, or what else to do
};

// "d0 cf 11 e0".
std::string bytes_of(const std::string& hexadecimal) {
  std::istringstream in(hexadecimal);
  std::string bytes;
  for (int byte = 0; in >> std::hex >> byte;) bytes += static_cast<char>(byte);
  return bytes;
}

const std::vector<ForeignFile>& foreign_files() {
  static const std::vector<ForeignFile> kFiles = [] {
    std::vector<ForeignFile> files;
    for (const TextEntry& entry : embedded_entries("texts/foreign-files.txt")) {
      files.push_back({.name = entry.name,
                       .ends = entry.get_words("ends"),
                       .start = entry.get("start") + bytes_of(entry.get("bytes")),
                       .convert = entry.get("convert")});
    }
    return files;
  }();
  return kFiles;
}

}  // namespace

bool has_known_start(const std::string& path) {
  return std::ranges::any_of(foreign_files(), [&](const ForeignFile& file) {
    return ends_as(path, file.ends) && !file.start.empty();
  });
}

std::string describe_foreign(const std::string& path, std::string_view start) {
  const auto fits = [&](const ForeignFile& file) {
    return start.empty() ? ends_as(path, file.ends) : !file.start.empty() && start.starts_with(file.start);
  };
  const auto found = std::ranges::find_if(foreign_files(), fits);
  if (found == foreign_files().end()) return "";
  return fmt::format("{}: {}", found->name, fmt::format(fmt::runtime(found->convert), path));
}

}  // namespace lockstep
