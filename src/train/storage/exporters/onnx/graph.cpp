#include "graph.h"

#include <fmt/format.h>

#include <bit>
#include <numeric>

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX's raw data is little endian");

constexpr const char* kBatch = "N";
constexpr const char* kPositions = "T";

void describe(onnx::ValueInfoProto& described, const std::string& name, const OnnxValue& value) {
  described.set_name(name);
  if (!value.help.empty()) described.set_doc_string(value.help);
  onnx::TypeProto_Tensor& type = *described.mutable_type()->mutable_tensor_type();
  type.set_elem_type(value.type);
  type.mutable_shape()->add_dim()->set_dim_param(kBatch);
  for (const Index dim : value.sample.dims) type.mutable_shape()->add_dim()->set_dim_value(dim);
  if (value.any_positions) type.mutable_shape()->mutable_dim(1)->set_dim_param(kPositions);
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
  void operator()(const std::string& value) const {
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(value);
  }
  void operator()(const std::vector<Index>& values) const {
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const Index value : values) attribute.add_ints(value);
  }
  void operator()(const std::vector<double>& values) const {
    attribute.set_type(onnx::AttributeProto::FLOATS);
    for (const double value : values) attribute.add_floats(static_cast<float>(value));
  }
  void operator()(const std::vector<std::string>& values) const {
    attribute.set_type(onnx::AttributeProto::STRINGS);
    for (const std::string& value : values) attribute.add_strings(value);
  }
};

}  // namespace

void OnnxGraph::add_input(const OnnxValue& value) {
  inputs_.insert(value.name);
  describe(*proto_.add_input(), value.name, value);
}

std::string OnnxGraph::free_name(std::string name) const {
  while (inputs_.contains(name)) name += '_';
  return name;
}

std::string OnnxGraph::add(const std::string& op_type, const std::vector<std::string>& inputs,
                           const std::vector<OnnxAttribute>& attributes, Index output) {
  onnx::NodeProto& node = add_node(op_type, inputs, attributes);
  for (Index left_out = 0; left_out < output; ++left_out) node.add_output("");
  node.add_output(node.name());
  return node.name();
}

std::string OnnxGraph::add_ml(const std::string& op_type, const std::vector<std::string>& inputs,
                              const std::vector<OnnxAttribute>& attributes) {
  onnx::NodeProto& node = add_node(op_type, inputs, attributes);
  node.set_domain(kOnnxMlDomain);
  node.add_output(node.name());
  return node.name();
}

std::string OnnxGraph::add_output(const OnnxValue& value, const std::string& op_type,
                                  const std::vector<std::string>& inputs,
                                  const std::vector<OnnxAttribute>& attributes) {
  const std::string name = free_name(value.name);
  add_node(op_type, inputs, attributes).add_output(name);
  describe(*proto_.add_output(), name, value);
  return name;
}

std::string OnnxGraph::add_number(double value) {
  const auto scalar = static_cast<Scalar>(value);
  return add_constant(onnx::TensorProto::FLOAT, {}, std::as_bytes(std::span(&scalar, 1)));
}

std::string OnnxGraph::add_double(double value) {
  return add_constant(onnx::TensorProto::DOUBLE, {}, std::as_bytes(std::span(&value, 1)));
}

std::string OnnxGraph::add_list(const std::vector<Index>& values) {
  return add_constant(onnx::TensorProto::INT64, {{std::ssize(values)}}, std::as_bytes(std::span(values)));
}

std::string OnnxGraph::add_doubles(const std::vector<double>& values) {
  return add_constant(onnx::TensorProto::DOUBLE, {{std::ssize(values)}}, std::as_bytes(std::span(values)));
}

std::string OnnxGraph::add_sorted(const std::string& values, Index count) {
  onnx::NodeProto& node =
      add_node("TopK", {values, add_list({count})}, {{"axis", Index{1}}, {"largest", Index{0}}});
  node.add_output(node.name());
  node.add_output(node.name() + "/positions");
  return node.output(0);
}

std::string OnnxGraph::add_one_hot(const std::string& position, onnx::TensorProto_DataType type,
                                   Index positions) {
  std::vector<Index> list(static_cast<std::size_t>(positions));
  std::iota(list.begin(), list.end(), Index{0});
  std::string numbers = add_list(list);
  if (type != onnx::TensorProto::INT64) numbers = cast(numbers, type);
  return cast(add("Equal", {position, numbers}), onnx::TensorProto::FLOAT);
}

std::string OnnxGraph::add_texts(const std::vector<std::string>& values) {
  onnx::TensorProto& tensor =
      add_initializer(unused_name("constant"), onnx::TensorProto::STRING, {{std::ssize(values)}});
  for (const std::string& value : values) tensor.add_string_data(value);
  return tensor.name();
}

std::string OnnxGraph::add_tensor(const std::string& name, const Shape& shape,
                                  std::span<const Scalar> values) {
  onnx::TensorProto& tensor = add_initializer(free_name(name), onnx::TensorProto::FLOAT, shape);
  tensor.set_raw_data(values.data(), values.size_bytes());
  return tensor.name();
}

std::string OnnxGraph::cast(const std::string& value, onnx::TensorProto_DataType type) {
  return add("Cast", {value}, {{"to", Index{type}}});
}

std::string OnnxGraph::unused_name(const std::string& word) {
  const std::string name = fmt::format("{}/{}", path_, word);
  const int uses = ++used_[name];
  return free_name(uses == 1 ? name : fmt::format("{}.{}", name, uses));
}

std::string OnnxGraph::add_constant(onnx::TensorProto_DataType type, const Shape& shape,
                                    std::span<const std::byte> bytes) {
  onnx::TensorProto& tensor = add_initializer(unused_name("constant"), type, shape);
  tensor.set_raw_data(bytes.data(), bytes.size());
  return tensor.name();
}

onnx::TensorProto& OnnxGraph::add_initializer(const std::string& name, onnx::TensorProto_DataType type,
                                              const Shape& shape) {
  onnx::TensorProto& tensor = *proto_.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const Index dim : shape.dims) tensor.add_dims(dim);
  return tensor;
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
