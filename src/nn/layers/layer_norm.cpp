// layer_norm: y = weight (x - mean) / sqrt(variance + eps) + bias, with the moments of the sample itself (Ba,
// Kiros & Hinton 2016). rms_norm takes no mean and adds no bias (Zhang & Sennrich 2019).
#include <cmath>

#include "layer_parts.h"
#include "lockstep/math/eigen_matrix.h"

namespace lockstep {
namespace {

// Moments of one sample.
struct SampleMoments {
  Scalar mean;
  Scalar factor;  // 1 / sqrt(variance + eps)
};

class LayerNorm final : public Layer {
 public:
  LayerNorm(TermArguments& arguments, bool centres)
      : eps_(arguments.take_number("eps", 1e-5)), centres_(centres) {
    if (!(eps_ > 0)) throw ConfigError("eps must be above 0, found {}", eps_);
  }

  // The tensors have the order of PyTorch, an image channel by channel, so that its LayerNorm loads them.
  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    const Shape& in = inputs.front();
    size_ = in.size();
    pixels_ = size_;
    Shape tensor = in;
    if (const std::optional<ImageShape> image = as_image(in)) {
      pixels_ = image->pixels();
      channels_ = image->channels;
      tensor = {{channels_, image->height, image->width}};
    }
    weight_ = params.declare(
        {.name = "weight", .shape = tensor, .decays = false, .initialiser = Initialiser::kOne});
    if (centres_) bias_ = params.declare({.name = "bias", .shape = tensor, .decays = false});
    return {.out = in, .cache_size = 2, .flops = 8 * size_};
  }

  void forward(const ForwardArgs& args) const override {
    const RowMajorMatrix weight = in_sample_order(part(args.weights, weight_));
    const RowMajorMatrix bias = centres_ ? in_sample_order(part(args.weights, bias_))
                                         : RowMajorMatrix(RowMajorMatrix::Zero(pixels_, channels_));
    for (Index row = 0; row < args.y.rows(); ++row) {
      const Scalar* x = args.x().data() + row * size_;
      Scalar* y = args.y.data() + row * size_;
      const SampleMoments moments = measure(x);
      at(args.cache, 2 * row) = moments.mean;
      at(args.cache, 2 * row + 1) = moments.factor;
      for (Index i = 0; i < size_; ++i) {
        y[i] = (x[i] - moments.mean) * moments.factor * weight.data()[i] + bias.data()[i];
      }
    }
  }

  void backward(const BackwardArgs& args) const override {
    const RowMajorMatrix weight = in_sample_order(part(args.weights, weight_));
    RowMajorMatrix dweight = RowMajorMatrix::Zero(pixels_, channels_);
    RowMajorMatrix dbias = RowMajorMatrix::Zero(pixels_, channels_);
    std::vector<Scalar> normalised(static_cast<std::size_t>(size_));
    for (Index row = 0; row < args.dy.rows(); ++row) {
      const SampleMoments moments{.mean = at(args.cache, 2 * row), .factor = at(args.cache, 2 * row + 1)};
      const Scalar* x = args.x().data() + row * size_;
      const Scalar* dy = args.dy.data() + row * size_;
      for (Index i = 0; i < size_; ++i) at(normalised, i) = (x[i] - moments.mean) * moments.factor;
      for (Index i = 0; i < size_; ++i) {
        dweight.data()[i] += dy[i] * at(normalised, i);
        dbias.data()[i] += dy[i];
      }
      if (args.dx() != nullptr) {
        sample_backward(normalised, moments.factor, weight.data(), dy, args.dx()->data() + row * size_);
      }
    }
    put(dweight, part(args.gradient, weight_), args.write);
    if (centres_) put(dbias, part(args.gradient, bias_), args.write);
  }

  // In the operations of opset 13, which has no LayerNormalization.
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    std::vector<Index> axes;
    for (Index axis = 1; axis < onnx_rank(layer.in.front()); ++axis) axes.push_back(axis);
    std::string centred = layer.inputs.front();
    if (centres_) {
      const std::string mean = graph.add("ReduceMean", layer.inputs, {{"axes", axes}});
      centred = graph.add("Sub", {centred, mean});
    }
    const std::string squares = graph.add("Mul", {centred, centred});
    const std::string variance = graph.add("ReduceMean", {squares}, {{"axes", axes}});
    const std::string eps = graph.add_number(eps_);
    const std::string deviation = graph.add("Sqrt", {graph.add("Add", {variance, eps})});
    const std::string normal = graph.add("Div", {centred, deviation});
    const std::string scaled = graph.add("Mul", {normal, layer.tensors[0]});
    return centres_ ? graph.add("Add", {scaled, layer.tensors[1]}) : scaled;
  }

 private:
  SampleMoments measure(const Scalar* x) const {
    const auto value = [&](Index i) { return static_cast<double>(x[i]); };
    const double mean = centres_ ? sum_of(size_, value) / static_cast<double>(size_) : 0;
    const double squares = sum_of(size_, [&](Index i) { return (value(i) - mean) * (value(i) - mean); });
    return {.mean = static_cast<Scalar>(mean),
            .factor = static_cast<Scalar>(1 / std::sqrt(squares / static_cast<double>(size_) + eps_))};
  }

  // dx = factor (g - mean of g - normalised x * mean of (g * normalised x)), where g = dy * weight; without
  // the mean of g where none was taken of x.
  void sample_backward(std::span<const Scalar> normalised, Scalar factor, const Scalar* weight,
                       const Scalar* dy, Scalar* dx) const {
    const auto g = [&](Index i) { return static_cast<double>(dy[i] * weight[i]); };
    const double sum = centres_ ? sum_of(size_, g) : 0;
    const double product =
        sum_of(size_, [&](Index i) { return g(i) * static_cast<double>(at(normalised, i)); });
    const auto a = static_cast<Scalar>(sum / static_cast<double>(size_));
    const auto b = static_cast<Scalar>(product / static_cast<double>(size_));
    for (std::size_t i = 0; i < normalised.size(); ++i)
      dx[i] = factor * (dy[i] * weight[i] - a - normalised[i] * b);
  }

  // Pixels x channels from the channels x pixels of a tensor.
  RowMajorMatrix in_sample_order(std::span<const Scalar> tensor) const {
    return as_eigen(as_matrix(tensor, channels_, pixels_)).transpose();
  }

  static void put(const RowMajorMatrix& values, std::span<Scalar> tensor, Write write) {
    Matrix gradient = as_matrix(tensor, values.cols(), values.rows());
    if (write == Write::kReplace) {
      as_eigen(gradient) = values.transpose();
    } else {
      as_eigen(gradient) += values.transpose();
    }
  }

  double eps_;
  bool centres_;
  Index size_ = 0;
  Index pixels_ = 0;
  Index channels_ = 1;
  Range weight_;
  Range bias_;
};

}  // namespace

std::vector<LayerEntry> norm_layers() {
  return {
      {.name = "layer_norm",
       .signature = "layer_norm(eps=1e-5)",
       .help =
           "normalises each sample as a whole, then weight * x + bias by feature (Ba, Kiros & Hinton 2016)",
       .example = "layer_norm",
       .example_input = {{3, 2, 4}},
       .make = [](TermArguments& arguments) { return std::make_unique<LayerNorm>(arguments, true); }},
      {.name = "rms_norm",
       .signature = "rms_norm(eps=1e-5)",
       .help =
           "divides each sample by the root of the mean of its squares, then weight * x by feature (Zhang & "
           "Sennrich 2019)",
       .example = "rms_norm",
       .example_input = {{3, 2, 4}},
       .make = [](TermArguments& arguments) { return std::make_unique<LayerNorm>(arguments, false); }}};
}

}  // namespace lockstep
