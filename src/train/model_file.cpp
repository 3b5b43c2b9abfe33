#include "lockstep/train/model_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little endian");

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kHeaderAlignment = 8;
constexpr std::size_t kLengthBytes = 8;

std::string make_header(const Layout& layout) {
  Json header;
  header["__metadata__"] = {{"format", "pt"}, {"writer", "lockstep"}};
  Index place = 0;
  for (const ParamInfo& param : layout.params) {
    const Index end = place + param.shape.size() * Index{sizeof(Scalar)};
    header[param.name] = {{"dtype", "F32"}, {"shape", param.shape.dims}, {"data_offsets", {place, end}}};
    place = end;
  }
  std::string text = header.dump();
  while ((kLengthBytes + text.size()) % kHeaderAlignment != 0) text += ' ';
  return text;
}

// One tensor as the file describes it.
struct StoredTensor {
  std::string type;
  Shape shape;
  std::string_view bytes;
};

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& problem) {
  throw DataError(fmt::format("'{}' is not a whole safetensors file: {}", path.string(), problem));
}

StoredTensor read_entry(const std::filesystem::path& path, const std::string& name, const Json& entry,
                        std::string_view data) {
  StoredTensor tensor;
  std::vector<std::uint64_t> offsets;
  try {
    tensor.type = entry.at("dtype").get<std::string>();
    tensor.shape.dims = entry.at("shape").get<std::vector<Index>>();
    offsets = entry.at("data_offsets").get<std::vector<std::uint64_t>>();
  } catch (const Json::exception& error) {
    fail(path, fmt::format("tensor '{}': {}", name, error.what()));
  }
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data.size()) {
    fail(path,
         fmt::format("tensor '{}' claims the bytes [{}] of {}", name, fmt::join(offsets, ", "), data.size()));
  }
  tensor.bytes = data.substr(offsets[0], offsets[1] - offsets[0]);
  return tensor;
}

std::map<std::string, StoredTensor> parse(const std::filesystem::path& path, std::string_view file) {
  if (file.size() < kLengthBytes) fail(path, fmt::format("it has {} bytes", file.size()));
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > file.size() - kLengthBytes) {
    fail(path, fmt::format("its header claims {} bytes, the file has {}", length, file.size()));
  }
  const Json header = Json::parse(file.substr(kLengthBytes, length), nullptr, false);
  if (!header.is_object()) fail(path, "its header is not a JSON object");
  std::map<std::string, StoredTensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    tensors.emplace(name, read_entry(path, name, entry, file.substr(kLengthBytes + length)));
  }
  return tensors;
}

// What keeps the file from filling the layout, one line each.
std::vector<std::string> differences(const Layout& layout, std::map<std::string, StoredTensor> tensors) {
  std::vector<std::string> lines;
  for (const ParamInfo& param : layout.params) {
    const auto found = tensors.find(param.name);
    if (found == tensors.end()) {
      lines.push_back(fmt::format("{}: missing, the model has {}", param.name, to_string(param.shape)));
      continue;
    }
    const StoredTensor& tensor = found->second;
    if (tensor.type != "F32") {
      lines.push_back(fmt::format("{}: expected type F32, found {}", param.name, tensor.type));
    } else if (tensor.shape != param.shape) {
      lines.push_back(fmt::format("{}: the model has {}, the file {}", param.name, to_string(param.shape),
                                  to_string(tensor.shape)));
    } else if (static_cast<Index>(tensor.bytes.size()) != param.shape.size() * Index{sizeof(Scalar)}) {
      lines.push_back(
          fmt::format("{}: {} has {} bytes", param.name, to_string(param.shape), tensor.bytes.size()));
    }
    tensors.erase(found);
  }
  for (const auto& [name, tensor] : tensors) {
    lines.push_back(fmt::format("{}: in the file ({}), not in the model", name, to_string(tensor.shape)));
  }
  return lines;
}

}  // namespace

void save_model(const std::filesystem::path& path, const ParamStore& store) {
  const std::string header = make_header(*store.layout);
  const std::uint64_t length = header.size();
  std::vector<std::string_view> parts{{reinterpret_cast<const char*>(&length), sizeof length}, header};
  for (const ParamInfo& param : store.layout->params) {
    const std::span<const Scalar> values = part(store.values, param.range);
    parts.emplace_back(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  write_file_atomically(path, parts);
}

void load_model(const std::filesystem::path& path, const ParamStore& store) {
  const std::string file = read_file(path);
  const std::map<std::string, StoredTensor> tensors = parse(path, file);
  const std::vector<std::string> lines = differences(*store.layout, tensors);
  if (!lines.empty()) {
    throw DataError(
        fmt::format("'{}' does not fit model.layers:\n  {}", path.string(), fmt::join(lines, "\n  ")));
  }
  for (const ParamInfo& param : store.layout->params) {
    const std::string_view bytes = tensors.at(param.name).bytes;
    std::memcpy(part(store.values, param.range).data(), bytes.data(), bytes.size());
  }
}

}  // namespace lockstep
