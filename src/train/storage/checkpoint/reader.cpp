#include "lockstep/train/storage/checkpoint/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/train/storage/checkpoint/directory.h"

namespace lockstep {
namespace {

void read_bytes(const std::filesystem::path& path, Index offset, std::byte* to, Index bytes) {
  check_regular_file(path);
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  in.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(bytes));
  if (!in) {
    throw DataError(fmt::format("cannot read {} bytes from byte {} on of '{}': {}", bytes, offset,
                                path.string(), std::strerror(errno)));
  }
}

}  // namespace

void refuse_missing(const std::filesystem::path& path) {
  std::error_code unknown;
  if (std::filesystem::status(path, unknown).type() != std::filesystem::file_type::not_found) return;
  throw DataError(fmt::format("'{}' is missing", path.string()));
}

CheckpointReader::CheckpointReader(std::filesystem::path directory)
    : directory_(std::move(directory)),
      manifest_(
          parse_manifest(read_file(directory_ / kManifestName), (directory_ / kManifestName).string())) {}

void CheckpointReader::verify(Index ranks, Index rank) const {
  Index number = 0;
  for (const auto& [name, wanted] : manifest_.parts.files) {
    if (number++ % ranks != rank) continue;
    const CheckpointFile found = describe_file(directory_ / name);
    if (found.bytes != wanted.bytes) {
      throw DataError(fmt::format("'{}' has {} bytes, {} says {}", (directory_ / name).string(), found.bytes,
                                  kManifestName, wanted.bytes));
    }
    for (std::size_t block = 0; block < wanted.checksums.size(); ++block) {
      if (found.checksums[block] == wanted.checksums[block]) continue;
      const Index begin = static_cast<Index>(block) * kCheckedBytes;
      throw DataError(
          fmt::format("'{}' is damaged between byte {} and {}: the checksum is {:016x}, {} says "
                      "{:016x}",
                      (directory_ / name).string(), begin, std::min(begin + kCheckedBytes, wanted.bytes),
                      found.checksums[block], kManifestName, wanted.checksums[block]));
    }
  }
}

void CheckpointReader::refuse_missing_files() const {
  for (const auto& [name, file] : manifest_.parts.files) refuse_missing(directory_ / name);
}

std::string CheckpointReader::text(const std::string& name) const {
  return manifest_.parts.files.contains(name) ? read_file(directory_ / name) : "";
}

std::vector<std::string> CheckpointReader::fill(const SavedState& state) const {
  std::vector<std::string> missing;
  for (const SavedPart& part : state) {
    const auto found = manifest_.parts.arrays.find(part.array);
    if (found == manifest_.parts.arrays.end() && part.optional) {
      missing.push_back(part.array);
      continue;
    }
    if (found == manifest_.parts.arrays.end()) {
      throw DataError(fmt::format("'{}' has no array '{}'", directory_.string(), part.array));
    }
    const CheckpointArray& array = found->second;
    if (array.size != part.size || array.type != part.memory.type) {
      throw DataError(fmt::format("'{}': array '{}' has {} elements of {} bytes, expected {} of {}",
                                  directory_.string(), part.array, array.size, size_of(array.type), part.size,
                                  size_of(part.memory.type)));
    }
    const Index element = size_of(array.type);
    Index filled = 0;
    for (const CheckpointBlock& block : array.blocks) {
      const Range common = intersect(block.range, part.range);
      if (common.empty()) continue;
      read_bytes(directory_ / block.file, block.offset + (common.begin - block.range.begin) * element,
                 static_cast<std::byte*>(part.memory.data) + (common.begin - part.range.begin) * element,
                 common.size() * element);
      filled += common.size();
    }
    if (filled != part.range.size()) {
      throw DataError(fmt::format("'{}': array '{}' has {} of the elements {} to {}", directory_.string(),
                                  part.array, filled, part.range.begin, part.range.end));
    }
  }
  return missing;
}

}  // namespace lockstep
