// The division of a model into stages: contiguous ranges of its ops, each for a rank of its own.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep {

/// A tensor that ops behind a cut need from before it.
struct CrossingTensor {
  Index owner = 0;  ///< the op whose buffer stores it in the whole model
  Index last =
      0;  ///< the last op before the cut that gives it: `owner`, or one that reshapes or works in place
};

/// The tensors that cross from the ops before `cut` to those from it on, in order of their owners. The input
/// of the model is none: every stage may read it.
std::vector<CrossingTensor> crossing_tensors(const Model& model, Index cut);

/// Scalars of a sample in them.
Index crossing_size(const Model& model, Index cut);

/// An op of a whole model that computes with the weight of an earlier one.
struct ModelTie {
  Index op = 0;
  Index owner = 0;
  std::string name;  ///< of the weight: "0.weight"
  Index size = 0;    ///< scalars of it
};

/// All of a whole model, last first: the order in which their gradients are added, before that of the owner.
std::vector<ModelTie> model_ties(const Model& model);

/// Whether a rank that runs this model, or this stage of one, needs the features of a sample, and its
/// targets: those of the loss, which is taken behind the last stage.
bool needs_features(const Model& model);
bool needs_targets(const Model& model);

/// As distribute.cut: the program chooses.
inline constexpr const char* kAutoCut = "auto";

/// The ops of each stage. `cut`: paths of the layers before which the model is cut, in any order, or
/// kAutoCut: the largest stage, counted by operations and by what it receives and sends, becomes as small as
/// it can be. Each stage has weights. With several `chunks` on each rank there are so many times more parts,
/// in the order of the model. Errors: ConfigError.
std::vector<Range> divide_model(const Model& model, Index stages, std::span<const std::string> cut,
                                Index chunks = 1);

/// The memory that a rank may have, and about what it needs for ops of the model as one of the parts of
/// divide_model(), by the number of the part in the order of the model.
struct PartMemory {
  Index limit = 0;  ///< bytes
  std::function<Index(Range ops, Index part)> bytes;
};

/// As divide_model() with kAutoCut, under a limit. If there are divisions whose every part has the memory, it
/// gives the one of them whose largest part has the least work; else the one whose largest part needs the
/// least memory. Requires that divide_model() divides the model into so many parts.
std::vector<Range> divide_within(const Model& model, Index parts, const PartMemory& memory);

/// The parts that each rank of a group runs, of those that divide_model() gives: rank s of S has the parts s,
/// S + s, 2 S + s, ...
std::vector<std::vector<Range>> chunks_of_stages(std::span<const Range> parts, Index stages);

}  // namespace lockstep
