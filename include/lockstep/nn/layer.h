// A layer: immutable once declared. It sees matrices of one replica's samples, the arenas of weights and of
// running state, and never a communicator, a rank or a thread; activations live in the caller's workspace.
//
// An image is a sample of height x width x channels (channels last); without the third number it has one
// channel. A sequence is a sample of positions x channels, of which the first may count and the others be
// padding (Lengths): a layer that mixes positions does as if these were not there, and gives them a gradient
// of 0. What stands in the padding of an output means nothing.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/base/terms.h"
#include "lockstep/base/types.h"
#include "lockstep/math/kernels.h"
#include "lockstep/math/matrix.h"
#include "lockstep/nn/params.h"

namespace lockstep {

/// The replicas whose samples batch norm takes together when the batch is divided over replicas. Two
/// questions have one answer each in every mode: with whom a replica is normalised, and whose moments go into
/// its running moments. Replicas of one such scope hold the same running moments.
///
///              normalised with     running moments of
///   local      itself              itself
///   averaged   itself              all replicas
///   sync       all replicas        all replicas
///   group(G)   its group           its group           (groups of G neighbours; the last may be smaller)
struct BatchNormMode {
  enum class Kind { kLocal, kAveraged, kSync, kGroup };

  Kind kind = Kind::kLocal;
  Index group = 1;

  /// The replicas over which the statistics of `replica` are taken.
  Range normalised_with(Index replica, Index replicas) const;
  /// The replicas whose statistics its running moments follow.
  Range moments_with(Index replica, Index replicas) const;

  bool operator==(const BatchNormMode&) const = default;
};

/// "local", "averaged", "sync", "group(4)". Errors: ConfigError naming these.
BatchNormMode parse_batch_norm_mode(std::string_view text);
std::string to_string(const BatchNormMode& mode);

/// One tensor that a layer wants.
struct ParamSpec {
  std::string name;  ///< "weight", "bias"
  Shape shape;
  bool decays = true;
  bool looked_up = false;  ///< a table of which the layer picks rows
  Initialiser initialiser = Initialiser::kZero;
  Index fan_in = 0;
  Index fan_out = 0;
  double deviation = 0;  ///< with kDeviation; with kUniform the bound
};

/// Collects the tensors of a layer, in order.
class ParamDeclarer {
 public:
  virtual ~ParamDeclarer() = default;
  /// The initialiser of the run (model.init), for weights whose layer names none.
  virtual Initialiser default_initialiser() const = 0;
  /// The mode of the run (model.batch_norm), for layers that name none.
  virtual BatchNormMode default_batch_norm() const = 0;
  /// The precision of the run (train.precision), for layers that multiply.
  virtual Precision precision() const = 0;
  /// The layer's number in the model: keys its random numbers.
  virtual Index number() const = 0;
  /// The range of the new tensor in the arena of weights.
  virtual Range declare(ParamSpec spec) = 0;
  /// The range of the new tensor in the arena of state, which training keeps beside the weights and which has
  /// no gradient.
  virtual Range declare_state(ParamSpec spec) = 0;
  /// Shares the "weight" of an earlier layer ("0", "3.body.1"): passes get it as TiedWeight. Gives its range
  /// in the arena of weights, or of borrowed weights (Model::borrowed()). Errors: ConfigError if there is
  /// none, or if it has another shape.
  virtual Range tie(const std::string& layer, const Shape& shape) = 0;
};

/// How many positions of the samples of a batch count at one op; the others are padding.
class Lengths {
 public:
  Lengths() = default;
  /// `records`: the positions that count in each record, as it came. `here`: as many as count at the op, for
  /// each number in a record.
  Lengths(std::span<const Scalar> records, std::span<const Index> here) : records_(records), here_(here) {}

  /// False: all positions of all samples count.
  bool given() const { return !records_.empty(); }
  /// Requires given().
  Index operator[](Index row) const { return at(here_, static_cast<Index>(at(records_, row))); }
  /// For a layer: the positions that count of a sample that has `positions`.
  Index of(Index row, Index positions) const { return given() ? (*this)[row] : positions; }

 private:
  std::span<const Scalar> records_;
  std::span<const Index> here_;
};

/// Which samples a pass is about; keys what is random in it.
struct BatchContext {
  bool training = false;
  std::uint64_t seed = 0;
  Index step = 0;
  Index replica = 0;
  Index first_row = 0;  ///< within the replica's samples of the step
  /// The length of each record, where these are sequences of different lengths; else empty.
  std::span<const Scalar> lengths = {};
};

/// The weight of an earlier layer, for a layer that shares it (ParamDeclarer::tie()); else empty.
struct TiedWeight {
  std::span<const Scalar> exact;
  std::span<const Bf16> rounded;  ///< the same, where the layer has WeightUse::rounded
};

/// n samples, and what both directions compute with.
struct PassArgs {
  std::span<const ConstMatrix> inputs;  ///< each n x in; backward has them without data if not reads_input
  std::span<const Scalar> weights;      ///< the whole arena
  std::span<const Bf16> rounded;        ///< the same, where a layer has WeightUse::rounded
  TiedWeight tied;                      ///< what the layer shares
  std::uint64_t version;          ///< version of all, for kernels; 0: other calls can have other weights
  std::span<const Scalar> state;  ///< the whole arena
  std::span<const double> sums;   ///< sums over the batch, for a layer with statistics(); empty in evaluation
  Lengths lengths;                ///< of the inputs, for a layer that takes_sequences()

  const ConstMatrix& x() const { return inputs.front(); }
};

struct ForwardArgs : PassArgs {
  std::span<Scalar> cache;  ///< n x cache_size, kept for the backward pass
  const BatchContext& batch;
  Matrix& y;  ///< n x out, to be written
};

/// Called between two pieces of work in the backward pass, so that others can use the time: as far as these
/// samples go, the gradients of the layer are final from the offset `from` of the arena on.
using GradientReadyCallback = std::function<void(Index from)>;

/// The backward pass of the n samples that forward saw.
struct BackwardArgs : PassArgs {
  const ConstMatrix& y;                   ///< n x out, as forward left it, for a layer that reads_output
  const ConstMatrix& dy;                  ///< n x out
  std::span<const double> own_back_sums;  ///< sums over this replica, for a layer with statistics()
  std::span<const double> back_sums;      ///< sums over all replicas that were normalised together
  std::span<const Scalar> cache;          ///< the cache as forward left it
  std::span<Matrix* const> dinputs;  ///< each n x in, to be written; null if nobody wants it (model input)
  std::span<Scalar> gradient;        ///< the whole arena; summed over the n samples
  Write write;                       ///< whether the gradient is overwritten or added to
  std::span<Scalar> tied_gradient;   ///< the gradient of what the layer shares, to be overwritten
  const FactorBuffers* factors;  ///< buffers that a layer with WeightUse::factored fills instead of that part
                                 ///< of the gradient; null: multiply
  const GradientReadyCallback& on_ready;  ///< called between parts of long work; a layer need not call it

  Matrix* dx() const { return dinputs.front(); }
};

/// A batch on its way back, as far as sums over it need it.
struct BackwardSumArgs {
  const ConstMatrix& x;
  const ConstMatrix& dy;
  Lengths lengths;
  std::span<const Scalar> state;
  std::span<const double> sums;  ///< the sums that forward had
};

/// For a layer that needs sums over the batch before it can go on: it states how many, gives its replica's
/// share, and is called with the sums over all replicas that are normalised together. Sums are in double; all
/// replicas of a scope have the same state, so sums may be taken around it.
class BatchStatistics {
 public:
  virtual ~BatchStatistics() = default;
  virtual BatchNormMode mode() const = 0;
  /// Numbers summed in the forward pass. The first is the count of what was summed.
  virtual Index forward_count() const = 0;
  virtual void forward_sums(const ConstMatrix& x, const Lengths& lengths, std::span<const Scalar> state,
                            std::span<double> sums) const = 0;
  /// Numbers summed in the backward pass.
  virtual Index backward_count() const = 0;
  virtual void backward_sums(const BackwardSumArgs& args, std::span<double> sums) const = 0;
  /// Moves the running moments in `state` by the moments in `sums`, or replaces them. A count below two
  /// changes nothing: a single value has no variance. Arithmetic on any state: of a replica (ReplicaStates),
  /// or of a server that moves its own as each worker's sums arrive. `around`: the state that the sums were
  /// taken with; it may be `state` itself.
  enum class Update { kMove, kReplace };
  virtual void update_state(std::span<const double> sums, std::span<const Scalar> around, Update update,
                            std::span<Scalar> state) const = 0;
};

/// Ranges of a layer's weights in the arena; each is empty if there are none.
struct WeightUse {
  Range factored = {};  ///< out x in: their gradient is dy^T x, so that backward can leave those two
  Range rounded = {};   ///< multiplied with in bf16; empty in fp32
  Range arranged = {};  ///< kernels keep a copy in a layout of their own, in each thread for each direction
};

class OnnxNodes;
struct OnnxLayer;
class SplitLayer;

/// The part of a layer in an ensemble: members that share weights and stand side by side in the activations
/// of a sample. Training takes the mean of their losses; the prediction is the mean of theirs.
enum class EnsemblePart {
  kNone,
  kBegin,   ///< makes the members of one sample, {members, size}
  kInside,  ///< takes those that another layer of an ensemble gives
  kEnd,     ///< takes them, too; the last layer of a model text: Model adds the op that joins them
};
inline constexpr const char* kNoMembers =
    "expected the members of an ensemble, which tabm(k) begins: put it before";

/// The facts about a layer that its declaration fixes.
struct LayerTraits {
  Shape out;                   ///< of the output
  bool only_reshapes = false;  ///< forward and backward are never called and no memory is used
  bool in_place = false;       ///< y may be x and dx may be dy: scalar by scalar, and backward needs no input
  bool reads_input = true;     ///< backward, or statistics() in that pass, needs what forward took
  bool reads_output = false;   ///< backward needs what forward gave
  bool masks = true;           ///< what stands in the padding of a sequence is not seen in the output
  Index cache_size = 0;  ///< scalars per sample that forward keeps for backward, beside inputs and output
  Index flops = 0;       ///< floating-point operations of one sample in the forward pass
  std::optional<Index> flops_of_dx =
      {};                     ///< those of backward that make the gradient of the input, if others
  WeightUse weight_use = {};  ///< weights of which kernels or exchange make use in a way of their own
  EnsemblePart ensemble_part = EnsemblePart::kNone;
  /// For a layer of sequences none of whose positions sees one behind it, so that it can take one position
  /// after another (next_position.h): scalars of a sample that it keeps of those before.
  std::optional<Index> kept_size = {};
  /// A layer without kept_size whose positions see none behind them, so that the first outputs are the same
  /// where a sequence ends earlier.
  bool is_causal = false;
};

class Layer {
 public:
  virtual ~Layer() = default;

  /// Fixes the shapes; called once. Errors: ConfigError if the inputs do not fit. A layer has one input
  /// unless a composite gives it more.
  virtual LayerTraits declare(std::span<const Shape> inputs, ParamDeclarer& params) = 0;
  virtual void forward(const ForwardArgs& args) const = 0;
  virtual void backward(const BackwardArgs& args) const = 0;

  /// Null for a layer that treats each sample alone.
  virtual const BatchStatistics* statistics() const { return nullptr; }
  /// Whether it is declared with a sequence. Any other layer is declared with one position of it, takes each
  /// position by itself, and so makes a sequence of as many.
  virtual bool takes_sequences() const { return false; }
  /// Positions of an output, a sequence, that count where so many of the input do.
  virtual Index length_of_output(Index length) const { return length; }
  /// The outputs at a position, in evaluation, of a layer with LayerTraits::kept_size: x and y have that one
  /// alone of n samples. `kept`: n x kept_size, as the calls for the positions before left it.
  virtual void forward_next(const ForwardArgs& args, Index /*position*/, std::span<Scalar> /*kept*/) const {
    forward(args);
  }
  /// This layer, if its weights lie in blocks that ranks can divide among themselves (split_layer.h).
  virtual const SplitLayer* split() const { return nullptr; }
  /// Adds what it computes in evaluation to a graph of ONNX (onnx_words.h); gives its output, in the order
  /// inside the graph. "" where ONNX has no words for it.
  virtual std::string add_to(OnnxNodes& /*graph*/, const OnnxLayer& /*layer*/) const { return {}; }
};

struct LayerEntry {
  std::string name;
  std::string signature;  ///< "dense(units, init=he)"
  std::string help;       ///< one sentence, with its formula or source
  std::string example;    ///< a layer text for the catalog tests, "dense(5)"
  Shape example_input;    ///< shape of an input that the example takes
  /// A layer that, where it follows this one, may run before it without a change of any bit; "" for none.
  std::string lets_first = {};
  std::function<std::unique_ptr<Layer>(TermArguments&)> make;
};

/// Every layer there is. To add one: src/README.md.
std::span<const LayerEntry> layer_catalog();

}  // namespace lockstep
