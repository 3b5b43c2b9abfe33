// A strategy is how gradients become weights: who owns which range of the arena and what is sent back.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/thread_team.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/exchange/costs.h"
#include "lockstep/distributed/exchange/factored_gradients.h"
#include "lockstep/distributed/local_gradients.h"
#include "lockstep/distributed/options.h"
#include "lockstep/distributed/plan.h"
#include "lockstep/distributed/update.h"
#include "lockstep/nn/params.h"

namespace lockstep {

/// The arguments that a strategy is made from. Everything outlives it.
struct StrategyContext {
  Communicator& comm;
  const DistOptions& options;
  const Plan& plan;
  const Layout& layout;
  const Optimizer& optimizer;
  UpdateRules rules;
  ThreadTeam& team;
  Index gradient_arenas = 1;             ///< arenas that this rank takes, at most
  Index ranks_per_node = 0;              ///< nodes are taken for so small; 0: as they are
  double server_mbit = 0;                ///< servers pretend a link of so many Mbit/s; 0: none
  std::filesystem::path record_to = {};  ///< directory for recordings of arrivals; empty: none

  /// The exchange of its gradients.
  ExchangeRequest exchange(Delivery delivery = Delivery::kAllReduce) const {
    return {.comm = comm,
            .plan = plan,
            .options = options,
            .delivery = delivery,
            .algorithm = options.algorithm,
            .gradient_arenas = gradient_arenas,
            .ranks_per_node = ranks_per_node};
  }
};

/// How a step ended. With local steps, the loss and the stopped replicas are those of this rank; all else is
/// the same on all ranks.
struct StepOutcome {
  bool applied = false;  ///< false: the loss or a gradient was not finite, and the weights are as before
  double mean_loss = 0;  ///< over the samples of the step, by their weights, in float precision
  double exchange_seconds = 0;      ///< spent with other ranks in update()
  bool exchanged = false;           ///< a local step that ended with an average, well or not
  double product_seconds = 0;       ///< spent there on products of factors, which are part of backward
  std::vector<Index> stopped = {};  ///< replicas that stopped after a bad number
};

/// State that must have the same bits on several ranks.
struct ReplicatedState {
  Communicator* among = nullptr;  ///< the ranks; null, on all of them: nothing is to be compared now
  std::vector<NamedSpan> parts;   ///< parts of the state, in the same order on all of them
};

class SynchronousStrategy;
class AsynchronousStrategy;

class Strategy {
 public:
  virtual ~Strategy() = default;

  /// *Local.* The weights that a replica hosted here computes with. Initialise those of replica 0, on rank 0,
  /// before start().
  virtual std::span<Scalar> weights(Index replica) = 0;
  /// *Local.* This strategy, if its ranks take each step together; else null.
  virtual SynchronousStrategy* synchronous() { return nullptr; }
  /// *Local.* This strategy, if its workers are asynchronous; else null.
  virtual AsynchronousStrategy* asynchronous() { return nullptr; }

  /// *Local, any thread.* Memory for one more arena of gradients, zeroed, which the strategy owns; empty:
  /// they may lie anywhere.
  virtual std::span<Scalar> gradient_arena() { return {}; }
  /// *Local.* Null where replicas leave whole gradients in their arenas.
  virtual FactoredGradients* factored_gradients() { return nullptr; }
  /// *Local.* The algorithm of the exchange, if there is a choice (Reducer::algorithm()); else "".
  virtual std::string algorithm() const { return {}; }
  /// *Collective.* Afterwards all replicas start from replica 0's weights.
  virtual void start() = 0;
  /// *Collective, between two steps.* The one true model, on every rank: for evaluation and the model file.
  /// Valid until the next step.
  virtual std::span<const Scalar> gather_model() = 0;

  /// *Local.* For a run that resumes after so many steps: after start(), before saved_state().
  virtual void resume_after(Index /*steps*/) {}
  /// *Local, between two steps.* The state that the strategy keeps beside the weights that gather_model()
  /// gives. Its memory is read to save a run, and filled to resume one.
  virtual SavedState saved_state() = 0;

  /// The local sums of a bucket are final; buckets come in the plan's order.
  virtual void bucket_ready(const Bucket& bucket, const PartialGrads& partial) = 0;
  /// *Local.* Called between layers: lets the exchange make progress. How many buckets of the step are known
  /// to be complete, from the first on.
  virtual std::size_t progress() = 0;
  /// *Local.* Whether buckets are exchanged while backward goes on.
  virtual bool overlaps() const { return true; }
};

/// All ranks take each step together: bucket_ready() is collective.
class SynchronousStrategy : public Strategy {
 public:
  /// *Collective.* `samples[r]`: samples of replica r in this step; `weight`: as UpdateRequest::weight.
  virtual void begin_step(std::span<const Index> samples, double weight) = 0;
  /// *Local, in a step.* The arena in which this rank puts the sums of the gradients of what it owns of
  /// divided tensors (Plan::divided), before their buckets are ready; empty for a strategy that divides none.
  virtual std::span<Scalar> divided_gradients() { return {}; }
  /// *Collective.* Completes the exchange of gradients.
  virtual void finish_exchange() = 0;
  /// *Collective.* One update of the weights; afterwards weights() are the new ones on every worker.
  virtual StepOutcome update(const UpdateRequest& request) = 0;
  /// *Local.* Whether the step under way, or the next one between two steps, is local: no rank waits for
  /// another in it.
  virtual bool local() const { return false; }
  /// *Collective, between two steps.* The first bad number in a local step: "step 7: replica 3: the loss is
  /// not finite"; "" if there is none.
  virtual std::string late_bad_number() { return {}; }
  SynchronousStrategy* synchronous() final { return this; }
  /// *Local, between two steps.* Weights and optimizer state that are to be the same on several ranks. Who
  /// writes to them calls changed_replicated().
  virtual ReplicatedState replicated() { return {}; }
  /// *Collective.* After some ranks have written into replicated().
  virtual void changed_replicated() {}
};

/// The guarantees of a strategy; tests go through the catalog and verify each.
struct Promises {
  /// With ordered reduction: same bits for any number of ranks and threads, and as every other such strategy.
  bool same_bits = false;
  bool same_bits_alone = false;     ///< same_bits, but with bits that other strategies do not share
  bool identical_replicas = false;  ///< after each step all workers hold the same weights
  bool one_copy_per_node = false;   ///< the ranks of a node share one copy of weights and optimizer state
  bool divides_optimizer_state =
      false;                    ///< a rank holds the optimizer state of its share of the weights only
  bool divides_layers = false;  ///< ranks divide the units of split layers among themselves
  /// With ordered reduction: a run that resumes from a checkpoint, on any number of ranks, ends with the same
  /// bits as one that was not interrupted.
  bool exact_resume = false;
  /// The promises above hold for synchronous workers; with asynchronous ones a run can be recorded and
  /// repeated bit for bit.
  bool repeats_recorded_runs = false;
};

struct StrategyEntry {
  std::string name;
  std::string help;       ///< one sentence for the user
  std::string elsewhere;  ///< its names in other programs
  std::string choose;     ///< when to choose it
  Promises promises;
  bool has_servers = false;               ///< some ranks own the weights and host no replica
  bool sums_to_all = false;               ///< every worker gets the sum of all gradients
  bool weights_per_replica = false;       ///< each steps with its own, and they are averaged
  std::vector<std::string> options = {};  ///< keys that it reads beside those that all read
  std::function<std::vector<RankCosts>(const CostModelInput&)> costs;
  std::function<std::unique_ptr<Strategy>(const StrategyContext&)> make;
};

/// As distribute.strategy: the program chooses, by where the ranks are.
inline constexpr const char* kAutoStrategy = "auto";

/// Every strategy there is. To add one: src/README.md.
std::span<const StrategyEntry> strategy_catalog();

/// The strategy of that name; as long as nobody chose one (auto), allreduce, which runs anywhere.
/// Errors: ConfigError if there is none.
const StrategyEntry& strategy_entry(const std::string& name);

/// Whether each worker gets the whole sum, as it is: else distribute.algorithm has no effect.
bool uses_algorithm(const DistOptions& options);

/// How each rank adds the gradients of its replicas with these options.
LocalSums local_sums(const DistOptions& options);
/// The grain of the plan's slices: whole tensors, if their owners take steps for others that need such.
Grain owner_grain(const DistOptions& options, const OptimizerMemory& optimizer);

/// Whether so many ranks divide the units of split layers among themselves with these options.
bool divides_layers(const DistOptions& options, Index ranks);

/// The ranks that are servers with these options.
Index count_servers(const DistOptions& options);

}  // namespace lockstep
