// An ONNX graph in the making. Nodes and constants get names that start with those of their layers.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/math/shape.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {

/// Name of the operations for machine learning, in nodes and in the list of what a file uses.
inline constexpr const char* kOnnxMlDomain = "ai.onnx.ml";

/// An input or an output of the graph, [N, dims].
struct OnnxValue {
  std::string name;
  Shape sample;
  onnx::TensorProto_DataType type = onnx::TensorProto::FLOAT;
  std::string help = {};       ///< for people
  bool any_positions = false;  ///< [N, T, ...]: any number of positions up to the first of its dims
};

class OnnxGraph final : public OnnxNodes {
 public:
  /// Borrows.
  explicit OnnxGraph(onnx::GraphProto& proto) : proto_(proto) {}

  /// The names that follow start with "PATH/".
  void begin_layer(const std::string& path) { path_ = path; }
  /// Inputs come before all else: they keep their names, whatever these are.
  void add_input(const OnnxValue& value);
  /// `name`, unless an input has it: then with underscores behind.
  std::string free_name(std::string name) const;
  std::string add(const std::string& op_type, const std::vector<std::string>& inputs,
                  const std::vector<OnnxAttribute>& attributes = {}, Index output = 0) override;
  /// A node of the operations for machine learning, ai.onnx.ml.
  std::string add_ml(const std::string& op_type, const std::vector<std::string>& inputs,
                     const std::vector<OnnxAttribute>& attributes);
  /// A node whose output is one of the graph, under its free_name(), which is given.
  std::string add_output(const OnnxValue& value, const std::string& op_type,
                         const std::vector<std::string>& inputs,
                         const std::vector<OnnxAttribute>& attributes = {});
  std::string add_number(double value) override;
  std::string add_list(const std::vector<Index>& values) override;
  /// A constant of one number (double), or of a list of numbers (double) or of texts.
  std::string add_double(double value);
  std::string add_doubles(const std::vector<double>& values);
  std::string add_texts(const std::vector<std::string>& values);
  /// A float for each position from 0 on, [N, positions]: 1 at that of `position`, [N, 1] of `type`, else 0.
  std::string add_one_hot(const std::string& position, onnx::TensorProto_DataType type, Index positions);
  /// The rows of `values`, [N, count], each in rising order.
  std::string add_sorted(const std::string& values, Index count);
  /// Numbers under the free_name() of `name`, which is given.
  std::string add_tensor(const std::string& name, const Shape& shape, std::span<const Scalar> values);
  /// The value as another type.
  std::string cast(const std::string& value, onnx::TensorProto_DataType type);

 private:
  std::string unused_name(const std::string& word);
  std::string add_constant(onnx::TensorProto_DataType type, const Shape& shape,
                           std::span<const std::byte> bytes);
  onnx::TensorProto& add_initializer(const std::string& name, onnx::TensorProto_DataType type,
                                     const Shape& shape);
  onnx::NodeProto& add_node(const std::string& op_type, const std::vector<std::string>& inputs,
                            const std::vector<OnnxAttribute>& attributes);

  onnx::GraphProto& proto_;
  std::string path_;
  std::set<std::string> inputs_;
  std::map<std::string, int> used_;
};

}  // namespace lockstep
