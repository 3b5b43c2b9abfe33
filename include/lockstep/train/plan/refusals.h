// Settings that cannot be combined, each with its reason. Nothing is switched off silently: what
// configs/texts/refusals.txt names is refused.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lockstep/data/options.h"
#include "lockstep/distributed/options.h"
#include "lockstep/train/options.h"

namespace lockstep {

struct Refusal {
  std::string name;    ///< the combination: "local_sgd with lossy compression"
  std::string reason;  ///< one sentence, with what to do instead
};

/// Every one there is.
std::span<const Refusal> refusals();

/// `found`: the numbers or names that make it apply, where the config does not show them.
/// Requires that there is a refusal of that name. Errors: ConfigError if it applies.
void refuse_if(bool applies, std::string_view name, const std::string& found = "");

/// The parts of a run that can conflict: its config, its ranks, its model and the size of its data.
struct Combination {
  const DistOptions& distribute;
  const TrainOptions& train;
  const DataOptions& data;
  Index world = 1;    ///< ranks
  Index servers = 0;  ///< ranks that are servers
  Index replicas = 1;
  Index batch = 1;                        ///< global
  Index replicas_without_rows = 0;        ///< replicas that have no record of the training set
  bool normalises_over_replicas = false;  ///< batch norm sync or group
  bool moments_of_all_replicas = false;   ///< batch norm averaged or sync
  Index largest_group = 1;                ///< replicas in the largest batch norm group
  std::string single_values = {};         ///< the batch norm that has one value in each step; empty: none
  bool streamed = false;                  ///< training samples are read as they are needed
  bool divides_layers = false;            ///< ranks divide split layers among themselves
  bool split_layers_share = false;        ///< the weight of such a layer is another layer's, too
  bool whole_tensors = false;             ///< the optimizer takes steps of whole tensors

  Index workers() const { return world - servers; }
};

/// Errors: ConfigError with the first refusal that applies.
void refuse(const Combination& combination);

}  // namespace lockstep
