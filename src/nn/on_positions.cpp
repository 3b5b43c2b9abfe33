// A layer that knows rows alone, on each position of a sequence.
#include <algorithm>
#include <utility>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/nn/onnx_words.h"
#include "model_builder.h"
#include "nn/layers/layer_parts.h"

namespace lockstep {
namespace {

// The rows of the inner layer are the positions of all samples; where there is padding and much to compute,
// the positions that count alone.
class OnPositions final : public Layer, public BatchStatistics {
 public:
  explicit OnPositions(std::unique_ptr<Layer> layer) : layer_(std::move(layer)) {}

  LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) override {
    const SequenceShape in = *as_sequence(inputs.front());
    positions_ = in.positions;
    in_ = {{in.channels}};
    LayerTraits traits = layer_->declare(std::span<const Shape>(&in_, 1), params);
    error_if(traits.ensemble_part != EnsemblePart::kNone || layer_->split() != nullptr,
             "members and split=rows are for vectors: put last, mean_over_time, max_over_time or flatten "
             "before it");
    if (traits.out.dims.size() != 1) throw ConfigError("it makes no vector of a position");
    // A copy of the positions costs as much as some operations on each of their numbers.
    constexpr Index kWorthACopy = 8;
    out_ = traits.out;
    skips_padding_ = traits.reads_input && !traits.reads_output && !traits.in_place &&
                     layer_->statistics() == nullptr &&
                     traits.flops >= kWorthACopy * (in_.size() + out_.size());
    traits.out = SequenceShape{.positions = positions_, .channels = out_.size()}.shape();
    traits.cache_size *= positions_;
    traits.flops *= positions_;
    traits.kept_size = 0;
    traits.weight_use.factored = {};  // as many rows as positions are too many to be sent as factors
    return traits;
  }

  void forward(const ForwardArgs& args) const override {
    thread_local AlignedBuffer<Scalar> kept_x;
    thread_local AlignedBuffer<Scalar> kept_y;
    const bool skips = skips_padding_ && args.lengths.given();
    const ConstMatrix x = skips ? packed(args.x(), args.lengths, in_.size(), kept_x) : rows_of(args.x());
    Matrix y = skips ? matrix_in(kept_y, x.rows(), out_.size())
                     : Matrix(args.y.data(), args.y.rows() * positions_, out_.size());
    BatchContext batch = args.batch;
    batch.first_row *= positions_;
    batch.lengths = {};
    layer_->forward({inner(args, x), args.cache, batch, y});
    if (skips) spread(y, args.lengths, args.y);
  }

  void forward_next(const ForwardArgs& args, Index, std::span<Scalar>) const override {
    layer_->forward(args);
  }

  void backward(const BackwardArgs& args) const override {
    thread_local AlignedBuffer<Scalar> kept_x;
    thread_local AlignedBuffer<Scalar> kept_dy;
    thread_local AlignedBuffer<Scalar> kept_dx;
    const bool skips = skips_padding_ && args.lengths.given();
    const ConstMatrix x = skips ? packed(args.x(), args.lengths, in_.size(), kept_x) : rows_of(args.x());
    const ConstMatrix y(args.y.data(), args.y.rows() * positions_, out_.size());
    const ConstMatrix dy = skips ? packed(args.dy, args.lengths, out_.size(), kept_dy)
                                 : ConstMatrix(args.dy.data(), args.dy.rows() * positions_, out_.size());
    Matrix* const whole = args.dx();
    Matrix dx = whole == nullptr ? Matrix(nullptr, dy.rows(), in_.size())
                : skips          ? matrix_in(kept_dx, dy.rows(), in_.size())
                                 : Matrix(whole->data(), dy.rows(), in_.size());
    Matrix* const wanted = whole == nullptr ? nullptr : &dx;
    layer_->backward({inner(args, x), y, dy, args.own_back_sums, args.back_sums, args.cache,
                      std::span<Matrix* const>(&wanted, 1), args.gradient, args.write, args.tied_gradient,
                      nullptr, args.on_ready});
    if (skips && whole != nullptr) spread(dx, args.lengths, *whole);
    // The statistics move each position, but padding is no part of them.
    if (whole != nullptr && layer_->statistics() != nullptr) clear_padding(args.lengths, in_.size(), *whole);
  }

  bool takes_sequences() const override { return true; }

  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    OnnxLayer inner = layer;
    inner.in = {in_};
    inner.inputs = {graph.reshape(layer.inputs.front(), {-1, in_.size()})};
    const std::string y = layer_->add_to(graph, inner);
    if (y.empty()) return y;
    const std::string dims = graph.add(
        "Concat",
        {graph.add_list({-1}), onnx_positions(graph, layer.inputs.front()), graph.add_list({out_.size()})},
        {{"axis", Index{0}}});
    return graph.add("Reshape", {y, dims});
  }

  const BatchStatistics* statistics() const override {
    return layer_->statistics() == nullptr ? nullptr : this;
  }
  BatchNormMode mode() const override { return layer_->statistics()->mode(); }
  Index forward_count() const override { return layer_->statistics()->forward_count(); }
  Index backward_count() const override { return layer_->statistics()->backward_count(); }
  void forward_sums(const ConstMatrix& x, const Lengths& lengths, std::span<const Scalar> state,
                    std::span<double> sums) const override {
    thread_local AlignedBuffer<Scalar> kept;
    layer_->statistics()->forward_sums(counted(x, lengths, in_.size(), kept), {}, state, sums);
  }
  void backward_sums(const BackwardSumArgs& args, std::span<double> sums) const override {
    thread_local AlignedBuffer<Scalar> kept_x;
    thread_local AlignedBuffer<Scalar> kept_dy;
    const ConstMatrix x = counted(args.x, args.lengths, in_.size(), kept_x);
    const ConstMatrix dy = counted(args.dy, args.lengths, out_.size(), kept_dy);
    layer_->statistics()->backward_sums(
        {.x = x, .dy = dy, .lengths = {}, .state = args.state, .sums = args.sums}, sums);
  }
  void update_state(std::span<const double> sums, std::span<const Scalar> around, Update update,
                    std::span<Scalar> state) const override {
    layer_->statistics()->update_state(sums, around, update, state);
  }

 private:
  ConstMatrix rows_of(const ConstMatrix& x) const { return {x.data(), x.rows() * positions_, in_.size()}; }

  PassArgs inner(const PassArgs& args, const ConstMatrix& x) const {
    PassArgs of_rows = args;
    of_rows.inputs = std::span<const ConstMatrix>(&x, 1);
    of_rows.lengths = {};
    return of_rows;
  }

  // The rows of counted(), and zeros up to one of eight numbers of rows: kernels keep something for each.
  ConstMatrix packed(const ConstMatrix& x, const Lengths& lengths, Index channels,
                     AlignedBuffer<Scalar>& kept) const {
    const Index all = x.rows() * positions_;
    const Index count = counted(x, lengths, channels, kept).rows();
    const Index rows = std::min(round_up(count, std::max<Index>(divide_up(all, 8), 1)), all);
    std::fill(kept.data() + count * channels, kept.data() + rows * channels, Scalar{0});
    return {kept.data(), rows, channels};
  }

  // The reverse: padding becomes 0.
  static void spread(const ConstMatrix& packed, const Lengths& lengths, Matrix& samples) {
    const Scalar* from = packed.data();
    for (Index row = 0; row < samples.rows(); ++row) {
      const Index size = lengths[row] * packed.cols();
      Scalar* const end = std::copy_n(from, size, samples.data() + row * samples.cols());
      std::fill(end, samples.data() + (row + 1) * samples.cols(), Scalar{0});
      from += size;
    }
  }

  // The positions that count, of all samples in order; copied to `kept` where there is padding.
  ConstMatrix counted(const ConstMatrix& x, const Lengths& lengths, Index channels,
                      AlignedBuffer<Scalar>& kept) const {
    if (!lengths.given()) return {x.data(), x.rows() * positions_, channels};
    Scalar* to = matrix_in(kept, x.rows(), x.cols()).data();
    for (Index row = 0; row < x.rows(); ++row) {
      to = std::copy_n(x.data() + row * x.cols(), lengths[row] * channels, to);
    }
    return {kept.data(), (to - kept.data()) / channels, channels};
  }

  std::unique_ptr<Layer> layer_;
  bool skips_padding_ = false;
  Index positions_ = 0;
  Shape in_;
  Shape out_;
};

}  // namespace

std::unique_ptr<Layer> on_positions(std::unique_ptr<Layer> layer) {
  return std::make_unique<OnPositions>(std::move(layer));
}

}  // namespace lockstep
