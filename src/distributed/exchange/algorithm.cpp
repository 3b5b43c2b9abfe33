// An exchange through a codec, or of slices, has one form. An exact sum to all goes by the algorithm of the
// request. `auto` measures which is fastest for which size, and each bucket goes by the fastest for its own;
// some of these have memory of their own for sums, and then a complete bucket is copied to where the first
// bucket's algorithm has its.
#include "lockstep/distributed/exchange/algorithm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>

#include "distributed/exchange/reducers.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/distributed/exchange/calibration.h"
#include "lockstep/distributed/exchange/codec.h"

namespace lockstep {
namespace {

const AlgorithmEntry& find_algorithm(const std::string& name) {
  return find_entry(algorithm_catalog(), "algorithm", name);
}

// "shared"; or "mpi up to 16.0 KiB, shared up to 4.0 MiB", of the sizes that there are.
std::string describe(const Plan& plan, const AlgorithmChoice& choice) {
  std::map<Index, std::string> by_size;
  for (std::size_t i = 0; i < choice.size(); ++i) by_size[plan.buckets[i].range.size()] = choice[i]->name;
  std::string text;
  for (auto size = by_size.begin(); size != by_size.end(); ++size) {
    const auto next = std::next(size);
    if (next != by_size.end() && next->second == size->second) continue;
    if (next == by_size.end() && text.empty()) return size->second;
    text += (text.empty() ? "" : ", ") + size->second + " up to " +
            human_bytes(size->first * Index{sizeof(Scalar)});
  }
  return text;
}

class BucketwiseReducer final : public Reducer {
 public:
  BucketwiseReducer(const ExchangeRequest& request, const AlgorithmChoice& choice) : plan_(request.plan) {
    for (std::size_t bucket = 0; bucket < choice.size(); ++bucket) {
      auto group = std::ranges::find(groups_, choice[bucket], &Group::entry);
      if (group == groups_.end()) {
        groups_.push_back({choice[bucket], plan_.without_buckets()});
        group = std::prev(groups_.end());
      }
      places_.push_back({&*group, group->plan.buckets.size()});
      group->plan.buckets.push_back(plan_.buckets[bucket]);
      group->plan.slices.push_back(plan_.slices[bucket]);
    }
    for (Group& group : groups_) group.reducer = group.entry->make(request.with_plan(group.plan));
  }

  std::span<Scalar> shared_arena() override {
    for (Group& group : groups_) {
      if (group.entry->in_node_memory) return group.reducer->shared_arena();
    }
    return {};
  }

  void begin_step(std::span<const Index> samples) override {
    started_ = 0;
    complete_ = 0;
    for (Group& group : groups_) group.reducer->begin_step(samples);
  }

  void bucket_ready(const Bucket& bucket, const PartialGrads& partial) override {
    places_[started_++].group->reducer->bucket_ready(bucket, partial);
  }

  std::size_t progress() override {
    for (Group& group : groups_) group.complete = group.reducer->progress();
    while (complete_ < started_ && places_[complete_].index < places_[complete_].group->complete) {
      copy_to_sum(complete_++);
    }
    return complete_;
  }

  std::span<Scalar> sum() override { return groups_.front().reducer->sum(); }

  std::span<Scalar> finish() override {
    for (Group& group : groups_) group.reducer->finish();
    progress();
    return sum();
  }

 private:
  // The buckets of one algorithm.
  struct Group {
    const AlgorithmEntry* entry;
    Plan plan;
    std::unique_ptr<Reducer> reducer = {};
    std::size_t complete = 0;
  };
  struct Place {
    Group* group;
    std::size_t index;  // of the bucket in the group
  };

  void copy_to_sum(std::size_t bucket) {
    const std::span<const Scalar> from = places_[bucket].group->reducer->sum();
    if (from.data() == sum().data()) return;
    const Range range = plan_.buckets[bucket].range;
    std::ranges::copy(part(from, range), part(sum(), range).begin());
  }

  const Plan& plan_;
  std::deque<Group> groups_;
  std::vector<Place> places_;  // by bucket
  std::size_t started_ = 0;
  std::size_t complete_ = 0;
};

std::unique_ptr<Reducer> make_alone(const ExchangeRequest& request, const AlgorithmEntry& entry) {
  std::unique_ptr<Reducer> reducer = entry.make(request);
  reducer->set_algorithm(entry.name);
  return reducer;
}

// Shared memory may not be to be had on some node: then all do without it.
std::unique_ptr<Reducer> make_automatic(const ExchangeRequest& request, const Nodes& nodes) {
  const auto candidates = automatic_algorithms(request.options, request.plan, nodes);
  try {
    if (!request.options.calibrate) return make_alone(request, *candidates.front());
    return make_bucketwise_reducer(request, calibrate(request, candidates));
  } catch (const AgreedError& error) {
    std::unique_ptr<Reducer> reducer = find_algorithm(kMpiAlgorithm).make(request);
    reducer->set_algorithm(fmt::format("{} (not through shared memory: {})", kMpiAlgorithm, error.what()));
    return reducer;
  }
}

}  // namespace

// One line for each file in algorithms/.
AlgorithmEntry mpi_entry();
AlgorithmEntry ring_entry();
AlgorithmEntry rabenseifner_entry();
AlgorithmEntry shared_entry();
AlgorithmEntry hierarchical_entry();

std::span<const AlgorithmEntry> algorithm_catalog() {
  static const std::array kEntries{mpi_entry(), ring_entry(), rabenseifner_entry(), shared_entry(),
                                   hierarchical_entry()};
  return kEntries;
}

const AlgorithmEntry& algorithm_by_rule(const Nodes& nodes) {
  const bool shares_memory = nodes.largest > 1 && nodes.neighbours;
  const char* name = nodes.count == 1 ? "shared" : "hierarchical";
  return find_algorithm(shares_memory ? name : kMpiAlgorithm);
}

AlgorithmCosts exchange_costs(const CostModelInput& question, Index rank) {
  const Plan& plan = question.plan;
  const DistOptions& options = question.options;
  if (plan.world == 1 || is_lossy(options)) {
    return ExchangeCosts(plan, options, Delivery::kAllReduce).of(rank);
  }
  const std::vector<Index> sizes = question.nodes();
  const Nodes nodes{.count = std::ssize(sizes), .largest = std::ranges::max(sizes)};
  const AlgorithmEntry& entry =
      options.algorithm == kAutoAlgorithm ? algorithm_by_rule(nodes) : find_algorithm(options.algorithm);
  return entry.costs(question, rank);
}

std::vector<const AlgorithmEntry*> possible_algorithms(const DistOptions& options, const Nodes& nodes) {
  std::vector<const AlgorithmEntry*> possible;
  for (const AlgorithmEntry& entry : algorithm_catalog()) {
    if (options.algorithm != kAutoAlgorithm && options.algorithm != entry.name) continue;
    if (!entry.allows(options.reduction)) continue;
    if (entry.refusal(nodes).empty()) possible.push_back(&entry);
  }
  return possible;
}

std::vector<const AlgorithmEntry*> automatic_algorithms(const DistOptions& options, const Plan& plan,
                                                        const Nodes& nodes) {
  const AlgorithmEntry& by_rule = algorithm_by_rule(nodes);
  if (!options.calibrate) return {&by_rule};
  const bool native_overlap = options.reduction == Reduction::kNative && plan.several_buckets();
  std::vector<const AlgorithmEntry*> all;
  for (const AlgorithmEntry& entry : algorithm_catalog()) {
    if (!entry.allows(options.reduction)) continue;
    if (native_overlap && entry.suffers_from_overlap) continue;
    if (entry.in_node_memory && &entry != &by_rule) continue;
    all.push_back(&entry);
  }
  return all;
}

std::string note_on_order(const DistOptions& options) {
  std::vector<std::string> names;
  for (const AlgorithmEntry& entry : algorithm_catalog()) {
    if (!entry.allows(options.reduction)) names.push_back(entry.name);
  }
  if (names.empty()) return "";
  return fmt::format("with ordered reduction not: {}, which add in an order of their own",
                     fmt::join(names, ", "));
}

std::unique_ptr<Reducer> make_bucketwise_reducer(const ExchangeRequest& request,
                                                 const AlgorithmChoice& choice) {
  const auto other = std::ranges::adjacent_find(choice, std::ranges::not_equal_to());
  if (other == choice.end()) return make_alone(request, *choice.front());
  auto reducer = std::make_unique<BucketwiseReducer>(request, choice);
  reducer->set_algorithm(describe(request.plan, choice));
  return reducer;
}

std::unique_ptr<Reducer> make_reducer(const ExchangeRequest& request) {
  const bool alone = request.comm.size() == 1;  // nothing is sent, so nothing is lost
  if (!alone && is_lossy(request.options)) return make_lossy_reducer(request);
  if (request.delivery == Delivery::kReduceScatter) return make_owner_reducer(request);
  if (alone) return find_algorithm(kMpiAlgorithm).make(request);
  if (request.algorithm == kMpiAlgorithm) return make_alone(request, find_algorithm(kMpiAlgorithm));
  const Nodes nodes = look_at_nodes(request.comm, request.ranks_per_node);
  if (request.algorithm == kAutoAlgorithm) return make_automatic(request, nodes);
  const AlgorithmEntry& entry = find_algorithm(request.algorithm);
  const std::string refusal = entry.refusal(nodes);
  if (!refusal.empty()) {
    throw AgreedError(fmt::format("refused: distribute.algorithm {}: {}", entry.name, refusal), kExitConfig);
  }
  return make_alone(request, entry);
}

}  // namespace lockstep
