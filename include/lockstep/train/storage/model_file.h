// Weights as a safetensors file: 8 bytes of header length (little endian), a JSON header that gives each
// tensor's type, shape and byte range, then the tensors. Readable by Python's safetensors and by ten lines of
// numpy. Format: https://github.com/huggingface/safetensors
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/inputs/byte_stream.h"
#include "lockstep/math/shape.h"
#include "lockstep/nn/model.h"

namespace lockstep {

/// Facts about a model that its file keeps beside the tensors, as texts by name.
using ModelFacts = std::map<std::string, std::string>;

/// The probability from which on the model says yes, and the measure that it was chosen by.
inline constexpr const char* kThresholdFact = "threshold";
inline constexpr const char* kThresholdMeasureFact = "threshold_measure";
/// The class that is yes, of two.
inline constexpr const char* kPositiveFact = "positive";
/// The number that the outputs of a calibrated model are divided by.
inline constexpr const char* kTemperatureFact = "temperature";

/// The beginning of a model file: the length of its header, and the header. `layout`: as for ModelBytes.
std::string model_file_head(const Layout& layout, const Shape& input, const ModelFacts& facts = {});

/// The content of a model file: all tensors, in order of the arena, as F32, and the shape of one sample of
/// the model's input, so that the model can be built again without its data. The same weights and facts give
/// the same bytes. Refers to the values.
class ModelBytes : NoCopy {
 public:
  /// `layout`: of the weights and, behind them, the running moments.
  ModelBytes(const Layout& layout, const ModelValues& values, const Shape& input,
             const ModelFacts& facts = {});

  /// The parts of the file in the order in which they are written.
  std::span<const std::string_view> parts() const { return parts_; }
  Index size() const;
  /// Copies a range of them.
  void copy(Range bytes, std::byte* to) const;

 private:
  std::string head_;
  std::vector<std::string_view> parts_;
};

/// Writes such a file. Errors: DataError.
void save_model(const std::filesystem::path& path, const ParamStore& store, const Shape& input,
                const ModelFacts& facts = {});

/// One tensor as a file describes it.
struct StoredTensor {
  std::string type;
  Shape shape;
  Range bytes;  ///< its bytes in the file
};

/// The name of a tensor in a file that another program wrote, and how it lies there.
struct TensorSource {
  std::string name;
  bool transposed = false;  ///< a matrix: in x out
  bool first_rows = false;  ///< the file may have more rows
};

/// The tensors of a GPT-2 as Hugging Face's transformers writes it, for those of a model of the preset gpt's
/// layers, in its order. Errors: ConfigError if `model` has not as many as such a model, or computes
/// something else with them.
std::vector<TensorSource> gpt2_sources(const Model& model);

/// A safetensors file, written here or elsewhere. Only its header is held in memory.
class ModelFile {
 public:
  /// Reads the header. Errors: DataError if the file cannot be read, is not whole, or if its tensors overlap
  /// or leave holes.
  explicit ModelFile(const std::filesystem::path& path);

  /// The input of the model that save_model() wrote down. Errors: DataError if the file comes from elsewhere.
  Shape input() const;
  /// A text that the file has under this name; nothing if it has none.
  std::optional<std::string> fact(const std::string& name) const;
  /// The temperature of a calibrated model. Errors: DataError if it is no number above 0.
  std::optional<Scalar> temperature() const;
  /// From here on tensors of `layout` have the names in the file that `texts`, as train.init_rename has them,
  /// say. Errors: ConfigError if one is no such text or renames nothing, or if two tensors would be one of
  /// the file; DataError if the file has none of the tensors that a text names.
  void rename(const Layout& layout, const std::vector<std::string>& texts);
  /// From here on tensors of `model` have the names and the order of numbers that `program` writes, as
  /// train.init_map says. Errors: ConfigError if no such program is known, or if `model` is none of its kind;
  /// DataError if the file has a head of its own, and the model shares the embedding.
  void apply_map(const std::string& program, const Model& model);
  /// The reasons why the file cannot fill the layout, one line for each missing, surplus and misshapen
  /// tensor.
  std::vector<std::string> differences(const Layout& layout) const;
  /// Fills the tensors that the file has in the right type and shape, and leaves the others as they are.
  /// Gives the number of tensors filled. Errors: DataError if the file cannot be read on, or a running
  /// variance is negative or not finite.
  Index fill(const ParamStore& store) const;
  /// Fills all tensors of a model, or of a stage of it: the file must fit the layout `whole`. Errors:
  /// DataError naming the file and what does not fit: every missing, surplus and misshapen tensor is listed,
  /// and nothing is changed; those of fill().
  void load(const Layout& whole, const ParamStore& store) const;

 private:
  TensorSource source_of(const ParamInfo& param) const;

  std::filesystem::path path_;
  std::unique_ptr<ByteStream> file_;
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::string, TensorSource> sources_;  // of tensors of ours that lie differently in the file
  ModelFacts facts_;                             // all texts of its metadata
};

}  // namespace lockstep
