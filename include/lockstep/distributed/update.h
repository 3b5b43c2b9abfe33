// From summed gradients to new weights: divide once by what the samples weigh, clip, and let the optimizer
// step, tensor by tensor, on the ranges of the arena that this rank owns. The threads of a team take a part
// of these each; numbers do not depend on how many they are.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/distributed/saved_state.h"
#include "lockstep/distributed/whole_tensors.h"
#include "lockstep/math/statistics.h"
#include "lockstep/nn/params.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep {

// The sizes of the numbers that one update of the weights was made from, over all owners: norms, and
// histograms of each tensor. They have the same bits whoever owns what.

struct UpdateStatistics {
  bool with_histograms = false;  ///< given: whether histograms are made, too
  /// The mean gradient, before it is scaled down to a norm; the weights before the step. Tensors that are not
  /// trained do not count. NaN: no step was taken.
  double gradient_norm = std::numeric_limits<double>::quiet_NaN();
  double weight_norm = std::numeric_limits<double>::quiet_NaN();
  /// Counts: kHistogramBins for each tensor of the layout, one after the other.
  std::vector<double> gradients = {};
  std::vector<double> weights = {};
};

/// A mean gradient beyond this counts as bad as NaN: its square must be a number still, and with the largest
/// learning rate (1e6) a step from it must leave the weights finite. So weights are good after every step
/// that is taken.
inline constexpr Scalar kMaxGradient = 1e18F;

/// Weights that a step works on at a time, while the next are fetched. A source of sums adds as many at once.
inline constexpr Index kStepBlock = 256;

/// The bound on a sum over samples of this weight; a finite number.
Scalar max_sum(double weight);

/// Some of the numbers that a rank holds, by what they are: "2.weight", "optimizer state 0 of 2.weight".
struct NamedSpan {
  std::string name;
  std::span<Scalar> values;
};

/// The tensors of an arena.
std::vector<NamedSpan> tensors_of(const Layout& layout, std::span<Scalar> weights);

class Model;
class Pipeline;
struct OptimizerOptions;

/// The arguments of one update.
struct UpdateRequest {
  Index step = 1;  ///< number of this update, from 1
  /// Sum of the weights of the step's samples, over all replicas; their number if samples have no weights. 0:
  /// no sample counts, so the gradient is zero.
  double weight = 1;
  double lr = 0;
  /// Weights of each replica hosted here, for replicas that update asynchronously or locally.
  std::span<const double> replica_weights = {};
  /// If given, it is filled. *Collective* over the owners then.
  UpdateStatistics* statistics = nullptr;
};

/// Factors on the rates of one tensor. With an `lr` of 0 it is frozen: it keeps its bits and its optimizer
/// state, and counts in no norm.
struct TensorMultipliers {
  double lr = 1;
  double weight_decay = 1;
};

struct UpdateRules {
  double weight_decay = 0;
  double clip_norm = 0;   ///< gradients are scaled down to this global norm; 0: never (Pascanu et al. 2013)
  double clip_value = 0;  ///< before that, each number of the mean gradient is clipped to +- this; 0: never
  /// By tensor of the layout; empty: 1 for all, and no weight decay where ParamInfo says so.
  std::vector<TensorMultipliers> multipliers = {};
  Pipeline* pipeline = nullptr;  ///< the layout is that of a stage of the model; null: of all of it

  TensorMultipliers of(const Layout& layout, std::size_t param) const {
    if (multipliers.empty()) return {.lr = 1, .weight_decay = layout.params[param].decays ? 1.0 : 0.0};
    return multipliers[param];
  }
};

// Factors on the learning rate and on the weight decay of some tensors: train.lr_multiplier and
// train.weight_decay_multiplier, "PATTERN: FACTOR" each. A pattern is a kind (bias, norm, embedding) or a
// name as in the model file, in which * stands for any text. Of several that fit a tensor the last one
// counts.

/// The rules by which the tensors of the model are updated. Errors: ConfigError for a text without pattern or
/// factor, a pattern that fits no tensor, and a model of which nothing would be trained.
UpdateRules update_rules(const Model& model, const OptimizerOptions& options);

/// Sentences about the multipliers: "Learning rate times 2: 0.bias, 2.bias"; empty where no multiplier is
/// given. Errors: as update_rules.
std::vector<std::string> describe_multipliers(const Model& model, const OptimizerOptions& options);

/// Adds numbers over all owners, each of which has those of its own blocks and zeros for the others: so sums
/// are exact. For an owner of everything it does nothing.
using ShareSums = std::function<void(std::span<double>)>;

/// A source of the sum of the gradients: it makes each part just before it is read.
class SumSource {
 public:
  virtual ~SumSource() = default;
  /// The end of the part that contains this offset of the arena. A part should be summed at once and stay in
  /// a cache.
  virtual Index part_end(Index offset) const = 0;
  /// *Any thread of the team.* The sum in a range within a part, in memory of the source that is the caller's
  /// until the thread's next call.
  virtual std::span<Scalar> sum(int thread, Range range) = 0;
};

class ParameterUpdate {
 public:
  /// `owned`: ranges of the arena, in order, each ending where a block begins (see BlockGrid) or a tensor
  /// ends; whole tensors, if the optimizer needs them. Owns the optimizer's slots for them, from the first
  /// step() or slots() on. References must outlive it. `team` (may be null: the caller works alone) is at
  /// rest whenever a method is called.
  ParameterUpdate(const Layout& layout, const Optimizer& optimizer, const UpdateRules& rules,
                  std::span<const Range> owned, ShareSums share, ThreadTeam* team = nullptr);
  /// The update of an owner of everything.
  ParameterUpdate(const Layout& layout, const Optimizer& optimizer, const UpdateRules& rules,
                  ThreadTeam* team = nullptr);

  /// *Local.* Whether the means of the sums in the owned ranges are all good numbers.
  bool good(std::span<const Scalar> gradient_sum, double weight) const;
  /// *Collective over the stages of the model*, where it is divided: see Pipeline::agree().
  void agree_over_stages(bool& good, double& loss) const;
  /// After good() for every owner: one step on the owned weights with the clipped means of the sums, which
  /// may be used up. *Collective* over the owners if clipping, the optimizer or the request asks for norms.
  /// `source` (null: the sum is there) gives each part of the owned ranges once.
  void step(std::span<Scalar> weights, std::span<Scalar> gradient_sum, const UpdateRequest& request,
            SumSource* source = nullptr);
  /// The first half of step(), for callers that leave the rest to other ranks: the sums become their clipped
  /// means.
  void make_means(std::span<Scalar> gradient_sum, double weight);
  /// The optimizer's slots, each of the owned ranges one after the other.
  std::span<AlignedBuffer<Scalar>> slots();
  /// Adds the slots to what is saved, as "PREFIXoptimizer.0" and so on, at offsets of the arena. `written`:
  /// the range of the arena that this rank saves, of those it owns.
  void add_saved(SavedState& state, Range written, const std::string& prefix = "");
  /// The owned parts of the tensors in `weights` (an arena) and of the optimizer state, as far as there is
  /// one yet.
  std::vector<NamedSpan> named_parts(std::span<Scalar> weights);

 private:
  // The part of one tensor that is owned here and falls to one thread.
  struct Piece {
    std::size_t param = 0;
    Range range;  // its range in the arena
    Range slots;  // its range in each of slots_
    Index first_block = 0;
  };

  void divide(const Piece& piece, Index threads);
  void for_each_piece(const std::function<void(int thread, const Piece&)>& work) const;
  void for_each_trained(const std::function<void(int thread, const Piece&)>& work) const;
  double factor(std::span<const Scalar> gradient, double mean);
  double sum_over_stages(std::span<const double> blocks) const;
  std::vector<double> join_stages(std::span<const double> numbers) const;
  // The arguments of a step that all its parts share.
  struct Pass {
    std::span<Scalar> weights;
    std::span<Scalar> gradient;
    SumSource* source;  // null: the gradient is the sum
    double mean;        // numbers of the sum times this are clipped, and then are means; 0: they stay sums
  };
  // The sum in a range of the arena, moved there if it stays of use.
  enum class Keep { kNo, kYes };

  void step(int thread, const Piece& piece, const Pass& pass, const StepInfo& info);
  std::span<Scalar> take_sum(int thread, Range range, const Pass& pass, Keep keep) const;
  void clip_values(std::span<Scalar> sum, double mean) const;
  void step_part(const Piece& piece, Range range, std::span<Scalar> sum, std::span<Scalar> weights,
                 const StepInfo& info);
  void measure(std::span<const Scalar> weights, std::span<const Scalar> gradient, double mean,
               UpdateStatistics& statistics);
  void count_values(std::span<const Scalar> arena, double factor, std::span<double> counts) const;
  void add_squares(std::span<const Scalar> arena, std::span<double> blocks) const;
  void make_slots();
  void move_by_trust_ratio(std::span<Scalar> weights, std::span<const Scalar> direction, double lr);

  const Layout& layout_;
  const Optimizer& optimizer_;
  UpdateRules rules_;
  ShareSums share_;
  BlockGrid grid_;
  ThreadTeam* team_;
  std::vector<std::vector<Piece>> pieces_;  // the pieces of each thread
  Index slot_size_ = 0;
  std::optional<WholeTensors> whole_;         // if the optimizer needs them; then pieces have no slots
  std::vector<AlignedBuffer<Scalar>> slots_;  // empty before the first step
  std::vector<double> squares_;  // sums of squares of the blocks: gradient, or weights and then directions
};

}  // namespace lockstep
