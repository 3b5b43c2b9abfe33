// A record of time windows begins with the past of each label, label after label. The op before the layers
// makes (x - shift) / deviation of a past, the op behind them z * deviation + shift of the outputs of that
// label, which are one of equal parts. With the mean and deviation of the past this is RevIN (Kim et al.
// 2022) without its learnt weights; with its last value and 1 it is what NLinear does (Zeng et al. 2022).
// Both measure the past of a sample alike, in double, and round only what they put out.
#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/base/errors.h"
#include "lockstep/nn/onnx_words.h"
#include "model_builder.h"
#include "nn/layers/layer_parts.h"

namespace lockstep {
namespace {

constexpr double kVarianceEps = 1e-5;

// The shift and deviation of one past, or the gradient by them.
struct PastMoments {
  double shift = 0;
  double deviation = 1;
};

class WindowOp : public Layer {
 public:
  explicit WindowOp(const WindowScaling& scaling)
      : labels_(scaling.labels),
        window_(scaling.window),
        standard_(scaling.kind == WindowScaling::Kind::kStandard) {}

  // The model's input is the last of the inputs.
  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    inputs_ = inputs.back().size();
    const bool is_vector = inputs.back().dims.size() == 1;
    if (is_vector && labels_ > 0 && window_ > 0 && window_ <= inputs_ / labels_)
      return {.out = inputs.front(), .flops = (standard_ ? 6 : 1) * pasts()};
    throw ConfigError("expected a vector that begins with the pasts of {} labels, {} numbers each", labels_,
                      window_);
  }

 protected:
  Index pasts() const { return labels_ * window_; }

  // visit(number of a past, where it begins in x, moments), those of all samples in order.
  template <class Visit>
  void visit_pasts(const ConstMatrix& x, const Visit& visit) const {
    for (Index i = 0; i < x.rows() * labels_; ++i) {
      const Index begin = i / labels_ * inputs_ + i % labels_ * window_;
      visit(i, begin, measure(x.data() + begin));
    }
  }

  static double normal(Scalar x, const PastMoments& of) {
    return (static_cast<double>(x) - of.shift) * (1 / of.deviation);
  }

  // Adds to dx, the gradient by a past x, what its moments give.
  void add_gradient(const PastMoments& by, const PastMoments& of, const Scalar* x, Scalar* dx) const {
    const double count = standard_ ? static_cast<double>(window_) : 1;
    for (Index t = standard_ ? 0 : window_ - 1; t < window_; ++t)
      dx[t] += static_cast<Scalar>((by.shift + by.deviation * normal(x[t], of)) / count);
  }

  // In a graph, the pasts as [N, labels, window], and their shifts and deviations (if any) as [N, labels, 1].
  std::array<std::string, 3> add_pasts(OnnxNodes& graph, const std::string& x) const {
    const std::vector<OnnxAttribute> over_time{{"axes", std::vector<Index>{2}}};
    const std::string values = graph.reshape(onnx_slice(graph, x, {0, pasts()}, 1), {-1, labels_, window_});
    if (!standard_) return {values, onnx_slice(graph, values, {window_ - 1, window_}, 2), {}};
    const std::string mean = graph.add("ReduceMean", {values}, over_time);
    const std::string centred = graph.add("Sub", {values, mean});
    const std::string variance = graph.add("ReduceMean", {graph.add("Mul", {centred, centred})}, over_time);
    return {values, mean, graph.add("Sqrt", {graph.add("Add", {variance, graph.add_number(kVarianceEps)})})};
  }

  Index labels_;
  Index window_;
  bool standard_;
  Index inputs_ = 0;

 private:
  PastMoments measure(const Scalar* x) const {
    if (!standard_) return {.shift = static_cast<double>(x[window_ - 1])};
    const auto count = static_cast<double>(window_);
    const auto value = [x](Index t) { return static_cast<double>(x[t]); };
    const double mean = sum_of(window_, value) / count;
    const double squares = sum_of(window_, [&](Index t) { return (value(t) - mean) * (value(t) - mean); });
    return {.shift = mean, .deviation = std::sqrt(squares / count + kVarianceEps)};
  }
};

class WindowScale final : public WindowOp {
 public:
  using WindowOp::WindowOp;

  // All that stands behind the pasts passes as it is.
  void forward(const ForwardArgs& args) const override {
    std::ranges::copy(args.x().values(), args.y.data());
    visit_pasts(args.x(), [&](Index /*past*/, Index begin, const PastMoments& of) {
      for (Scalar& y : part(args.y.values(), {begin, begin + window_}))
        y = static_cast<Scalar>(normal(y, of));
    });
  }

  void backward(const BackwardArgs& args) const override {
    if (args.dx() == nullptr) return;
    const Scalar* const x = args.x().data();
    Scalar* const dx = args.dx()->data();
    std::ranges::copy(args.dy.values(), dx);
    visit_pasts(args.x(), [&](Index /*past*/, Index begin, const PastMoments& of) {
      PastMoments by{0, 0};
      for (Index t = begin; t < begin + window_; ++t) {
        const double slope = static_cast<double>(dx[t]) / of.deviation;
        dx[t] = static_cast<Scalar>(slope);
        by.shift -= slope;
        by.deviation -= slope * normal(x[t], of);
      }
      add_gradient(by, of, x + begin, dx + begin);
    });
  }

  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const std::string& x = layer.inputs.front();
    const auto [values, shift, deviation] = add_pasts(graph, x);
    std::string scaled = graph.add("Sub", {values, shift});
    if (standard_) scaled = graph.add("Div", {scaled, deviation});
    scaled = graph.reshape(scaled, {-1, pasts()});
    if (pasts() == inputs_) return scaled;
    return graph.add("Concat", {scaled, onnx_slice(graph, x, {pasts(), inputs_}, 1)}, {{"axis", Index{1}}});
  }
};

class WindowUnscale final : public WindowOp {
 public:
  WindowUnscale(const WindowScaling& scaling, Index members) : WindowOp(scaling), members_(members) {}

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    const Shape layers = WindowOp::declare(inputs, params).out;
    const Index outputs = layers.size() / members_;
    horizon_ = outputs / labels_;
    error_if(outputs % labels_ != 0,
             "{} outputs are not {} equal parts, one for each label: change the last layer", outputs,
             labels_);
    return {.out = members_ > 1 ? layers : Shape{{outputs}},
            .flops = (standard_ ? 4 : 0) * pasts() + (standard_ ? 2 : 1) * outputs * members_};
  }

  void forward(const ForwardArgs& args) const override {
    const Scalar* const z = args.inputs[0].data();
    visit_outputs(args.inputs[1], [&](Index i, Index /*past*/, const PastMoments& of) {
      args.y.data()[i] = static_cast<Scalar>(static_cast<double>(z[i]) * of.deviation + of.shift);
    });
  }

  void backward(const BackwardArgs& args) const override {
    const Scalar* const z = args.inputs[0].data();
    const Scalar* const x = args.inputs[1].data();
    Matrix* const dx = args.dinputs[1];
    if (dx != nullptr) std::ranges::fill(dx->values(), Scalar{0});
    visit_outputs(args.inputs[1], [&](Index i, Index past, const PastMoments& of) {
      const auto dy = static_cast<double>(args.dy.data()[i]);
      if (args.dinputs[0] != nullptr) args.dinputs[0]->data()[i] = static_cast<Scalar>(dy * of.deviation);
      if (dx != nullptr) add_gradient({dy, dy * static_cast<double>(z[i])}, of, x + past, dx->data() + past);
    });
  }

  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    const auto [values, shift, deviation] = add_pasts(graph, layer.inputs[1]);
    const auto by_label = [&](const std::string& value, Index members, Index numbers) {
      return graph.reshape(value, {-1, members, labels_, numbers});
    };
    std::string y = by_label(onnx_rows(graph, layer.inputs[0], layer.in[0]), members_, horizon_);
    if (standard_) y = graph.add("Mul", {y, by_label(deviation, 1, 1)});
    y = graph.add("Add", {y, by_label(shift, 1, 1)});
    if (members_ == 1) return graph.reshape(y, {-1, labels_ * horizon_});
    return graph.reshape(y, {-1, 1, members_, labels_ * horizon_});
  }

 private:
  // visit(an output, where the past of its label begins in x, moments)
  template <class Visit>
  void visit_outputs(const ConstMatrix& x, const Visit& visit) const {
    visit_pasts(x, [&](Index past, Index begin, const PastMoments& of) {
      for (Index m = 0; m < members_; ++m) {
        const Index first = ((past / labels_ * members_ + m) * labels_ + past % labels_) * horizon_;
        for (Index i = first; i < first + horizon_; ++i) visit(i, begin, of);
      }
    });
  }

  Index members_;
  Index horizon_ = 0;  // outputs of a label
};

}  // namespace

std::unique_ptr<Layer> scale_windows(const WindowScaling& scaling) {
  return std::make_unique<WindowScale>(scaling);
}

std::unique_ptr<Layer> unscale_windows(const WindowScaling& scaling, Index members) {
  return std::make_unique<WindowUnscale>(scaling, members);
}

}  // namespace lockstep
