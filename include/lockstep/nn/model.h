// A model: a graph of layers in the order in which they run, with their shapes, and the layouts of its
// weights and of its state. Immutable; shared by all threads.
//
// A model consists of *parts* of one whole, ranges of its ops in order: the whole is all of itself in one
// part, a stage is another range, and a rank with several chunks (pipeline.h) has as many parts. Of every
// model this holds:
//
//   ops()       are those of its parts, one part behind the other, and before each part an op for each tensor
//               that it receives; what an op takes comes from its own part
//   layouts     have the tensors of these ops and no others, as the arenas that it runs with have
//   whole()     is the model whose parts they are, and number_in_whole() says where each op stands there
//
// A pass goes through one part: chunk(i) is part i as a model, whose tensors stand in the arenas of all parts
// of the rank. So what lies at the borders of a part is asked of models of one part alone.
#pragma once

#include <algorithm>
#include <cassert>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/options.h"
#include "lockstep/nn/params.h"

namespace lockstep {

enum class Link;

/// Stands for the model's input where an op's number is expected.
inline constexpr Index kModelInput = -1;

/// The weight of an earlier op that an op computes with, too.
struct Tie {
  Index owner = 0;        ///< number of the op that owns it, in the whole model
  Range weight;           ///< in the arena of weights; of borrowed weights, if another rank has the owner
  bool borrowed = false;  ///< another rank has it
};

struct ModelOp : LayerTraits {
  std::string path;   ///< "3.body.0": starts the names of its tensors
  std::string text;   ///< "dense(128)", or the name of the composite whose parts it joins
  std::string title;  ///< "layer 3.body.0 'dense(128)'", for messages and tables
  std::unique_ptr<Layer> layer;
  std::vector<Index> inputs;  ///< numbers of earlier ops, or kModelInput
  std::vector<Shape> in;
  /// How many positions of its input and of its output count, for each length of a record; empty where none
  /// is padding, whatever the length of the record.
  std::vector<Index> lengths_in = {};
  std::vector<Index> lengths_out = {};
  Range params;                 ///< its own tensors in the arena of weights; may be empty
  Range state;                  ///< its own tensors in the arena of state; may be empty
  bool shares = false;          ///< a tensor of it is also another op's: gradients of both are added
  std::optional<Tie> tie = {};  ///< it is the one that does not own the tensor
  /// It stands for the output of an op of an earlier stage, which the caller puts into its buffer.
  bool received = false;

  /// Its layer as in a model text: "dense"; or that composite.
  std::string name() const { return text.substr(0, text.find_first_of(" (")); }
  /// It owns a tensor that is also another op's.
  bool lends() const { return shares && !tie; }
  /// Whether forward and backward do anything.
  bool works() const { return !received && !only_reshapes; }
};

class Model {
 public:
  /// A whole model. `link`: how outputs become predictions, of which an ensemble gives the mean; without it
  /// the identity. Errors: ConfigError naming the layer (and shapes) if the text is wrong or a layer does not
  /// fit.
  Model(const ModelOptions& options, const Shape& input, Link link = Link{});
  /// These parts of a model. Whatever is keyed by the number of an op (random numbers, the names of tensors,
  /// blocks of samples) is as in `whole`, which is made of the same options and outlives it. A weight that
  /// they share with an op of another rank is that one's, and borrowed().
  Model(const ModelOptions& options, const Model& whole, std::span<const Range> parts);
  Model(const ModelOptions& options, const Model& whole, Range part)
      : Model(options, whole, std::span<const Range>(&part, 1)) {}

  /// Each after all ops that it takes from; the last one gives the output.
  const std::vector<ModelOp>& ops() const { return ops_; }
  const ModelOp& op(Index number) const { return at(ops_, number); }
  /// The weights: what has a gradient.
  const Layout& layout() const { return layout_; }
  /// Running moments of batch norm: what training keeps beside the weights.
  const Layout& state_layout() const { return state_layout_; }
  /// Weights of ops of other ranks that ops of this one compute with, too: who runs it gets a copy from there
  /// (distributed/tied_weights.h). Each stands once, with the number that its owner has in the whole model as
  /// `layer`.
  const Layout& borrowed() const { return borrowed_; }
  /// Both in one, weights first: what a model file holds.
  const Layout& stored_layout() const { return stored_layout_; }
  Precision precision() const { return precision_; }
  /// Members of an ensemble: 1 if it is none. The last op of an ensemble joins their outputs; it has no
  /// weights, and no backward pass, since the loss is taken of each member before it.
  Index members() const { return members_; }
  const Shape& input() const { return input_; }
  const Shape& output() const { return ops_.back().out; }

  /// The model that this has parts of; itself, if it is the whole.
  const Model& whole() const { return whole_ == nullptr ? *this : *whole_; }
  bool is_stage() const { return whole_ != nullptr; }
  /// Its parts; itself alone, if it is one.
  Index chunks() const { return std::max<Index>(1, std::ssize(chunks_)); }
  const Model& chunk(Index number) const { return chunks_.empty() ? *this : *at(chunks_, number); }
  /// The number here of a chunk's first op.
  Index first_op_of_chunk(Index number) const;
  /// The ranges of the arenas that belong to it; a chunk has a part of those of its rank.
  Range weights() const { return weights_; }
  Range state() const { return state_; }
  /// The number in whole() of an op.
  Index number_in_whole(Index op) const { return numbers_.empty() ? op : at(numbers_, op); }

  // The borders of a part. Require chunks() == 1.

  /// The ops of whole() that it is.
  Range stage() const {
    assert(chunks_.empty());
    return stage_;
  }
  /// Whether the op that owns a tied weight is here, and not in another part.
  bool has_owner(const Tie& tie) const { return stage().contains(tie.owner); }
  /// The ops at the front that stand for tensors of earlier parts.
  Range received() const {
    assert(chunks_.empty());
    return received_;
  }
  /// Ops whose outputs later parts need, in the order in which these receive them.
  std::span<const Index> sent() const {
    assert(chunks_.empty());
    return sent_;
  }
  /// The ranges of weights() and state() in the arenas of whole().
  Range weights_in_whole() const {
    const Index begin = first_op().params.begin;
    return {begin, begin + weights_.size()};
  }
  Range state_in_whole() const {
    const Index begin = first_op().state.begin;
    return {begin, begin + state_.size()};
  }

  /// output_owners()[i]: the op whose buffer stores the output of op i: i itself, an earlier op (reshape, in
  /// place), or kModelInput. Reshaping needs no memory of its own, nor does an op that can work in place
  /// where nobody else needs what it takes.
  const std::vector<Index>& output_owners() const { return owners_; }
  bool owns_output(Index number) const { return at(owners_, number) == number; }
  /// Ops before which `replicas` replicas must add their statistics together, in order.
  std::vector<Index> sync_points(Index replicas) const;
  bool runs_in_lockstep(Index replicas) const { return !sync_points(replicas).empty(); }
  /// Tensors that belong to a single op, in order.
  std::vector<FactoredTensor> factored_tensors() const;
  /// Floating-point operations of one sample, forward and backward (three times forward).
  Index training_flops() const;

 private:
  Model(const ModelOptions& options, const Model& whole, std::span<const Range> kept,
        std::span<const Range> run);
  void add_part(Range part, std::vector<ModelOp>& all);
  void number_layers(Layout& layout, std::span<const Range> parts) const;
  const ModelOp& first_op() const { return whole().op(stage().begin); }

  Shape input_;
  Precision precision_;
  Link link_;
  Index members_ = 1;
  std::vector<ModelOp> ops_;
  std::vector<Index> owners_;
  Layout layout_;
  Layout state_layout_;
  Layout stored_layout_;
  Layout borrowed_;
  const Model* whole_ = nullptr;  // null: itself
  std::vector<Index> numbers_;    // of each op, its number in the whole model; empty: the same
  Range weights_;
  Range state_;
  std::vector<std::unique_ptr<const Model>> chunks_;  // empty: it is one part
  // The borders of one part; with several, received_ is that of the last one, sent_ has those of all.
  Range stage_;
  Range received_;
  std::vector<Index> sent_;
};

/// The numbers of a model, borrowed: all that is needed to run it.
struct ModelValues {
  std::span<const Scalar> weights;
  std::span<const Scalar> state;
  std::span<const Bf16> rounded = {};     ///< rounded weights of a model in bf16: see KernelWeights
  std::span<const Scalar> borrowed = {};  ///< an arena of Model::borrowed()
  std::span<const Bf16> borrowed_rounded = {};
  std::uint64_t version = 0;  ///< version of the weights: see KernelWeights; 0: none, each call lays them out
};

/// The two parts of an arena of stored_layout().
ModelValues stored_values(const Model& model, std::span<const Scalar> stored);

/// For an op that shares a weight; else empty.
TiedWeight tied_weight(const ModelOp& op, const ModelValues& values);

/// The weights as kernels take them: made ready once, for all passes with the same weights.
class KernelWeights {
 public:
  explicit KernelWeights(const Model& model);

  /// `values` with a version of its own, by which kernels know weights that they have re-laid, and for a
  /// model in bf16 with what layers multiply with rounded, shared out over the team. Valid until the next
  /// call, and as long as the weights stay as they are.
  ModelValues prepare(const ModelValues& values, ThreadTeam& team);

 private:
  // The tensors of an arena that are rounded, and where to.
  struct Rounding {
    std::vector<Range> tensors = {};
    AlignedBuffer<Bf16> rounded = {};

    std::span<const Bf16> round(std::span<const Scalar> weights, ThreadTeam& team);
  };
  Rounding own_;
  Rounding borrowed_;
};

}  // namespace lockstep
