#include "graph.h"

#include <fmt/format.h>

#include <bit>

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX's raw data is little endian");

constexpr const char* kBatch = "N";

void describe(onnx::ValueInfoProto& value, const std::string& name, const Shape& sample) {
  value.set_name(name);
  onnx::TypeProto_Tensor& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_param(kBatch);
  for (const Index dim : sample.dims) type.mutable_shape()->add_dim()->set_dim_value(dim);
}

struct AttributeWriter {
  onnx::AttributeProto& attribute;

  void operator()(Index value) const {
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }
  void operator()(double value) const {
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(static_cast<float>(value));
  }
  void operator()(const std::vector<Index>& values) const {
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const Index value : values) attribute.add_ints(value);
  }
};

void set_bytes(onnx::TensorProto& tensor, std::span<const std::byte> bytes) {
  tensor.set_raw_data(bytes.data(), bytes.size());
}

}  // namespace

void OnnxGraph::add_input(const std::string& name, const Shape& sample) {
  describe(*proto_.add_input(), name, sample);
}

std::string OnnxGraph::add(const std::string& op_type, const std::vector<std::string>& inputs,
                           const std::vector<OnnxAttribute>& attributes) {
  onnx::NodeProto& node = add_node(op_type, inputs, attributes);
  node.add_output(node.name());
  return node.name();
}

void OnnxGraph::add_output(const std::string& name, const Shape& sample, const std::string& op_type,
                           const std::string& input, const std::vector<OnnxAttribute>& attributes) {
  add_node(op_type, {input}, attributes).add_output(name);
  describe(*proto_.add_output(), name, sample);
}

std::string OnnxGraph::add_number(double value) {
  const std::string name = unused_name("constant");
  const auto scalar = static_cast<Scalar>(value);
  add_tensor(name, {}, {&scalar, 1});
  return name;
}

std::string OnnxGraph::add_list(const std::vector<Index>& values) {
  onnx::TensorProto& tensor = *proto_.add_initializer();
  tensor.set_name(unused_name("constant"));
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(std::ssize(values));
  set_bytes(tensor, std::as_bytes(std::span(values)));
  return tensor.name();
}

void OnnxGraph::add_tensor(const std::string& name, const Shape& shape, std::span<const Scalar> values) {
  onnx::TensorProto& tensor = *proto_.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const Index dim : shape.dims) tensor.add_dims(dim);
  set_bytes(tensor, std::as_bytes(values));
}

std::string OnnxGraph::unused_name(const std::string& word) {
  const std::string name = fmt::format("{}/{}", path_, word);
  const int uses = ++used_[name];
  return uses == 1 ? name : fmt::format("{}.{}", name, uses);
}

onnx::NodeProto& OnnxGraph::add_node(const std::string& op_type, const std::vector<std::string>& inputs,
                                     const std::vector<OnnxAttribute>& attributes) {
  onnx::NodeProto& node = *proto_.add_node();
  node.set_op_type(op_type);
  node.set_name(unused_name(op_type));
  for (const std::string& input : inputs) node.add_input(input);
  for (const auto& [name, value] : attributes) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    std::visit(AttributeWriter{attribute}, value);
  }
  return node;
}

}  // namespace lockstep
