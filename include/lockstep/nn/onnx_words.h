// The words of ONNX for layers: each says in its own file, by Layer::add_to(), which nodes of a graph compute
// what it does in evaluation. Nothing here needs a library of ONNX, so that a build without one has the same
// layers.
//
// In Lockstep an image has its channels last, in ONNX first: inside the graph an image is [N, channels,
// height, width], and any other sample, a sequence too, [N, dims] as it is.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/math/shape.h"
#include "lockstep/nn/layer.h"

namespace lockstep {

/// "axis" and what it is.
using OnnxAttribute = std::pair<std::string, std::variant<Index, double, std::string, std::vector<Index>,
                                                          std::vector<double>, std::vector<std::string>>>;

/// Types, as the attribute "to" of Cast has them.
inline constexpr Index kOnnxFloat = 1;
inline constexpr Index kOnnxInt32 = 6;
inline constexpr Index kOnnxInt64 = 7;

/// A graph in the making, as far as a layer adds to it.
class OnnxNodes {
 public:
  virtual ~OnnxNodes() = default;
  /// A node of an operation of opset 13; gives the name of its output: of those that the
  /// operation has only this one.
  virtual std::string add(const std::string& op_type, const std::vector<std::string>& inputs,
                          const std::vector<OnnxAttribute>& attributes = {}, Index output = 0) = 0;
  /// A constant: one number (float), or a list of whole numbers (int64).
  virtual std::string add_number(double value) = 0;
  virtual std::string add_list(const std::vector<Index>& values) = 0;

  std::string reshape(const std::string& value, const std::vector<Index>& dims) {
    return add("Reshape", {value, add_list(dims)});
  }
  std::string transpose(const std::string& value, const std::vector<Index>& order) {
    return add("Transpose", {value}, {{"perm", order}});
  }
  /// One vector of each sample.
  std::string flatten(const std::string& value) { return add("Flatten", {value}, {{"axis", Index{1}}}); }
};

/// A layer on its way into a graph, with the names that things have there.
struct OnnxLayer {
  std::vector<Shape> in;             ///< shapes of the inputs, as the layer takes them
  std::vector<std::string> inputs;   ///< in the order inside the graph
  std::vector<std::string> tensors;  ///< its weights in the order in which it declares them
  std::vector<std::string> state;    ///< likewise
  std::string lengths = {};          ///< positions of each record that count, int64 [N]; "": all do
  std::vector<Index> counted = {};   ///< as many of them count at its input, for each length of a record
};

/// The words of a layer that is one operation without attributes, of all its inputs.
using OnnxFunction = std::function<std::string(OnnxNodes&, const OnnxLayer&)>;
OnnxFunction onnx_operation(const char* op_type);

std::vector<std::string> joined_names(std::vector<std::string> names, const std::vector<std::string>& more);

/// From [N, dims], in the order of data files, to the order inside the graph.
std::string onnx_ordered(OnnxNodes& graph, const std::string& value, const Shape& sample);

/// From the order inside the graph to [N, size], in the order of data files.
std::string onnx_rows(OnnxNodes& graph, const std::string& value, const Shape& sample);

/// From the order inside the graph to [N, size], in that order.
std::string onnx_flat(OnnxNodes& graph, const std::string& value, const Shape& sample);

/// A sequence, [N, positions, channels], with its channels first, as convolution and pooling want them there;
/// or from that order back.
std::string onnx_swapped(OnnxNodes& graph, const std::string& value);

/// The part of `value` that `range` is along an axis.
std::string onnx_slice(OnnxNodes& graph, const std::string& value, Range range, Index axis);

/// Its first input, a sequence, with `fill` where positions do not count: what stands there is lost, even
/// NaN.
std::string onnx_masked(OnnxNodes& graph, const OnnxLayer& layer, double fill = 0);

/// How many positions a sequence in the graph has, int64 [1]: perhaps fewer than the layers are made for.
std::string onnx_positions(OnnxNodes& graph, const std::string& sequence);

/// The first rows of `table`, as many as the sequence has positions.
std::string onnx_first_rows(OnnxNodes& graph, const std::string& table, const std::string& sequence);

/// How many positions of its input count, int64 [N, 1]. Requires lengths.
std::string onnx_lengths(OnnxNodes& graph, const OnnxLayer& layer);

/// Whether each position of its input counts, bool [N, positions, 1]. Requires lengths.
std::string onnx_counted(OnnxNodes& graph, const OnnxLayer& layer);

/// Axes inside the graph, that of the batch included.
Index onnx_rank(const Shape& sample);

/// The axis that the last dimension of a sample has inside the graph.
Index onnx_last_axis(const Shape& sample);

}  // namespace lockstep
