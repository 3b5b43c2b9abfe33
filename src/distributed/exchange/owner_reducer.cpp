// Each bucket goes through two phases. First every rank sends, to the owner of each slice, its partial sums
// of that slice, and the owner adds them: ordered, along the fixed tree; native, rank by rank. Then, if the
// sum is wanted everywhere, every owner sends its result to all. Which subtrees a rank sends follows from the
// plan and the samples of the step, so nothing about them is ever sent. A divided bucket has no phase: owners
// have put the sums where the results go. Ranks come to the second phase of a bucket at different moments,
// before or after other buckets leave: so both are messages between pairs, each on a channel of its own, and
// none is a collective. Buckets come to each phase in order, but while one is still in the second, those
// behind it go on.
//
// Through a codec the two phases have messages that lose something. Every rank has one partial sum. First it
// encodes each slice of it for the slice's owner, itself too, so that the sum does not depend on who owns
// what; the owner decodes the messages and adds them, rank by rank. Then, if the sum is wanted everywhere,
// the owner encodes its result and all ranks, the owner too, take what that message decodes to: so they all
// have the same bits (Tang et al. 2019, "DoubleSqueeze"). Sizes follow from the plan, so nothing about them
// is ever sent.
#include <fmt/format.h>

#include <algorithm>

#include "distributed/exchange/reducers.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/exchange/codec.h"

namespace lockstep {
namespace {

constexpr int kPartialSums = 0;  // channels
constexpr int kResults = 1;

// Buckets on their way through the two phases.
class TwoPhaseReducer : public Reducer {
 public:
  void begin_step(std::span<const Index>) override { started_ = summed_ = finished_ = 0; }

  void bucket_ready(const Bucket& bucket, const PartialGrads& partial) override {
    requests_[started_] = send_partial_sums(started_, bucket, partial);
    ++started_;
    progress();
  }

  std::size_t progress() override {
    for (; summed_ < started_ && arrived(summed_); ++summed_) requests_[summed_] = add_up(summed_);
    for (; finished_ < summed_ && arrived(finished_); ++finished_) {
      if (requests_[finished_]) take_results(finished_);
      requests_[finished_].reset();
    }
    return finished_;
  }

  std::span<Scalar> finish() override {
    while (progress() < started_) requests_[summed_ < started_ ? summed_ : finished_]->wait();
    return sum();
  }

 protected:
  explicit TwoPhaseReducer(const ExchangeRequest& request)
      : comm_(request.comm),
        to_all_(request.delivery == Delivery::kAllReduce),
        requests_(request.plan.buckets.size()) {}

  int rank() const { return comm_.rank(); }
  std::unique_ptr<Request> exchange(int channel) {
    auto request = comm_.start_exchange(channel, sends_, receives_);
    sends_.clear();
    receives_.clear();
    return request;
  }

  Communicator& comm_;
  const bool to_all_;
  std::vector<Send> sends_;  // of the exchange that begins
  std::vector<Receive> receives_;

 private:
  // The first phase begins; null: there is nothing to wait for.
  virtual std::unique_ptr<Request> send_partial_sums(std::size_t number, const Bucket& bucket,
                                                     const PartialGrads& partial) = 0;
  // All partial sums are there: adds them, and begins the second phase. Null: the bucket is complete.
  virtual std::unique_ptr<Request> add_up(std::size_t number) = 0;
  // All results are there.
  virtual void take_results(std::size_t) {}

  bool arrived(std::size_t number) const { return !requests_[number] || requests_[number]->test(); }

  std::vector<std::unique_ptr<Request>> requests_;  // of the phase that each bucket is in
  std::size_t started_ = 0;                         // buckets that are in the first phase or past it
  std::size_t summed_ = 0;                          // buckets past the first phase
  std::size_t finished_ = 0;                        // buckets past both phases
};

class OwnerReducer final : public TwoPhaseReducer {
 public:
  explicit OwnerReducer(const ExchangeRequest& request)
      : TwoPhaseReducer(request),
        plan_(request.plan),
        reduction_(request.options.reduction),
        memory_(plan_, comm_.size() > 1 ? plan_.gradient_size : 0),
        result_(memory_.span()),
        states_(plan_.buckets.size()) {}

  void begin_step(std::span<const Index> samples) override {
    TwoPhaseReducer::begin_step(samples);
    if (std::ranges::equal(samples, samples_)) return;
    samples_.assign(samples.begin(), samples.end());
    plan_sums();
  }

  std::span<Scalar> sum() override { return result_; }

 private:
  struct BucketState {
    AlignedBuffer<Scalar> received;         // the others' partial sums of our slice, one after the other
    std::vector<std::span<Scalar>> pieces;  // partial sums of our slice, by subtree of the tree
  };

  // Which subtrees each rank contributes, and how an owner adds them.
  void plan_sums() {
    subtrees_of_.clear();
    std::vector<Range> subtrees;
    for (const Range hosted : plan_.hosted) {
      subtrees_of_.push_back(contributed_subtrees(reduction_, plan_.replicas, hosted, samples_));
      subtrees.insert(subtrees.end(), subtrees_of_.back().begin(), subtrees_of_.back().end());
    }
    tree_ = plan_partial_sums(reduction_, plan_.replicas, {0, plan_.replicas}, subtrees);
    foreign_subtrees_ = static_cast<Index>(subtrees.size() - at(subtrees_of_, rank()).size());
  }

  bool sends_nothing(const Bucket& bucket) const { return comm_.size() == 1 || bucket.divided; }

  std::unique_ptr<Request> send_partial_sums(std::size_t number, const Bucket& bucket,
                                             const PartialGrads& partial) override {
    if (comm_.size() == 1) result_ = partial.sums.front();
    if (sends_nothing(bucket)) return nullptr;
    BucketState& state = states_[number];
    const std::vector<Range>& slices = plan_.slices[number];
    const Range mine = at(slices, rank());
    const Index needed = foreign_subtrees_ * mine.size();
    if (state.received.size() < needed) state.received = AlignedBuffer<Scalar>(needed);
    state.pieces.clear();
    Index offset = 0;
    for (int peer = 0; peer < comm_.size(); ++peer) {
      const std::size_t count = at(subtrees_of_, peer).size();
      for (std::size_t i = 0; i < count; ++i) {
        if (peer == rank()) {
          state.pieces.push_back(part(partial.sums[i], mine));
          continue;
        }
        state.pieces.push_back(part(state.received.span(), {offset, offset + mine.size()}));
        receives_.push_back({peer, as_buffer(state.pieces.back())});
        offset += mine.size();
      }
      if (peer == rank()) continue;
      for (const std::span<Scalar> sum : partial.sums) {
        sends_.push_back({peer, as_buffer(part(sum, at(slices, peer)))});
      }
    }
    return exchange(kPartialSums);
  }

  std::unique_ptr<Request> add_up(std::size_t number) override {
    if (sends_nothing(plan_.buckets[number])) return nullptr;
    BucketState& state = states_[number];
    const auto slice = [&](int owner) { return part(result_, at(plan_.slices[number], owner)); };
    apply_merges(tree_.merges, state.pieces);
    std::ranges::copy(at(state.pieces, tree_.survivors.front()), slice(rank()).begin());
    if (!to_all_) return nullptr;
    for (int peer = 0; peer < comm_.size(); ++peer) {
      if (peer == rank()) continue;
      sends_.push_back({peer, as_buffer(slice(rank()))});
      receives_.push_back({peer, as_buffer(slice(peer))});
    }
    return exchange(kResults);
  }

  const Plan& plan_;
  Reduction reduction_;
  ArenaMemory memory_;
  std::span<Scalar> result_;         // of one rank alone its partial sum
  std::vector<BucketState> states_;  // one for each bucket
  std::vector<Index> samples_;
  std::vector<std::vector<Range>> subtrees_of_;  // the subtrees that each rank contributes
  MergePlan tree_;
  Index foreign_subtrees_ = 0;
};

// Encoded messages one after the other, each on a border of its own.
class EncodedMessages {
 public:
  void add(Index bytes) {
    ranges_.push_back({size_, size_ + bytes});
    size_ = round_up(size_ + bytes, kAlignmentBytes);
  }
  void allocate() { memory_ = AlignedBuffer<std::byte>(size_); }
  std::span<std::byte> operator[](std::size_t message) { return part(memory_.span(), ranges_[message]); }

 private:
  std::vector<Range> ranges_;
  Index size_ = 0;
  AlignedBuffer<std::byte> memory_;
};

class LossyReducer final : public TwoPhaseReducer {
 public:
  explicit LossyReducer(const ExchangeRequest& request)
      : TwoPhaseReducer(request),
        me_(static_cast<std::size_t>(rank())),
        codec_(make_codec(request.options)),
        sum_(request.plan.gradient_size) {
    const Plan& plan = request.plan;
    const auto slice_codec = [&](Range slice) {
      return SliceCodec(*codec_, slice, plan.loss_offset, request.options.error_feedback);
    };
    for (std::size_t rank = 0; rank < plan.hosted.size(); ++rank) {
      if (!plan.hosted[rank].empty()) contributors_.push_back(rank);
    }
    for (const std::vector<Range>& slices : plan.slices) {
      BucketState state{.slices = slices, .result = slice_codec(slices[me_])};
      for (const Range slice : slices) {
        state.partial.push_back(slice_codec(slice));
        state.by_slice.add(state.partial.back().bytes());
      }
      for (const std::size_t rank : contributors_) {
        state.by_contributor.add(rank == me_ ? 0 : state.result.bytes());
      }
      state.by_slice.allocate();
      state.by_contributor.allocate();
      states_.push_back(std::move(state));
    }
  }

  std::span<Scalar> sum() override { return sum_.span(); }

  // The losses belong to this number of ranks.
  void add_saved(SavedState& state) override {
    for (BucketState& bucket : states_) {
      bucket.result.add_saved(state, fmt::format("lost.{}.results", comm_.size()));
      for (SliceCodec& slice : bucket.partial) {
        slice.add_saved(state, fmt::format("lost.{}.{}", comm_.size(), me_));
      }
    }
  }

 private:
  struct BucketState {
    std::vector<Range> slices;             // the slice of each owner
    SliceCodec result;                     // this rank's message with the sum of its own slice
    std::vector<SliceCodec> partial = {};  // codecs by owner: what this rank contributes to its slice
    EncodedMessages by_slice = {};         // by owner: what this rank contributes, later the results
    EncodedMessages by_contributor = {};   // messages of contributors_ about this rank's slice
  };

  std::unique_ptr<Request> send_partial_sums(std::size_t number, const Bucket&,
                                             const PartialGrads& partial) override {
    BucketState& state = states_[number];
    for (std::size_t owner = 0; !partial.sums.empty() && owner < state.slices.size(); ++owner) {
      state.partial[owner].encode(part(partial.sums.front(), state.slices[owner]), state.by_slice[owner]);
    }
    for (std::size_t i = 0; i < contributors_.size(); ++i) {
      if (contributors_[i] == me_) {
        send_to_others(state, [](std::size_t owner) { return owner; });
      } else {
        receives_.push_back({static_cast<int>(contributors_[i]), as_buffer(state.by_contributor[i])});
      }
    }
    return exchange(kPartialSums);
  }

  std::unique_ptr<Request> add_up(std::size_t number) override {
    BucketState& state = states_[number];
    const std::span<Scalar> mine = part(sum_.span(), state.slices[me_]);
    std::ranges::fill(mine, Scalar{0});
    for (std::size_t i = 0; i < contributors_.size(); ++i) {
      state.result.add(contributors_[i] == me_ ? state.by_slice[me_] : state.by_contributor[i], mine);
    }
    if (!to_all_) return nullptr;
    state.result.encode(mine, state.by_slice[me_]);
    send_to_others(state, [this](std::size_t) { return me_; });
    for (std::size_t owner = 0; owner < state.slices.size(); ++owner) {
      if (owner != me_) receives_.push_back({static_cast<int>(owner), as_buffer(state.by_slice[owner])});
    }
    return exchange(kResults);
  }

  void take_results(std::size_t number) override {
    BucketState& state = states_[number];
    for (std::size_t owner = 0; owner < state.slices.size(); ++owner) {
      state.partial[owner].decode(state.by_slice[owner], part(sum_.span(), state.slices[owner]));
    }
  }

  // Sends to each other rank the message about the slice of `owner(rank)`.
  template <class Owner>
  void send_to_others(BucketState& state, const Owner& owner) {
    for (std::size_t rank = 0; rank < state.slices.size(); ++rank) {
      if (rank != me_) sends_.push_back({static_cast<int>(rank), as_buffer(state.by_slice[owner(rank)])});
    }
  }

  std::size_t me_;
  std::unique_ptr<Codec> codec_;
  AlignedBuffer<Scalar> sum_;
  std::vector<std::size_t> contributors_;  // ranks with replicas
  std::vector<BucketState> states_;        // one for each bucket
};

}  // namespace

std::unique_ptr<Reducer> make_owner_reducer(const ExchangeRequest& request) {
  return std::make_unique<OwnerReducer>(request);
}

std::unique_ptr<Reducer> make_lossy_reducer(const ExchangeRequest& request) {
  return std::make_unique<LossyReducer>(request);
}

}  // namespace lockstep
