// An ONNX graph in the making. Nodes and constants get names that start with those of their layers.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/math/shape.h"

namespace lockstep {

/// "axis" and what it is.
using OnnxAttribute = std::pair<std::string, std::variant<Index, double, std::vector<Index>>>;

class OnnxGraph {
 public:
  /// Borrows.
  explicit OnnxGraph(onnx::GraphProto& proto) : proto_(proto) {}

  /// The names that follow start with "PATH/".
  void begin_layer(const std::string& path) { path_ = path; }
  /// A float input [N, dims].
  void add_input(const std::string& name, const Shape& sample);
  /// A node; gives the name of its output.
  std::string add(const std::string& op_type, const std::vector<std::string>& inputs,
                  const std::vector<OnnxAttribute>& attributes = {});
  /// A node whose output, float [N, dims], is one of the graph, called `name`.
  void add_output(const std::string& name, const Shape& sample, const std::string& op_type,
                  const std::string& input, const std::vector<OnnxAttribute>& attributes = {});
  /// One number (float), or a list of whole numbers (int64).
  std::string add_number(double value);
  std::string add_list(const std::vector<Index>& values);
  /// Numbers under a name of their own.
  void add_tensor(const std::string& name, const Shape& shape, std::span<const Scalar> values);

 private:
  std::string unused_name(const std::string& word);
  onnx::NodeProto& add_node(const std::string& op_type, const std::vector<std::string>& inputs,
                            const std::vector<OnnxAttribute>& attributes);

  onnx::GraphProto& proto_;
  std::string path_;
  std::map<std::string, int> used_;
};

}  // namespace lockstep
