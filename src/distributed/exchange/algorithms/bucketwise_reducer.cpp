// An exchange in which each bucket has an algorithm of its own. Some algorithms have memory of their own for
// sums: a complete bucket goes where the first bucket's algorithm has its.
#include <algorithm>
#include <map>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/text.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/exchange.h"

namespace lockstep {
namespace {

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
  BucketwiseReducer(const AlgorithmContext& context, const AlgorithmChoice& choice, const std::string& remark)
      : plan_(context.plan), algorithm_(describe(plan_, choice) + remark) {
    for (std::size_t bucket = 0; bucket < choice.size(); ++bucket) {
      const auto known = std::ranges::find(groups_, choice[bucket], &Group::entry);
      const auto group = static_cast<std::size_t>(known - groups_.begin());
      if (known == groups_.end()) add_group(choice[bucket]);
      Plan& plan = *groups_[group].plan;
      group_of_.push_back(group);
      place_of_.push_back(plan.buckets.size());
      plan.buckets.push_back(plan_.buckets[bucket]);
      plan.slices.push_back(plan_.slices[bucket]);
    }
    for (Group& group : groups_) {
      AlgorithmContext own{.comm = context.comm,
                           .plan = *group.plan,
                           .reduction = context.reduction,
                           .gradient_arenas = context.gradient_arenas,
                           .ranks_per_node = context.ranks_per_node,
                           .overlaps = context.overlaps};
      group.reducer = group.entry->make(own);
    }
  }

  std::span<Scalar> shared_arena() override {
    for (Group& group : groups_) {
      if (group.entry->in_node_memory) return group.reducer->shared_arena();
    }
    return {};
  }

  std::string algorithm() const override { return algorithm_; }

  void begin_step(std::span<const Index> samples) override {
    started_ = 0;
    complete_ = 0;
    for (Group& group : groups_) group.reducer->begin_step(samples);
  }

  void bucket_ready(const Bucket& bucket, const PartialGrads& partial) override {
    groups_[group_of_[started_++]].reducer->bucket_ready(bucket, partial);
  }

  std::size_t progress() override {
    for (Group& group : groups_) group.complete = group.reducer->progress();
    while (complete_ < started_ && place_of_[complete_] < groups_[group_of_[complete_]].complete) {
      bring_home(complete_++);
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
  struct Group {
    const AlgorithmEntry* entry;
    std::unique_ptr<Plan> plan;  // plan of the group's buckets only
    std::unique_ptr<Reducer> reducer = {};
    std::size_t complete = 0;  // buckets of the group
  };

  void bring_home(std::size_t bucket) {
    const std::span<const Scalar> from = groups_[group_of_[bucket]].reducer->sum();
    if (from.data() == sum().data()) return;
    const Range range = plan_.buckets[bucket].range;
    std::ranges::copy(part(from, range), part(sum(), range).begin());
  }

  void add_group(const AlgorithmEntry* entry) {
    groups_.push_back({entry, std::make_unique<Plan>(plan_)});
    groups_.back().plan->buckets.clear();
    groups_.back().plan->slices.clear();
  }

  const Plan& plan_;
  std::string algorithm_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;  // the group of each bucket
  std::vector<std::size_t> place_of_;  // the number of each bucket in its group
  std::size_t started_ = 0;
  std::size_t complete_ = 0;
};

}  // namespace

std::unique_ptr<Reducer> make_bucketwise_reducer(const AlgorithmContext& context,
                                                 const AlgorithmChoice& choice, const std::string& remark) {
  return std::make_unique<BucketwiseReducer>(context, choice, remark);
}

}  // namespace lockstep
