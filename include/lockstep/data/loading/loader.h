// The loader turns the sampler's ids into matrices: ahead of time, on its own thread, or where that would
// take a core from those that train, on their threads, each replica's just before its forward. It never
// touches MPI.
#pragma once

#include <array>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/base/types.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/loading/augmenter.h"
#include "lockstep/data/loading/load_records.h"
#include "lockstep/data/loading/sampler.h"
#include "lockstep/data/options.h"
#include "lockstep/math/matrix.h"
#include "lockstep/math/sample_weights.h"

namespace lockstep {

// Proof that training saw each sample as often as it should: sums over the ids of samples that do not depend
// on their order, so that all ranks can add theirs, compared with what the ids must add up to.

/// How many ids, and two sums of hashes of them. Sums of up to 2^40 ids do not overflow; another set of as
/// many ids has the same sums with a chance of one in 2^40.
struct IdSums {
  static constexpr std::size_t kNumbers = 3;
  std::array<Index, kNumbers> numbers{};

  void add(std::span<const Index> ids);
  void add(const IdSums& other);
  Index count() const { return numbers[0]; }
  bool operator==(const IdSums&) const = default;
};

/// Sums of the ids [begin, end), each counted `times` times.
IdSums sums_of(Range ids, Index times);

/// "" if the sums are those expected, else what is wrong with the samples of `epoch` (from 1).
std::string compare_sums(const IdSums& found, const IdSums& expected, Index epoch);

// The samples of a data set get weights from their classes, and from how many of their targets are there,
// beside the weights that it holds itself.

struct Weighing {
  std::span<const Scalar> of_class = {};  ///< the weight of each class, which outlives this; empty: 1
  bool masks = false;                     ///< targets may be missing
  bool of_positions = false;              ///< each target is a position, which has the weight of its class

  /// Whether samples of this data set have weights.
  bool has_weights(const DatasetInfo& info) const {
    return info.weighted || (!of_class.empty() && !of_positions);
  }
  /// Whether samples count with a share of their targets.
  bool has_shares() const { return masks || (!of_class.empty() && of_positions); }
};

/// Whether targets of a record can be missing: some of several, or those of its padding.
inline bool may_miss_targets(const TargetRule& rule, const DatasetInfo& info) {
  return rule.may_miss && (info.target_columns > 1 || info.has_lengths);
}

/// Takes the lengths, the last of label_columns() columns, out of `labels`, as Records::gather writes them,
/// if records have any; gives the columns before them.
Matrix take_lengths(const DatasetInfo& info, Matrix& labels, std::span<Scalar> lengths);

/// Turns the columns that this gives into target_columns, packed at their start. `weights`: becomes the
/// weight of each row; not written if samples have none. `present`: becomes the number of targets of each
/// row, or the sum of the weights of its positions; not written unless has_shares().
void weigh(const Weighing& weighing, const DatasetInfo& info, Matrix& labels, std::span<Scalar> weights,
           std::span<Scalar> present);

/// The samples of one replica in one step.
struct ReplicaBatch {
  Index rows = 0;
  /// Whoever trains on them calls it first, once a step, from any thread; until then only `rows` is there.
  /// Throws what the loader throws. Null: all is there. Not called for 0 rows.
  std::function<void()> prepare = {};
  AlignedBuffer<Scalar> features;      ///< rows x features, then unused memory
  AlignedBuffer<Scalar> targets;       ///< rows x target_columns, then unused memory
  AlignedBuffer<Scalar> weights = {};  ///< rows, then unused memory; empty where samples have none
  AlignedBuffer<Scalar> present = {};  ///< how many targets a row has; empty where none is missing
  AlignedBuffer<Scalar> lengths = {};  ///< positions that count; empty where all do
  Index target_columns = 1;
  IdSums ids = {};  ///< sums over the ids of the samples

  /// Weights of some of the rows.
  SampleWeights weights_of(Range range) const {
    SampleWeights of{.values = {}, .present = {}, .targets = target_columns};
    if (weights.size() > 0) of.values = part(weights.span(), range);
    if (present.size() > 0) of.present = part(present.span(), range);
    return of;
  }
  /// Lengths of some of the rows; none where all positions count.
  std::span<const Scalar> lengths_of(Range range) const {
    return lengths.size() > 0 ? part(lengths.span(), range) : std::span<const Scalar>();
  }
};

/// The samples of the replicas that one rank hosts, in order of replica.
struct StepBatch {
  Index step = 0;
  std::vector<ReplicaBatch> replicas;
  std::vector<Index> rows;  ///< rows of every replica, wherever it is hosted
};

struct LoaderOptions {
  Range replicas;      ///< hosted here
  Range steps;         ///< the steps to deliver, in order
  Index prefetch = 2;  ///< steps prepared ahead (0: none, see ReplicaBatch::prepare); memory is allocated
                       ///< once, for prefetch + 1 steps
  ThreadTeam* team = nullptr;  ///< a team at rest in next(), which shares its own work with it; null: alone
  const Augmenter* augmenter = nullptr;  ///< null: the samples as they are, normalised
  Weighing weighing = {};
  /// The part of the records that is held here: a batch has no features, and perhaps no targets and weights
  /// either, where these are not held. Without any there is nothing to prepare ahead.
  RecordPart part = RecordPart::kAll;
};

/// Steps prepared ahead with these options: as many as they ask for; if they do not, none where the thread
/// for it would have no core of its own, unless it waits for files anyway.
Index steps_ahead(const DataOptions& options, bool spare_core, bool streamed);

class Loader : NoCopy {
 public:
  /// All references, and the augmenter, must outlive the loader.
  Loader(const Records& records, const DatasetInfo& info, const Sampler& sampler,
         const Normaliser& normaliser, const LoaderOptions& options);
  ~Loader();

  /// The next step's samples; valid until the next call. *Blocking* until they are ready; without prefetch
  /// they are left to ReplicaBatch::prepare, unless they have weights, which a step asks for before it
  /// begins. An error on the loader's thread is thrown here. Errors: logic_error if no steps are left.
  const StepBatch& next();

 private:
  bool reads() const { return options_.part != RecordPart::kNothing; }
  // Samples do not all count once.
  bool weighs() const {
    return reads() && (options_.weighing.has_weights(info_) || options_.weighing.has_shares());
  }
  // Steps that are prepared ahead.
  Index ahead() const { return reads() ? options_.prefetch : 0; }
  void fill_ahead();
  StepBatch& begin(Index step);
  void fill_together(StepBatch& batch);
  // `i`: number among the hosted replicas.
  void fill(StepBatch& batch, Index i);
  void choose(StepBatch& batch, Index i);
  StepBatch& slot(Index step) { return at(ring_, step % std::ssize(ring_)); }

  const Records& records_;
  const DatasetInfo& info_;
  const Sampler& sampler_;
  const Normaliser& normaliser_;
  const LoaderOptions options_;
  std::vector<StepBatch> ring_;          // step s lives in slot s mod (prefetch + 1)
  std::vector<std::vector<Index>> ids_;  // ids in the step that is being prepared, by replica

  std::mutex mutex_;  // guards the members below
  std::condition_variable filled_one_;
  std::condition_variable took_one_;
  Index filled_end_;  // steps before it are in the ring
  Index taken_end_;   // steps before it were handed out; the last of them is still being read
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::jthread thread_;
};

}  // namespace lockstep
