#include "onnx_evaluator.h"
#include "support/common.h"

namespace lockstep::test {
namespace {

// The attributes of a node, with the defaults of the standard.
class Attributes {
 public:
  explicit Attributes(const onnx::NodeProto& node) {
    for (const onnx::AttributeProto& attribute : node.attribute()) left_[attribute.name()] = &attribute;
  }

  Index whole(const std::string& name, Index missing) {
    const onnx::AttributeProto* found = take(name, onnx::AttributeProto::INT);
    return found == nullptr ? missing : found->i();
  }
  double number(const std::string& name, double missing) {
    const onnx::AttributeProto* found = take(name, onnx::AttributeProto::FLOAT);
    return found == nullptr ? missing : double{found->f()};
  }
  List list(const std::string& name, const List& missing) {
    const onnx::AttributeProto* found = take(name, onnx::AttributeProto::INTS);
    return found == nullptr ? missing : List(found->ints().begin(), found->ints().end());
  }
  std::vector<float> floats(const std::string& name) {
    const onnx::AttributeProto* found = take(name, onnx::AttributeProto::FLOATS);
    return found == nullptr ? std::vector<float>()
                            : std::vector<float>(found->floats().begin(), found->floats().end());
  }
  std::vector<std::string> texts(const std::string& name) {
    const onnx::AttributeProto* found = take(name, onnx::AttributeProto::STRINGS);
    return found == nullptr ? std::vector<std::string>()
                            : std::vector<std::string>(found->strings().begin(), found->strings().end());
  }
  std::string text(const std::string& name, const std::string& missing) {
    const onnx::AttributeProto* found = take(name, onnx::AttributeProto::STRING);
    return found == nullptr ? missing : found->s();
  }
  void expect_no_more() const {
    if (!left_.empty()) throw std::invalid_argument("an unknown attribute: " + left_.begin()->first);
  }

 private:
  const onnx::AttributeProto* take(const std::string& name, onnx::AttributeProto::AttributeType type) {
    const auto found = left_.find(name);
    if (found == left_.end()) return nullptr;
    const onnx::AttributeProto* attribute = found->second;
    left_.erase(found);
    if (attribute->type() != type) throw std::invalid_argument("an attribute of another type: " + name);
    return attribute;
  }

  std::map<std::string, const onnx::AttributeProto*> left_;
};

std::size_t axis_of(const OnnxTensor& x, Index axis) {
  return static_cast<std::size_t>(axis < 0 ? axis + std::ssize(x.dims) : axis);
}

List whole_numbers(const OnnxTensor& tensor) {
  return {tensor.values.begin(), tensor.values.end()};
}

Windows windows_of(const List& kernel, Attributes& attributes, bool dilated) {
  const List ones(kernel.size(), 1);
  return {.kernel = kernel,
          .strides = attributes.list("strides", ones),
          .pads = attributes.list("pads", List(2 * kernel.size(), 0)),
          .dilations = dilated ? attributes.list("dilations", ones) : ones};
}

// One window over all of the axes behind the channels.
Windows global_windows(const OnnxTensor& x) {
  const List kernel(x.dims.begin() + 2, x.dims.end());
  return {.kernel = kernel,
          .strides = List(kernel.size(), 1),
          .pads = List(2 * kernel.size(), 0),
          .dilations = List(kernel.size(), 1)};
}

const std::map<std::string, std::function<double(double)>>& functions() {
  static const std::map<std::string, std::function<double(double)>> kFunctions{
      {"Identity", [](double x) { return x; }},
      {"Relu", [](double x) { return std::max(x, 0.0); }},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Tanh", [](double x) { return std::tanh(x); }},
      {"Softplus", [](double x) { return std::log1p(std::exp(x)); }},
      {"Erf", [](double x) { return std::erf(x); }},
      {"Sqrt", [](double x) { return std::sqrt(x); }},
      {"Exp", [](double x) { return std::exp(x); }},
      {"Abs", [](double x) { return std::abs(x); }},
      {"Log", [](double x) { return std::log(x); }},
      {"Sin", [](double x) { return std::sin(x); }},
      {"Cos", [](double x) { return std::cos(x); }},
      {"Floor", [](double x) { return std::floor(x); }},
      {"IsNaN", [](double x) { return std::isnan(x) ? 1.0 : 0.0; }},
      {"Sign", [](double x) { return x > 0 ? 1.0 : (x < 0 ? -1.0 : 0.0); }}};
  return kFunctions;
}

const std::map<std::string, std::function<double(double, double)>>& pair_functions() {
  static const std::map<std::string, std::function<double(double, double)>> kFunctions{
      {"Add", std::plus<>()},        {"Sum", std::plus<>()},
      {"Sub", std::minus<>()},       {"Mul", std::multiplies<>()},
      {"Div", std::divides<>()},     {"Equal", std::equal_to<>()},
      {"Greater", std::greater<>()}, {"GreaterOrEqual", std::greater_equal<>()}};
  return kFunctions;
}

OnnxTensor cast(const OnnxTensor& x, Index to) {
  if (to == onnx::TensorProto::INT64) return each(x, [](double value) { return std::trunc(value); });
  if (to != onnx::TensorProto::FLOAT) return x;
  return each(x, [](double value) { return static_cast<double>(static_cast<float>(value)); });
}

// The numbers of texts.
OnnxTensor encoded(const OnnxTensor& x, Attributes& attributes) {
  const std::vector<std::string> keys = attributes.texts("keys_strings");
  const std::vector<float> values = attributes.floats("values_floats");
  const double missing = attributes.number("default_float", -0.0);
  OnnxTensor result{.dims = x.dims, .values = {}};
  for (const std::string& text : x.texts) {
    const auto key = std::ranges::find(keys, text);
    result.values.push_back(
        key == keys.end() ? missing : double{values.at(static_cast<std::size_t>(key - keys.begin()))});
  }
  return result;
}

// ---- the table
// ---------------------------------------------------------------------------------------------

using Operation = std::function<OnnxTensor(const Tensors&, Attributes&)>;

const std::map<std::string, Operation>& operations() {
  static const std::map<std::string, Operation> kOperations{
      {"LeakyRelu",
       [](const Tensors& in, Attributes& attributes) {
         const double alpha = attributes.number("alpha", 0.01);
         return each(in[0], [&](double x) { return x < 0 ? alpha * x : x; });
       }},
      {"Elu",
       [](const Tensors& in, Attributes& attributes) {
         const double alpha = attributes.number("alpha", 1);
         return each(in[0], [&](double x) { return x < 0 ? alpha * std::expm1(x) : x; });
       }},
      {"Cast",
       [](const Tensors& in, Attributes& attributes) { return cast(in[0], attributes.whole("to", 0)); }},
      {"LabelEncoder", [](const Tensors& in, Attributes& attributes) { return encoded(in[0], attributes); }},
      {"Where", [](const Tensors& in, Attributes&) { return chosen(in[0], in.at(1), in.at(2)); }},
      {"ArgMax",
       [](const Tensors& in, Attributes& attributes) {
         if (attributes.whole("keepdims", 1) != 0 ||
             axis_of(in[0], attributes.whole("axis", 0)) != in[0].dims.size() - 1)
           throw std::invalid_argument("an axis that is not known here");
         return largest(in[0]);
       }},
      {"TopK",
       [](const Tensors& in, Attributes& attributes) {
         const Index count = in[0].dims.back();
         if (attributes.whole("largest", 1) != 0 || static_cast<Index>(in.at(1).values.at(0)) != count ||
             axis_of(in[0], attributes.whole("axis", -1)) != in[0].dims.size() - 1)
           throw std::invalid_argument("a choice that is not known here");
         OnnxTensor result = in[0];
         for (auto row = result.values.begin(); row != result.values.end(); row += count)
           std::sort(row, row + count);
         return result;
       }},
      {"Reshape", [](const Tensors& in, Attributes&) { return reshaped(in[0], whole_numbers(in.at(1))); }},
      {"Shape",
       [](const Tensors& in, Attributes&) {
         return OnnxTensor{.dims = {std::ssize(in[0].dims)},
                           .values = {in[0].dims.begin(), in[0].dims.end()}};
       }},
      {"Flatten", [](const Tensors& in,
                     Attributes& attributes) { return flattened(in[0], attributes.whole("axis", 1)); }},
      {"Unsqueeze",
       [](const Tensors& in, Attributes&) { return unsqueezed(in[0], whole_numbers(in.at(1))); }},
      {"Transpose", [](const Tensors& in,
                       Attributes& attributes) { return transposed(in[0], attributes.list("perm", {})); }},
      {"Concat",
       [](const Tensors& in, Attributes& attributes) {
         return concatenated(in, axis_of(in[0], attributes.whole("axis", 0)));
       }},
      {"Slice",
       [](const Tensors& in, Attributes&) {
         const auto number = [&](std::size_t input) { return static_cast<Index>(in.at(input).values.at(0)); };
         return sliced(in[0], number(1), number(2), axis_of(in[0], number(3)));
       }},
      {"Gather",
       [](const Tensors& in, Attributes& attributes) {
         if (attributes.whole("axis", 0) != 0) throw std::invalid_argument("an axis that is not known here");
         return gathered(in[0], in.at(1));
       }},
      {"Gemm", [](const Tensors& in,
                  Attributes& attributes) { return gemm(in, attributes.whole("transB", 0) != 0); }},
      {"MatMul", [](const Tensors& in, Attributes&) { return multiplied(in[0], in.at(1)); }},
      {"Clip",
       [](const Tensors& in, Attributes&) {
         const double least = in.at(1).values.at(0);
         const double most = in.at(2).values.at(0);
         return each(in[0], [&](double x) { return std::clamp(x, least, most); });
       }},
      {"ReduceLogSumExp",
       [](const Tensors& in, Attributes& attributes) {
         const OnnxTensor powers = each(in[0], [](double x) { return std::exp(x); });
         return each(sum(powers, attributes.list("axes", {})), [](double x) { return std::log(x); });
       }},
      {"LogSoftmax",
       [](const Tensors& in, Attributes& attributes) {
         return each(softmax(in[0], axis_of(in[0], attributes.whole("axis", -1))),
                     [](double x) { return std::log(x); });
       }},
      {"ReduceMean",
       [](const Tensors& in, Attributes& attributes) { return mean(in[0], attributes.list("axes", {})); }},
      {"ReduceSum", [](const Tensors& in, Attributes&) { return sum(in[0], whole_numbers(in.at(1))); }},
      {"GlobalAveragePool",
       [](const Tensors& in, Attributes&) { return average_pooled(in[0], global_windows(in[0]), false); }},
      {"GlobalMaxPool",
       [](const Tensors& in, Attributes&) { return max_pooled(in[0], global_windows(in[0])); }},
      {"Softmax",
       [](const Tensors& in, Attributes& attributes) {
         return softmax(in[0], axis_of(in[0], attributes.whole("axis", -1)));
       }},
      {"BatchNormalization",
       [](const Tensors& in, Attributes& attributes) {
         return batch_normalised(in, attributes.number("epsilon", 1e-5));
       }},
      {"Conv",
       [](const Tensors& in, Attributes& attributes) {
         const List kernel(in.at(1).dims.begin() + 2, in.at(1).dims.end());
         return convolved(in, windows_of(kernel, attributes, true), attributes.whole("group", 1));
       }},
      {"MaxPool",
       [](const Tensors& in, Attributes& attributes) {
         return max_pooled(in[0], windows_of(attributes.list("kernel_shape", {}), attributes, true));
       }},
      {"AveragePool", [](const Tensors& in, Attributes& attributes) {
         return average_pooled(in[0], windows_of(attributes.list("kernel_shape", {}), attributes, false),
                               attributes.whole("count_include_pad", 0) != 0);
       }}};
  return kOperations;
}

// Operations whose inputs, but for a condition, have one type, which is that of the result.
bool keeps_type(const std::string& operation) {
  return operation == "Where" || operation == "Concat" || operation == "Gemm" ||
         pair_functions().contains(operation);
}

int type_of(const onnx::NodeProto& node, const Tensors& in) {
  const std::string& operation = node.op_type();
  const std::size_t first = operation == "Where" ? 1 : 0;
  if (keeps_type(operation)) {
    for (std::size_t i = first; i < in.size(); ++i) {
      if (in[i].type != in[first].type) throw std::invalid_argument("numbers of two types: " + node.name());
    }
  }
  if (operation == "Equal" || operation == "Greater" || operation == "GreaterOrEqual" || operation == "IsNaN")
    return onnx::TensorProto::BOOL;
  if (operation == "ArgMax" || operation == "Shape") return onnx::TensorProto::INT64;
  if (operation == "LabelEncoder") return onnx::TensorProto::FLOAT;
  if (operation == "Cast") return static_cast<int>(node.attribute(0).i());
  return in.at(first).type;
}

// Its first output, or its second where that is the only one with a name.
OnnxTensor recurrent_result(const onnx::NodeProto& node, const Tensors& in, Attributes& attributes) {
  const bool is_lstm = node.op_type() == "LSTM";
  const std::string direction = attributes.text("direction", "forward");
  if (in.at(1).dims.at(0) != (direction == "bidirectional" ? 2 : 1))
    throw std::invalid_argument("weights of other directions than " + direction);
  if (!is_lstm && attributes.whole("linear_before_reset", 0) != 1)
    throw std::invalid_argument("a reset that is not known here");
  return recurrent(in, attributes.whole("hidden_size", 0), is_lstm, node.output(0).empty());
}

OnnxTensor result_of(const onnx::NodeProto& node, const Tensors& in) {
  if ((node.op_type() == "LabelEncoder") != (node.domain() == "ai.onnx.ml"))
    throw std::invalid_argument("an operation of another domain: " + node.op_type());
  Attributes attributes(node);
  OnnxTensor result;
  if (node.op_type() == "LSTM" || node.op_type() == "GRU") {
    result = recurrent_result(node, in, attributes);
  } else if (const auto function = functions().find(node.op_type()); function != functions().end()) {
    result = each(in.at(0), function->second);
  } else if (const auto pair = pair_functions().find(node.op_type()); pair != pair_functions().end()) {
    result = in.at(0);
    for (std::size_t i = 1; i < in.size(); ++i) result = pairwise(result, in[i], pair->second);
  } else if (const auto found = operations().find(node.op_type()); found != operations().end()) {
    result = found->second(in, attributes);
  } else {
    throw std::invalid_argument("an operation that is not known here: " + node.op_type());
  }
  attributes.expect_no_more();
  result.type = type_of(node, in);
  return result;
}

template <class Number>
OnnxTensor read(const onnx::TensorProto& tensor) {
  std::vector<Number> numbers(tensor.raw_data().size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), tensor.raw_data().data(), tensor.raw_data().size());
  OnnxTensor result;
  for (const Number number : numbers) result.values.push_back(static_cast<double>(number));
  return result;
}

OnnxTensor constant(const onnx::TensorProto& tensor) {
  OnnxTensor result;
  switch (tensor.data_type()) {
    case onnx::TensorProto::INT64:
      result = read<Index>(tensor);
      break;
    case onnx::TensorProto::DOUBLE:
      result = read<double>(tensor);
      break;
    case onnx::TensorProto::STRING:
      result.texts.assign(tensor.string_data().begin(), tensor.string_data().end());
      break;
    default:
      result = read<float>(tensor);
      break;
  }
  result.dims.assign(tensor.dims().begin(), tensor.dims().end());
  result.type = tensor.data_type();
  return result;
}

}  // namespace

OnnxValues evaluate(const onnx::GraphProto& graph, const OnnxValues& inputs) {
  OnnxValues values = inputs;
  for (const onnx::TensorProto& tensor : graph.initializer()) values[tensor.name()] = constant(tensor);
  for (const onnx::NodeProto& node : graph.node()) {
    Tensors in;
    for (const std::string& name : node.input()) in.push_back(name.empty() ? OnnxTensor{} : values.at(name));
    values[node.output(node.output(0).empty() ? 1 : 0)] = result_of(node, in);
  }
  return values;
}

OnnxValues evaluate(const onnx::GraphProto& graph, const OnnxTensor& input) {
  return evaluate(graph, OnnxValues{{graph.input(0).name(), input}});
}

}  // namespace lockstep::test
