// Each bucket goes through two phases. First every rank sends, to the owner of each slice, its partial sums
// of that slice, and the owner adds them: ordered, along the fixed tree; native, rank by rank. Then, if the
// sum is wanted everywhere, every owner sends its result to all. Which subtrees a rank sends follows from the
// plan and the samples of the step, so nothing about them is ever sent. A divided bucket has no phase: owners
// have put the sums where the results go. Ranks come to the second phase of a
// bucket at different moments, before or after other buckets leave: so both are messages between pairs, each
// on a channel of its own, and none is a collective. Buckets come to each phase in order, but while one is
// still in the second, those behind it go on.
#include <algorithm>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/exchange/reducer.h"

namespace lockstep {
namespace {

constexpr int kPartialSums = 0;  // channels
constexpr int kResults = 1;

class OwnerReducer final : public Reducer {
 public:
  OwnerReducer(Communicator& comm, const Plan& plan, Reduction reduction, Delivery delivery)
      : comm_(comm), plan_(plan), reduction_(reduction), delivery_(delivery) {
    if (comm.size() == 1) return;
    if (plan.divided.empty()) {
      memory_ = AlignedBuffer<Scalar>(plan.gradient_size);
    } else {
      pages_ = PageMemory(plan.gradient_size);
    }
    sum_ = plan.divided.empty() ? memory_.span() : pages_.span();
    result_ = sum_;
    states_.resize(plan.buckets.size());
    for (std::size_t i = 0; i < states_.size(); ++i) states_[i].slices = plan.slices[i];
  }

  void begin_step(std::span<const Index> samples) override {
    started_ = 0;
    summed_ = 0;
    finished_ = 0;
    if (!std::ranges::equal(samples, samples_)) {
      samples_.assign(samples.begin(), samples.end());
      plan_sums();
    }
  }

  void bucket_ready(const Bucket& bucket, const PartialGrads& partial) override {
    if (comm_.size() == 1) {
      result_ = partial.sums.front();
      finished_ = summed_ = ++started_;
      return;
    }
    BucketState& state = states_[started_++];
    if (bucket.divided) {
      progress();
      return;
    }
    prepare_pieces(state, partial);
    state.request = send_partial_sums(state, partial);
    progress();
  }

  std::size_t progress() override {
    while (summed_ < started_ && (plan_.buckets[summed_].divided || states_[summed_].request->test())) {
      add_up(summed_++);
    }
    while (finished_ < summed_ && (!states_[finished_].request || states_[finished_].request->test())) {
      states_[finished_++].request.reset();
    }
    return finished_;
  }

  std::span<Scalar> sum() override { return result_; }

  std::span<Scalar> finish() override {
    while (progress() < started_) {
      states_[summed_ < started_ ? summed_ : finished_].request->wait();
    }
    return result_;
  }

 private:
  struct BucketState {
    std::vector<Range> slices;              // the slice of each owner
    AlignedBuffer<Scalar> received;         // the others' partial sums of our slice, one after the other
    std::vector<std::span<Scalar>> pieces;  // partial sums of our slice, by subtree of the tree
    std::unique_ptr<Request> request;       // request of the phase under way; none: the bucket is complete
  };

  // Which subtrees each rank contributes, and how an owner adds them.
  void plan_sums() {
    subtrees_of_.clear();
    std::vector<Range> subtrees;
    for (const Range hosted : plan_.hosted) {
      subtrees_of_.push_back(contribution(hosted));
      subtrees.insert(subtrees.end(), subtrees_of_.back().begin(), subtrees_of_.back().end());
    }
    if (reduction_ == Reduction::kOrdered) {
      const Range whole{0, plan_.replicas};
      tree_ = plan_merges(subtrees, std::span(&whole, 1));
    } else {
      tree_ = {.merges = {}, .survivors = {0}, .subtrees = {}};
      for (Index subtree = 1; subtree < std::ssize(subtrees); ++subtree) tree_.merges.push_back({0, subtree});
    }
    foreign_subtrees_ = static_cast<Index>(subtrees.size() - at(subtrees_of_, comm_.rank()).size());
  }

  std::vector<Range> contribution(Range hosted) const {
    if (reduction_ == Reduction::kOrdered) return present_subtrees(plan_.replicas, hosted, samples_);
    return hosted.empty() ? std::vector<Range>{} : std::vector{hosted};
  }

  void prepare_pieces(BucketState& state, const PartialGrads& partial) {
    const Range mine = at(state.slices, comm_.rank());
    const Index needed = foreign_subtrees_ * mine.size();
    if (state.received.size() < needed) state.received = AlignedBuffer<Scalar>(needed);
    state.pieces.clear();
    Index offset = 0;
    for (std::size_t rank = 0; rank < subtrees_of_.size(); ++rank) {
      for (std::size_t i = 0; i < subtrees_of_[rank].size(); ++i) {
        if (static_cast<int>(rank) == comm_.rank()) {
          state.pieces.push_back(part(partial.sums[i], mine));
        } else {
          state.pieces.push_back(part(state.received.span(), {offset, offset + mine.size()}));
          offset += mine.size();
        }
      }
    }
  }

  std::unique_ptr<Request> send_partial_sums(const BucketState& state, const PartialGrads& partial) {
    sends_.clear();
    receives_.clear();
    std::size_t piece = 0;
    for (int peer = 0; peer < comm_.size(); ++peer) {
      const std::size_t count = at(subtrees_of_, peer).size();
      if (peer != comm_.rank()) {
        const Range theirs = at(state.slices, peer);
        for (const std::span<Scalar> sum : partial.sums) {
          sends_.push_back({peer, as_buffer(std::span<const Scalar>(part(sum, theirs)))});
        }
        for (std::size_t i = 0; i < count; ++i)
          receives_.push_back({peer, as_buffer(state.pieces[piece + i])});
      }
      piece += count;
    }
    return comm_.start_exchange(kPartialSums, sends_, receives_);
  }

  // All partial sums are there: on to the next phase.
  void add_up(std::size_t bucket) {
    if (plan_.buckets[bucket].divided) return;
    BucketState& state = states_[bucket];
    apply_merges(tree_.merges, state.pieces);
    const Range mine = at(state.slices, comm_.rank());
    std::ranges::copy(at(state.pieces, tree_.survivors.front()), part(sum_, mine).begin());
    state.request = delivery_ == Delivery::kAllReduce ? send_results(state) : nullptr;
  }

  std::unique_ptr<Request> send_results(const BucketState& state) {
    sends_.clear();
    receives_.clear();
    const auto slice = [&](int rank) { return as_buffer(part(sum_, at(state.slices, rank))); };
    for (int peer = 0; peer < comm_.size(); ++peer) {
      if (peer == comm_.rank()) continue;
      sends_.push_back({peer, slice(comm_.rank())});
      receives_.push_back({peer, slice(peer)});
    }
    return comm_.start_exchange(kResults, sends_, receives_);
  }

  Communicator& comm_;
  const Plan& plan_;
  Reduction reduction_;
  Delivery delivery_;
  AlignedBuffer<Scalar> memory_;
  PageMemory pages_;  // with divided tensors: a rank touches what it owns of them
  std::span<Scalar> sum_;
  std::span<Scalar> result_;
  std::vector<BucketState> states_;  // one for each bucket
  std::size_t started_ = 0;          // buckets that are in the first phase or past it
  std::size_t summed_ = 0;           // buckets past the first phase
  std::size_t finished_ = 0;         // buckets past both phases
  std::vector<Index> samples_;
  std::vector<std::vector<Range>> subtrees_of_;  // the subtrees that each rank contributes
  MergePlan tree_;
  Index foreign_subtrees_ = 0;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
};

}  // namespace

std::vector<Range> present_subtrees(Index replicas, Range hosted, std::span<const Index> samples) {
  std::vector<Range> present = complete_subtrees(replicas, hosted);
  std::erase_if(present, [&](Range subtree) {
    return std::ranges::all_of(part(samples, subtree), [](Index count) { return count == 0; });
  });
  return present;
}

std::unique_ptr<Reducer> make_owner_reducer(Communicator& comm, const Plan& plan, Reduction reduction,
                                            Delivery delivery) {
  return std::make_unique<OwnerReducer>(comm, plan, reduction, delivery);
}

}  // namespace lockstep
