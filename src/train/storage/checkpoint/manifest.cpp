#include "lockstep/train/storage/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/json.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr const char* kChecksumKey = "xxh3";
constexpr const char* kManifestKey = "checkpoint";
constexpr const char* kPartsKey = "parts";

constexpr std::array kTypes{
    std::pair{DataType::kByte, "byte"},
    std::pair{DataType::kInt64, "int64"},
    std::pair{DataType::kFloat, "float32"},
    std::pair{DataType::kDouble, "float64"},
};

std::string name_of(DataType type) {
  return std::ranges::find(kTypes, type, [](const auto& entry) { return entry.first; })->second;
}

DataType array_type(const std::string& name) {
  const auto found = std::ranges::find(kTypes, name, [](const auto& entry) { return entry.second; });
  if (found == kTypes.end()) throw DataError("{} is no type of an array", in_quotes(name));
  return found->first;
}

std::string hex(std::uint64_t number) {
  return fmt::format("{:016x}", number);
}

std::uint64_t from_hex(const std::string& text) {
  std::size_t used = 0;
  std::uint64_t number = 0;
  try {
    number = std::stoull(text, &used, 16);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size()) throw DataError("{} is no checksum", in_quotes(text));
  return number;
}

// Adds a checksum to the content, over its text without any space.
std::string sealed(const char* key, const Json& content) {
  return Json{{kChecksumKey, hex(hash_text(content.dump()))}, {key, content}}.dump(1) + "\n";
}

const Json& unsealed(const char* key, const Json& json) {
  const Json& content = json.at(key);
  error_if<DataError>(from_hex(json.at(kChecksumKey).get<std::string>()) != hash_text(content.dump()),
                      "it does not have the checksum that it states");
  return content;
}

Json parts_json(const CheckpointParts& parts) {
  Json files = Json::object();
  for (const auto& [name, file] : parts.files) {
    Json checksums = Json::array();
    for (const std::uint64_t checksum : file.checksums) checksums.push_back(hex(checksum));
    files[name] = {{"bytes", file.bytes}, {"xxh3_of_each_4_mib", checksums}};
  }
  Json arrays = Json::object();
  for (const auto& [name, array] : parts.arrays) {
    Json blocks = Json::array();
    for (const CheckpointBlock& block : array.blocks) {
      blocks.push_back({{"begin", block.range.begin},
                        {"end", block.range.end},
                        {"file", block.file},
                        {"offset", block.offset}});
    }
    arrays[name] = {{"type", name_of(array.type)}, {"size", array.size}, {"blocks", blocks}};
  }
  return {{"files", files}, {"arrays", arrays}};
}

// A file of the checkpoint's own directory, whatever somebody wrote here.
void check_name(const std::string& name) {
  const bool plain = !name.empty() && name.front() != '.' &&
                     name.find_first_of(std::string("/\\\0", 3)) == std::string::npos;
  if (!plain) throw DataError("{} is no name of a file in a checkpoint", in_quotes(name));
}

CheckpointFile parse_file(const std::string& name, const Json& json) {
  check_name(name);
  CheckpointFile file;
  file.bytes = whole_number(json.at("bytes"));
  for (const Json& checksum : json.at("xxh3_of_each_4_mib")) {
    file.checksums.push_back(from_hex(checksum.get<std::string>()));
  }
  const Index wanted = file.bytes < 0 ? -1 : file.bytes / kCheckedBytes + (file.bytes % kCheckedBytes != 0);
  error_if<DataError>(wanted != std::ssize(file.checksums), "{}: {} bytes do not have {} checksums",
                      in_quotes(name), file.bytes, file.checksums.size());
  return file;
}

CheckpointArray parse_array(const std::string& name, const Json& json, const CheckpointParts& parts) {
  CheckpointArray array{.type = array_type(json.at("type").get<std::string>()),
                        .size = whole_number(json.at("size")),
                        .blocks = {}};
  const Index element = size_of(array.type);
  Index end = 0;
  for (const Json& entry : json.at("blocks")) {
    const CheckpointBlock block{.range = {whole_number(entry.at("begin")), whole_number(entry.at("end"))},
                                .file = entry.at("file").get<std::string>(),
                                .offset = whole_number(entry.at("offset"))};
    const auto file = parts.files.find(block.file);
    const bool in_order =
        block.range.begin >= end && block.range.end > block.range.begin && block.range.end <= array.size;
    // The order of these conditions keeps the arithmetic from overflow.
    const bool fits = in_order && file != parts.files.end() && block.offset >= 0 &&
                      block.offset <= file->second.bytes &&
                      block.range.size() <= (file->second.bytes - block.offset) / element;
    error_if<DataError>(!fits, "array {} claims the elements {} to {} of {} in {} from byte {} on",
                        in_quotes(name), block.range.begin, block.range.end, array.size,
                        in_quotes(block.file), block.offset);
    end = block.range.end;
    array.blocks.push_back(block);
  }
  return array;
}

CheckpointParts parse_parts(const Json& json) {
  CheckpointParts parts;
  for (const auto& [name, file] : json.at("files").items()) parts.files[name] = parse_file(name, file);
  for (const auto& [name, array] : json.at("arrays").items()) {
    parts.arrays[name] = parse_array(name, array, parts);
  }
  return parts;
}

Json fingerprint_json(const Fingerprint& fingerprint) {
  Json parts = Json::array();
  for (const std::uint64_t part : fingerprint.parts) parts.push_back(hex(part));
  return {{"of", fingerprint.kind}, {"parts", parts}};
}

Fingerprint parse_fingerprint(const Json& json) {
  Fingerprint fingerprint{.kind = json.at("of").get<std::string>(), .parts = {}};
  for (const Json& part : json.at("parts")) fingerprint.parts.push_back(from_hex(part.get<std::string>()));
  return fingerprint;
}

Json header_json(const CheckpointHeader& header) {
  Json json{{"step", header.progress.steps},   {"samples_seen", header.progress.samples},
            {"epoch", header.progress.epochs}, {"metrics_bytes", header.metrics_bytes},
            {"evaluated", header.evaluated},   {"seconds", header.seconds},
            {"ranks", header.ranks},           {"strategy", header.strategy},
            {"algorithm", header.algorithm},   {"data", header.data},
            {"versions", header.versions},     {"incomplete_files", header.incomplete_files}};
  if (!header.fingerprint.kind.empty()) json["fingerprint"] = fingerprint_json(header.fingerprint);
  return json;
}

CheckpointHeader parse_progress_header(const Json& json) {
  CheckpointHeader header{.progress = {.steps = whole_number(json.at("step")),
                                       .samples = whole_number(json.at("samples_seen")),
                                       .epochs = json.at("epoch").get<double>()},
                          .metrics_bytes = whole_number(json.at("metrics_bytes")),
                          .evaluated = json.at("evaluated").get<bool>(),
                          .seconds = json.at("seconds").get<double>(),
                          .ranks = whole_number(json.at("ranks")),
                          .strategy = json.at("strategy").get<std::string>(),
                          .algorithm = json.at("algorithm").get<std::string>(),
                          .data = json.at("data").get<std::string>(),
                          .fingerprint = {},
                          .versions = json.at("versions").get<std::map<std::string, std::string>>(),
                          .incomplete_files = json.at("incomplete_files").get<std::vector<std::string>>()};
  if (json.contains("fingerprint")) header.fingerprint = parse_fingerprint(json.at("fingerprint"));
  error_if<DataError>(header.progress.steps < 0 || header.progress.samples < 0 || header.metrics_bytes < 0,
                      "a count is negative");
  return header;
}

template <class Work>
auto parse(const std::string& text, const std::string& name, const Work& work) {
  try {
    return read_json<Json>(text, work);
  } catch (const DataError& error) {
    throw DataError("'{}' is damaged: {}", name, error.what());
  }
}

void read_bytes(const std::filesystem::path& path, Index offset, std::byte* to, Index bytes) {
  check_regular_file(path);
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  in.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(bytes));
  error_if<DataError>(!in, "cannot read {} bytes from byte {} on of '{}': {}", bytes, offset, path.string(),
                      std::strerror(errno));
}

}  // namespace

void CheckpointParts::add(const CheckpointParts& other) {
  for (const auto& [name, part] : other.files) {
    CheckpointFile& file = files[name];
    file.bytes += part.bytes;
    file.checksums.insert(file.checksums.end(), part.checksums.begin(), part.checksums.end());
  }
  for (const auto& [name, array] : other.arrays) {
    CheckpointArray& whole =
        arrays.try_emplace(name, CheckpointArray{array.type, array.size, {}}).first->second;
    whole.blocks.insert(whole.blocks.end(), array.blocks.begin(), array.blocks.end());
    std::ranges::sort(whole.blocks, {}, [](const CheckpointBlock& block) { return block.range.begin; });
  }
}

std::string to_json(const CheckpointParts& parts) {
  return sealed(kPartsKey, parts_json(parts));
}

std::string to_json(const CheckpointManifest& manifest) {
  Json content{{"format", kFormat}};
  content.update(header_json(manifest.header));
  content.update(parts_json(manifest.parts));
  return sealed(kManifestKey, content);
}

CheckpointParts parse_parts(const std::string& text, const std::string& name) {
  return parse(text, name, [](const Json& json) { return parse_parts(unsealed(kPartsKey, json)); });
}

CheckpointManifest parse_manifest(const std::string& text, const std::string& name) {
  return parse(text, name, [](const Json& json) {
    const Json& content = unsealed(kManifestKey, json);
    const Index format = whole_number(content.at("format"));
    error_if<DataError>(format != kFormat, "it has format {}, this program reads format {}", format, kFormat);
    return CheckpointManifest{parse_progress_header(content), parse_parts(content)};
  });
}

void refuse_missing(const std::filesystem::path& path) {
  std::error_code unknown;
  if (std::filesystem::status(path, unknown).type() != std::filesystem::file_type::not_found) return;
  throw DataError("'{}' is missing", path.string());
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
    error_if<DataError>(found.bytes != wanted.bytes, "'{}' has {} bytes, {} says {}",
                        (directory_ / name).string(), found.bytes, kManifestName, wanted.bytes);
    for (std::size_t block = 0; block < wanted.checksums.size(); ++block) {
      if (found.checksums[block] == wanted.checksums[block]) continue;
      const Index begin = static_cast<Index>(block) * kCheckedBytes;
      throw DataError("'{}' is damaged between byte {} and {}: the checksum is {:016x}, {} says {:016x}",
                      (directory_ / name).string(), begin, std::min(begin + kCheckedBytes, wanted.bytes),
                      found.checksums[block], kManifestName, wanted.checksums[block]);
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
    error_if<DataError>(found == manifest_.parts.arrays.end(), "'{}' has no array '{}'", directory_.string(),
                        part.array);
    const CheckpointArray& array = found->second;
    error_if<DataError>(array.size != part.size || array.type != part.memory.type,
                        "'{}': array '{}' has {} elements of {} bytes, expected {} of {}",
                        directory_.string(), part.array, array.size, size_of(array.type), part.size,
                        size_of(part.memory.type));
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
    error_if<DataError>(filled != part.range.size(), "'{}': array '{}' has {} of the elements {} to {}",
                        directory_.string(), part.array, filled, part.range.begin, part.range.end);
  }
  return missing;
}

}  // namespace lockstep
