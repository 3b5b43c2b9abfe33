#include "lockstep/train/storage/model_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/math/kernels.h"
#include "lockstep/math/matrix.h"

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little endian");

// Sorted by name. (The library's ordered kind looks through all names for each one that it adds.)
using SortedJson = nlohmann::json;

struct NamedRange {
  std::string name;  // name of a tensor
  Range bytes;       // its bytes in the file
};

constexpr std::uint64_t kHeaderAlignment = 8;
constexpr Index kLengthBytes = 8;
// Facts (a threshold, its measure, a temperature) take blanks away: plans know how long the file will be.
constexpr std::size_t kFactBytes = 128;
// The part of it for a class that is yes. Plans know its name, so what is longer has a place of its own.
constexpr std::size_t kNameBytes = 10;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the format's own library
constexpr const char* kMetadata = "__metadata__";       // texts by name
constexpr std::string_view kVariance = ".running_var";
constexpr std::string_view kCounter =
    ".num_batches_tracked";                               // PyTorch's BatchNorm: not needed with a momentum
constexpr const char* kInputShape = "input_shape";        // "[28,28]"
constexpr const char* kInputSequence = "input_sequence";  // there if these are positions and channels

std::string make_header(const Layout& layout, const Shape& input, const ModelFacts& facts) {
  using Ordered = nlohmann::ordered_json;
  std::vector<std::string> members;
  const auto add = [&](const std::string& name, const Ordered& value) {
    members.push_back(fmt::format("{}:{}", Ordered(name).dump(), value.dump()));
  };
  Ordered metadata{{"format", "pt"}, {"writer", "lockstep"}, {kInputShape, SortedJson(input.dims).dump()}};
  if (input.sequence) metadata[kInputSequence] = "true";
  const std::size_t before = metadata.dump().size();
  for (const auto& [name, text] : facts) metadata[name] = text;
  add(kMetadata, metadata);
  Index offset = 0;
  for (const ParamInfo& param : layout.params) {
    const Index end = offset + param.shape.size() * Index{sizeof(Scalar)};
    add(param.name, {{"dtype", "F32"}, {"shape", param.shape.dims}, {"data_offsets", {offset, end}}});
    offset = end;
  }
  std::string text = fmt::format("{{{}}}", fmt::join(members, ","));
  const auto positive = facts.find(kPositiveFact);
  const std::size_t name = positive == facts.end() ? 0 : Ordered(positive->second).dump().size();
  const std::size_t room = kFactBytes + name - std::min(kNameBytes, name);
  text.append(room - std::min(room, metadata.dump().size() - before), ' ');
  while ((kLengthBytes + text.size()) % kHeaderAlignment != 0) text += ' ';
  return text;
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& problem) {
  throw DataError("'{}' is not a whole safetensors file: {}", path.string(), problem);
}

// Errors: DataError if a file that is no safetensors file starts as those that torch.save writes.
void refuse_pickle(const std::filesystem::path& path, std::string_view start) {
  if (!start.starts_with("PK\x03\x04") && !start.starts_with("\x80\x02")) return;
  throw DataError(
      "'{}' is no safetensors file but a pickle or a zip archive, as torch.save writes them: write the "
      "weights with safetensors.torch.save_file(model.state_dict(), 'weights.safetensors')",
      path.string());
}

SortedJson parse_header(const std::filesystem::path& path, std::string_view text) {
  try {
    return parse_json<SortedJson>(text);
  } catch (const DataError& error) {
    fail(path, fmt::format("its header: {}", error.what()));
  }
}

StoredTensor read_entry(const std::filesystem::path& path, const std::string& name, const SortedJson& entry,
                        Range data) {
  StoredTensor tensor;
  std::vector<Index> offsets;
  try {
    tensor.type = entry.at("dtype").get<std::string>();
    tensor.shape.dims = whole_numbers(entry.at("shape"));
    offsets = whole_numbers(entry.at("data_offsets"));
  } catch (const std::exception& error) {
    fail(path, fmt::format("tensor {}: {}", in_quotes(name), error.what()));
  }
  if (offsets.size() != 2 || offsets[0] < 0 || offsets[0] > offsets[1] || offsets[1] > data.size()) {
    fail(path, fmt::format("tensor {} claims the bytes [{}] of {}", in_quotes(name),
                           excerpt(fmt::format("{}", fmt::join(offsets, ", "))), data.size()));
  }
  tensor.bytes = {data.begin + offsets[0], data.begin + offsets[1]};
  return tensor;
}

// Each byte of `data` belongs to one tensor: else a number of one is changed with another, or the file holds
// more than it says.
void check_ranges(const std::filesystem::path& path, std::vector<NamedRange> tensors, Range data) {
  std::ranges::sort(tensors, {},
                    [](const NamedRange& tensor) { return std::pair(tensor.bytes.begin, tensor.bytes.end); });
  Index end = data.begin;
  std::string before = "its header";
  for (const NamedRange& tensor : tensors) {
    if (tensor.bytes.begin < end) {
      fail(path, fmt::format("the tensors {} and {} overlap", before, in_quotes(tensor.name)));
    }
    if (tensor.bytes.begin > end) {
      fail(path, fmt::format("no tensor has the {} bytes between {} and {}",
                             with_commas(tensor.bytes.begin - end), before, in_quotes(tensor.name)));
    }
    end = tensor.bytes.end;
    before = in_quotes(tensor.name);
  }
  if (end < data.end) {
    fail(path,
         fmt::format("no tensor has its last {} bytes, behind {}", with_commas(data.end - end), before));
  }
}

void read_all(ByteStream& file, const std::filesystem::path& path, Index offset, std::span<std::byte> bytes) {
  file.go_to(offset);
  const Index found = file.read(bytes);
  if (found == std::ssize(bytes)) return;
  fail(path,
       fmt::format("it became shorter while it was read: it ends {} bytes behind byte {}", found, offset));
}

// All sizes that the file claims are compared with its own before anything of that size is made.
std::string read_header(ByteStream& file, const std::filesystem::path& path, Index size) {
  if (size < kLengthBytes) fail(path, fmt::format("it has {} bytes", size));
  std::uint64_t length = 0;
  read_all(file, path, 0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > static_cast<std::uint64_t>(size - kLengthBytes)) {
    refuse_pickle(path, {reinterpret_cast<const char*>(&length), kLengthBytes});
    fail(path, fmt::format("its header claims {} bytes, the file has {}", length, size));
  }
  if (length > kMaxHeaderBytes) {
    fail(path, fmt::format("its header claims {} bytes, the format allows {}", length, kMaxHeaderBytes));
  }
  std::string header(length, '\0');
  read_all(file, path, kLengthBytes, std::as_writable_bytes(std::span(header)));
  return header;
}

bool all_variances(std::span<const Scalar> values) {
  return std::ranges::all_of(values, [](Scalar value) { return value >= 0 && std::isfinite(value); });
}

// Why the tensor cannot fill `param`; "" if it can.
std::string misfit(const ParamInfo& param, const TensorSource& source, const StoredTensor& tensor) {
  if (tensor.type != "F32") return fmt::format("expected type F32, found {}", excerpt(tensor.type));
  Shape found = tensor.shape;
  if (source.transposed) std::ranges::reverse(found.dims);
  if (source.first_rows && !found.dims.empty()) found.dims[0] = std::min(found.dims[0], param.shape.dims[0]);
  if (found != param.shape) {
    return fmt::format("the model has {}, the file {}{}", to_string(param.shape),
                       excerpt(to_string(tensor.shape)), source.transposed ? " (in x out)" : "");
  }
  if (tensor.bytes.size() != tensor.shape.size() * Index{sizeof(Scalar)}) {
    return fmt::format("{} has {} bytes", to_string(tensor.shape), tensor.bytes.size());
  }
  return "";
}

// One of train.init_rename. The names have a dot behind them, so that what fits a tensor begins its name.
struct Renaming {
  std::string ours = {};
  std::string theirs = {};
  std::optional<std::string> last = {};  // the last name in the file that it makes
  bool found = false;                    // one of these in the file
};

// Sorted so that of several that fit a tensor the longest comes first; the last fits all and changes nothing.
std::vector<Renaming> parse_renamings(const std::vector<std::string>& texts) {
  const auto dotted = [](std::string_view name) { return name.empty() ? "" : fmt::format("{}.", name); };
  std::vector<Renaming> renamings;
  for (const std::string_view text : texts) {
    const std::size_t sign = text.find('=');
    error_if(sign == text.npos,
             "train.init_rename has {}: expected a name of ours, = and theirs, as in \"0=encoder.lstm\"",
             in_quotes(text));
    const std::string_view ours = trimmed(text.substr(0, sign));
    error_if(std::ranges::count(renamings, dotted(ours), &Renaming::ours) > 0,
             "train.init_rename has two names for {}", in_quotes(ours));
    renamings.push_back({.ours = dotted(ours), .theirs = dotted(trimmed(text.substr(sign + 1)))});
  }
  renamings.push_back({.found = true});
  std::ranges::stable_sort(renamings, [](const auto& a, const auto& b) { return a.ours > b.ours; });
  return renamings;
}

}  // namespace

std::string model_file_head(const Layout& layout, const Shape& input, const ModelFacts& facts) {
  const std::string header = make_header(layout, input, facts);
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header;
}

ModelBytes::ModelBytes(const Layout& layout, const ModelValues& values, const Shape& input,
                       const ModelFacts& facts)
    : head_(model_file_head(layout, input, facts)) {
  parts_.emplace_back(head_);
  const Index weights = std::ssize(values.weights);
  for (const ParamInfo& param : layout.params) {
    const Range range = param.range;
    const std::span<const Scalar> tensor =
        range.begin < weights ? part(values.weights, range)
                              : part(values.state, {range.begin - weights, range.end - weights});
    parts_.emplace_back(reinterpret_cast<const char*>(tensor.data()), tensor.size_bytes());
  }
}

Index ModelBytes::size() const {
  Index size = 0;
  for (const std::string_view part : parts_) size += std::ssize(part);
  return size;
}

void ModelBytes::copy(Range bytes, std::byte* to) const {
  Index begin = 0;
  for (const std::string_view part : parts_) {
    const Range common = intersect(bytes, {begin, begin + std::ssize(part)});
    if (!common.empty()) {
      std::memcpy(to, part.data() + (common.begin - begin), static_cast<std::size_t>(common.size()));
      to += common.size();
    }
    begin += std::ssize(part);
  }
}

void save_model(const std::filesystem::path& path, const ParamStore& store, const Shape& input,
                const ModelFacts& facts) {
  const ModelBytes bytes(*store.layout, {.weights = store.values, .state = {}}, input, facts);
  write_file_atomically(path, bytes.parts());
}

ModelFile::ModelFile(const std::filesystem::path& path)
    : path_(path), file_(std::make_unique<ByteStream>(path.string(), Packing::kNone)) {
  const Index size = file_->max_bytes();
  const std::string text = read_header(*file_, path, size);
  const SortedJson header = parse_header(path, text);
  if (!header.is_object()) fail(path, "its header is not a JSON object");
  const Range data{kLengthBytes + std::ssize(text), size};
  std::vector<NamedRange> ranges;
  for (const auto& [name, entry] : header.items()) {
    if (name != kMetadata) {
      StoredTensor tensor = read_entry(path, name, entry, data);
      ranges.push_back({name, tensor.bytes});
      if (!name.ends_with(kCounter)) tensors_.emplace(name, std::move(tensor));
    } else if (entry.is_object()) {
      for (const auto& [fact, value] : entry.items()) {
        if (value.is_string()) facts_[fact] = value.get<std::string>();
      }
    }
  }
  check_ranges(path, std::move(ranges), data);
}

std::optional<std::string> ModelFile::fact(const std::string& name) const {
  const auto found = facts_.find(name);
  if (found == facts_.end()) return std::nullopt;
  return found->second;
}

Shape ModelFile::input() const {
  const std::string input = fact(kInputShape).value_or("");
  error_if<DataError>(input.empty(),
                      "'{}' does not say what the input of its model is: it was not written by Lockstep; to "
                      "train from these weights, give them as train.init",
                      path_.string());
  try {
    return {.dims = whole_numbers(parse_json<SortedJson>(input)),
            .sequence = fact(kInputSequence).has_value()};
  } catch (const std::exception& error) {
    fail(path_, fmt::format("{} is {}: {}", kInputShape, excerpt(input), error.what()));
  }
}

std::optional<Scalar> ModelFile::temperature() const {
  const std::optional<std::string> text = fact(kTemperatureFact);
  if (!text) return std::nullopt;
  const std::optional<Scalar> value = number_in<Scalar>(*text);
  if (!value || !std::isfinite(*value) || *value <= 0) {
    fail(path_, fmt::format("{} is {}: expected a number above 0", kTemperatureFact, excerpt(*text)));
  }
  return value;
}

void ModelFile::rename(const Layout& layout, const std::vector<std::string>& texts) {
  std::vector<Renaming> renamings = parse_renamings(texts);
  std::vector<std::string> ours;
  std::map<std::string, std::string> owners;  // by name in the file
  for (const ParamInfo& param : layout.params) {
    ours.push_back(param.name);
    const std::string dotted = param.name + ".";
    Renaming& renaming = *std::ranges::find_if(
        renamings, [&dotted](const Renaming& each) { return dotted.starts_with(each.ours); });
    std::string name = renaming.theirs + dotted.substr(renaming.ours.size());
    if (!name.empty()) name.pop_back();
    const auto [owner, is_new] = owners.emplace(name, param.name);
    error_if(!is_new, "train.init_rename: {} and {} would both be {} of the file", owner->second, param.name,
             in_quotes(name));
    renaming.found = renaming.found || tensors_.contains(name);
    renaming.last = name;
    sources_[param.name] = {.name = name};
  }
  std::vector<std::string> theirs;
  for (const auto& [name, tensor] : tensors_) theirs.push_back(name);
  for (const Renaming& each : renamings) {
    if (each.found) continue;
    const std::string_view key = std::string_view(each.ours).substr(0, each.ours.size() - 1);
    if (!each.last) {
      throw ConfigError("train.init_rename: {} renames no tensor of the model, which has {}{}",
                        in_quotes(key), listed(ours), suggestion(key, ours));
    }
    throw DataError("train.init_rename: '{}' has no tensor {}, but {}{}", path_.string(),
                    in_quotes(*each.last), listed(theirs), suggestion(*each.last, theirs));
  }
}

void ModelFile::apply_map(const std::string& program, const Model& model) {
  error_if(program != "gpt2", "train.init_map must be gpt2, found {}", in_quotes(program));
  std::vector<TensorSource> sources = gpt2_sources(model);
  const bool is_part = tensors_.contains("transformer.wte.weight");
  const bool shares = sources.back().name != "lm_head.weight";
  const auto bytes_of = [&](const std::string& name) {
    const auto found = tensors_.find(name);
    std::string bytes(found == tensors_.end() ? 0 : static_cast<std::size_t>(found->second.bytes.size()),
                      '\0');
    if (!bytes.empty())
      read_all(*file_, path_, found->second.bytes.begin, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  };
  error_if<DataError>(
      shares && tensors_.contains("lm_head.weight") &&
          bytes_of("lm_head.weight") != bytes_of(is_part ? "transformer.wte.weight" : "wte.weight"),
      "'{}': lm_head.weight differs from wte.weight, and the model shares the embedding: leave tie=0 out",
      path_.string());
  // Masks are no weights, and a head that shares the embedding is stored once or twice.
  const auto is_extra = [&](const std::string& name) {
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
           (name == "lm_head.weight" && shares);
  };
  std::erase_if(tensors_, [&](const auto& named) { return is_extra(named.first); });
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (is_part && sources[i].name != "lm_head.weight") sources[i].name.insert(0, "transformer.");
    sources_[model.layout().params[i].name] = sources[i];
  }
}

TensorSource ModelFile::source_of(const ParamInfo& param) const {
  const auto found = sources_.find(param.name);
  return found == sources_.end() ? TensorSource{.name = param.name} : found->second;
}

std::vector<std::string> ModelFile::differences(const Layout& layout) const {
  std::vector<std::string> lines;
  std::map<std::string, StoredTensor> surplus = tensors_;
  for (const ParamInfo& param : layout.params) {
    const TensorSource source = source_of(param);
    const auto found = tensors_.find(source.name);
    const std::string problem = found == tensors_.end() ? "missing, the model has " + to_string(param.shape)
                                                        : misfit(param, source, found->second);
    const std::string theirs =
        source.name == param.name ? "" : fmt::format(" ({} in the file)", excerpt(source.name));
    if (!problem.empty()) lines.push_back(fmt::format("{}{}: {}", param.name, theirs, problem));
    surplus.erase(source.name);
  }
  for (const auto& [name, tensor] : surplus) {
    lines.push_back(fmt::format("{}: in the file ({}), not in the model", excerpt(name),
                                excerpt(to_string(tensor.shape))));
  }
  return lines;
}

Index ModelFile::fill(const ParamStore& store) const {
  Index filled = 0;
  for (const ParamInfo& param : store.layout->params) {
    const TensorSource source = source_of(param);
    const auto found = tensors_.find(source.name);
    if (found == tensors_.end() || !misfit(param, source, found->second).empty()) continue;
    const std::span<Scalar> values = part(store.values, param.range);
    read_all(*file_, path_, found->second.bytes.begin, std::as_writable_bytes(values));
    if (source.transposed) {
      const std::vector<Scalar> read(values.begin(), values.end());
      const Index out = param.shape.dims[0];
      transpose(as_matrix(std::span(read), std::ssize(read) / out, out), values.data(),
                std::ssize(read) / out);
    }
    error_if<DataError>(param.name.ends_with(kVariance) && !all_variances(values),
                        "'{}': {} holds a number that is no variance: negative, or not finite",
                        path_.string(), param.name);
    ++filled;
  }
  return filled;
}

void ModelFile::load(const Layout& whole, const ParamStore& store) const {
  const std::vector<std::string> lines = differences(whole);
  error_if<DataError>(!lines.empty(), "'{}' does not fit model.layers:\n  {}", path_.string(),
                      first_lines(lines));
  fill(store);
}

}  // namespace lockstep
