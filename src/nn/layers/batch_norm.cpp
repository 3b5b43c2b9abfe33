// y = gamma (x - mean) / sqrt(variance + eps) + beta, channel by channel, with the moments of the batch in
// training and running moments in evaluation (Ioffe & Szegedy 2015). Whose samples the batch is, is the
// mode's business (BatchNormMode); here there are only sums.
#include <algorithm>
#include <cmath>
#include <limits>

#include "layer_parts.h"
#include "lockstep/math/statistics.h"

namespace lockstep {
namespace {

class BatchNorm final : public Layer, public BatchStatistics {
 public:
  explicit BatchNorm(TermArguments& arguments)
      : mode_text_(arguments.take_word("mode", "")),
        momentum_(arguments.take_number("momentum", 0.1)),
        eps_(arguments.take_number("eps", 1e-5)) {
    error_if(!(momentum_ > 0 && momentum_ <= 1), "momentum must be above 0 and at most 1, found {}",
             momentum_);
    if (!(eps_ > 0)) throw ConfigError("eps must be above 0, found {}", eps_);
    if (!mode_text_.empty()) parse_batch_norm_mode(mode_text_);
  }

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    const Shape& in = inputs.front();
    const std::optional<ImageShape> image = as_image(in);
    channels_ = image ? image->channels : in.size();
    mode_ = mode_text_.empty() ? params.default_batch_norm() : parse_batch_norm_mode(mode_text_);
    const auto spec = [&](const char* name, Initialiser initialiser) {
      return ParamSpec{.name = name, .shape = {{channels_}}, .decays = false, .initialiser = initialiser};
    };
    gamma_ = params.declare(spec("weight", Initialiser::kOne));
    beta_ = params.declare(spec("bias", Initialiser::kZero));
    mean_ = params.declare_state(spec("running_mean", Initialiser::kZero));
    variance_ = params.declare_state(spec("running_var", Initialiser::kOne));
    return {.out = in, .flops = 3 * in.size()};
  }

  void forward(const ForwardArgs& args) const override {
    const Moments moments = args.batch.training ? batch_moments(args.sums, args.state) : running(args.state);
    const std::span<const Scalar> gamma = part(args.weights, gamma_);
    const std::span<const Scalar> beta = part(args.weights, beta_);
    // y = (x - mean) * factor + beta
    std::vector<Scalar> mean(channels());
    std::vector<Scalar> factor(channels());
    for (std::size_t c = 0; c < channels(); ++c) {
      mean[c] = static_cast<Scalar>(moments.mean[c]);
      factor[c] = static_cast<Scalar>(gamma[c] / std::sqrt(moments.variance[c] + eps_));
    }
    const Scalar* x = args.x().data();
    for (Scalar* y = args.y.data(); y < args.y.data() + args.y.size(); y += channels_, x += channels_) {
#pragma GCC ivdep
      for (std::size_t c = 0; c < channels(); ++c) y[c] = (x[c] - mean[c]) * factor[c] + beta[c];
    }
  }

  // dgamma and dbeta are sums over this replica's samples; dx needs those of all that were normalised with
  // it.
  void backward(const BackwardArgs& args) const override {
    const Index c_count = channels_;
    put(args.own_back_sums.subspan(channels()), part(args.gradient, gamma_), args.write);
    put(args.own_back_sums.first(channels()), part(args.gradient, beta_), args.write);
    if (args.dx() == nullptr) return;
    const Moments moments = batch_moments(args.sums, args.state);
    const std::span<const Scalar> gamma = part(args.weights, gamma_);
    const double count = args.sums[0];
    // dx = factor (dy - a - (x - mean) b)
    std::vector<Scalar> mean(channels());
    std::vector<Scalar> factor(channels());
    std::vector<Scalar> a(channels());
    std::vector<Scalar> b(channels());
    for (std::size_t c = 0; c < channels(); ++c) {
      const double scale = 1 / std::sqrt(moments.variance[c] + eps_);
      mean[c] = static_cast<Scalar>(moments.mean[c]);
      factor[c] = static_cast<Scalar>(gamma[c] * scale);
      a[c] = static_cast<Scalar>(args.back_sums[c] / count);
      b[c] = static_cast<Scalar>(args.back_sums[channels() + c] / count * scale);
    }
    const Scalar* x = args.x().data();
    const Scalar* dy = args.dy.data();
    Scalar* end = args.dx()->data() + args.dx()->size();
    for (Scalar* dx = args.dx()->data(); dx < end; dx += c_count, x += c_count, dy += c_count) {
#pragma GCC ivdep
      for (std::size_t c = 0; c < channels(); ++c)
        dx[c] = factor[c] * (dy[c] - a[c] - (x[c] - mean[c]) * b[c]);
    }
  }

  const BatchStatistics* statistics() const override {
    return this;
  }
  // ONNX normalises along axis 1: there the channels of an image stand, and the features of a vector.
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const Shape& sample = layer.in.front();
    const bool image = as_image(sample).has_value();
    const std::string x = image ? layer.inputs.front() : onnx_flat(graph, layer.inputs.front(), sample);
    const std::string y =
        graph.add("BatchNormalization", joined_names(joined_names({x}, layer.tensors), layer.state),
                  {{"epsilon", eps_}});
    if (image || sample.dims.size() == 1) return y;
    std::vector<Index> dims{-1};
    dims.insert(dims.end(), sample.dims.begin(), sample.dims.end());
    return graph.reshape(y, dims);
  }

  BatchNormMode mode() const override {
    return mode_;
  }
  Index forward_count() const override {
    return 1 + 2 * channels_;
  }
  void forward_sums(const ConstMatrix& x, const Lengths& /*lengths*/, std::span<const Scalar> state,
                    std::span<double> sums) const override {
    sum_moments(x, part(state, mean_), sums);
  }

  Index backward_count() const override {
    return 2 * channels_;
  }
  // The sums of dy, then of dy times the normalised x.
  void backward_sums(const BackwardSumArgs& args, std::span<double> sums) const override {
    const Moments moments = batch_moments(args.sums, args.state);
    std::vector<Scalar> mean(channels());
    for (std::size_t c = 0; c < channels(); ++c) mean[c] = static_cast<Scalar>(moments.mean[c]);
    sum_products(args.x, mean, args.dy, sums);
    for (std::size_t c = 0; c < channels(); ++c) {
      sums[channels() + c] /= std::sqrt(moments.variance[c] + eps_);
    }
  }

  // As PyTorch: the running variance follows the unbiased one, which takes two values.
  void update_state(std::span<const double> sums, std::span<const Scalar> around, Update update,
                    std::span<Scalar> state) const override {
    const double count = sums[0];
    if (count < 2) return;
    const Moments moments = batch_moments(sums, around);
    const double share = update == Update::kReplace ? 1 : momentum_;
    const std::span<Scalar> mean = part(state, mean_);
    const std::span<Scalar> variance = part(state, variance_);
    const double bessel = count / (count - 1);
    for (std::size_t c = 0; c < channels(); ++c) {
      mean[c] = static_cast<Scalar>((1 - share) * mean[c] + share * moments.mean[c]);
      const double moved = (1 - share) * variance[c] + share * moments.variance[c] * bessel;
      variance[c] = static_cast<Scalar>(std::min<double>(moved, std::numeric_limits<Scalar>::max()));
    }
  }

 private:
  std::size_t channels() const {
    return static_cast<std::size_t>(channels_);
  }

  Moments batch_moments(std::span<const double> sums, std::span<const Scalar> state) const {
    return moments_of(sums, part(state, mean_));
  }

  Moments running(std::span<const Scalar> state) const {
    const std::span<const Scalar> mean = part(state, mean_);
    const std::span<const Scalar> variance = part(state, variance_);
    return {{mean.begin(), mean.end()}, {variance.begin(), variance.end()}};
  }

  static void put(std::span<const double> values, std::span<Scalar> gradient, Write write) {
    for (std::size_t c = 0; c < gradient.size(); ++c) {
      gradient[c] = (write == Write::kAdd ? gradient[c] : 0) + static_cast<Scalar>(values[c]);
    }
  }

  std::string mode_text_;
  double momentum_;
  double eps_;
  BatchNormMode mode_;
  Index channels_ = 0;
  Range gamma_;
  Range beta_;
  Range mean_;
  Range variance_;
};

}  // namespace

LayerEntry batch_norm_entry() {
  return {.name = "batch_norm",
          .signature = "batch_norm(momentum=0.1, eps=1e-5, mode=WORD)",
          .help =
              "normalises each feature of a vector or channel of an image (Ioffe & Szegedy 2015); mode: "
              "local, averaged, sync or group(G) for this layer instead of model.batch_norm",
          .example = "batch_norm",
          .example_input = {{3, 2, 4}},
          .make = [](TermArguments& arguments) { return std::make_unique<BatchNorm>(arguments); }};
}

}  // namespace lockstep
