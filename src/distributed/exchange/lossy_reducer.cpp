// The owner reducer's two phases with messages that lose something. Every rank has one partial sum. First it
// encodes each slice of it for the slice's owner, itself too, so that the sum does not depend on who owns
// what; the owner decodes the messages and adds them, rank by rank. Then, if the sum is wanted everywhere,
// the owner encodes its result and all ranks, the owner too, take what that message decodes to: so they all
// have the same bits (Tang et al. 2019, "DoubleSqueeze"). Sizes follow from the plan, so nothing about them
// is ever sent.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/exchange/reducer.h"
#include "lockstep/distributed/exchange/slice_codec.h"

namespace lockstep {
namespace {

constexpr int kLossyPartialSums = 0;  // channels
constexpr int kLossyResults = 1;

// Messages one after the other, each on a border of its own.
class Messages {
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

class LossyReducer final : public Reducer {
 public:
  LossyReducer(Communicator& comm, const Plan& plan, const DistOptions& options, Delivery delivery)
      : comm_(comm),
        me_(static_cast<std::size_t>(comm.rank())),
        delivery_(delivery),
        codec_(make_codec(options)),
        sum_(plan.gradient_size) {
    const auto slice_codec = [&](Range slice) {
      return SliceCodec(*codec_, slice, plan.loss_offset, options.error_feedback);
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

  void begin_step(std::span<const Index>) override {
    started_ = 0;
    finished_ = 0;
  }

  void bucket_ready(const Bucket&, const PartialGrads& partial) override {
    BucketState& state = states_[started_++];
    if (!partial.sums.empty()) encode(state, partial.sums.front());
    state.request = send_partial_sums(state);
    state.gathering = false;
    progress();
  }

  std::size_t progress() override {
    while (finished_ < started_ && states_[finished_].request->test()) advance();
    return finished_;
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

  std::span<Scalar> finish() override {
    while (finished_ < started_) {
      states_[finished_].request->wait();
      advance();
    }
    return sum_.span();
  }

 private:
  struct BucketState {
    std::vector<Range> slices;             // the slice of each owner
    SliceCodec result;                     // this rank's message with the sum of its own slice
    std::vector<SliceCodec> partial = {};  // codecs by owner: what this rank contributes to its slice
    Messages by_slice = {};                // messages by owner: what this rank contributes, later the results
    Messages by_contributor = {};          // messages of contributors_ about this rank's slice
    std::unique_ptr<Request> request = {};
    bool gathering = false;
  };

  void encode(BucketState& state, std::span<const Scalar> sum) {
    for (std::size_t rank = 0; rank < state.slices.size(); ++rank) {
      state.partial[rank].encode(part(sum, state.slices[rank]), state.by_slice[rank]);
    }
  }

  std::unique_ptr<Request> send_partial_sums(BucketState& state) {
    sends_.clear();
    receives_.clear();
    for (std::size_t i = 0; i < contributors_.size(); ++i) {
      if (contributors_[i] == me_) {
        send_to_others(state, [](std::size_t owner) { return owner; });
      } else {
        receives_.push_back({static_cast<int>(contributors_[i]), as_buffer(state.by_contributor[i])});
      }
    }
    return comm_.start_exchange(kLossyPartialSums, sends_, receives_);
  }

  std::unique_ptr<Request> send_results(BucketState& state) {
    sends_.clear();
    receives_.clear();
    send_to_others(state, [this](std::size_t) { return me_; });
    for (std::size_t rank = 0; rank < state.slices.size(); ++rank) {
      if (rank != me_) receives_.push_back({static_cast<int>(rank), as_buffer(state.by_slice[rank])});
    }
    return comm_.start_exchange(kLossyResults, sends_, receives_);
  }

  // Sends to each other rank the message about the slice of `owner(rank)`.
  template <class Owner>
  void send_to_others(BucketState& state, const Owner& owner) {
    for (std::size_t rank = 0; rank < state.slices.size(); ++rank) {
      if (rank == me_) continue;
      const std::span<const std::byte> message = state.by_slice[owner(rank)];
      sends_.push_back({static_cast<int>(rank), as_buffer(message)});
    }
  }

  // The first unfinished bucket's request is complete: on to its next phase, or to the next bucket.
  void advance() {
    BucketState& state = states_[finished_];
    if (state.gathering) {
      for (std::size_t rank = 0; rank < state.slices.size(); ++rank) {
        state.partial[rank].decode(state.by_slice[rank], part(sum_.span(), state.slices[rank]));
      }
      state.request.reset();
      ++finished_;
      return;
    }
    const std::span<Scalar> mine = part(sum_.span(), state.slices[me_]);
    std::ranges::fill(mine, Scalar{0});
    for (std::size_t i = 0; i < contributors_.size(); ++i) {
      state.result.add(contributors_[i] == me_ ? state.by_slice[me_] : state.by_contributor[i], mine);
    }
    if (delivery_ == Delivery::kReduceScatter) {
      ++finished_;
      return;
    }
    state.result.encode(mine, state.by_slice[me_]);
    state.request = send_results(state);
    state.gathering = true;
  }

  Communicator& comm_;
  std::size_t me_;
  Delivery delivery_;
  std::unique_ptr<Codec> codec_;
  AlignedBuffer<Scalar> sum_;
  std::vector<std::size_t> contributors_;  // ranks with replicas
  std::vector<BucketState> states_;        // one for each bucket
  std::size_t started_ = 0;
  std::size_t finished_ = 0;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
};

}  // namespace

std::unique_ptr<Reducer> make_lossy_reducer(Communicator& comm, const Plan& plan, const DistOptions& options,
                                            Delivery delivery) {
  return std::make_unique<LossyReducer>(comm, plan, options, delivery);
}

}  // namespace lockstep
