// Which exchange by messages fits what is asked: the one place that chooses.
#include "lockstep/distributed/exchange/reducer.h"

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/exchange/codec.h"

namespace lockstep {
namespace {

class NativeReducer final : public Reducer {
 public:
  NativeReducer(Communicator& comm, bool overlaps) : comm_(comm), overlaps_(overlaps) {}

  void begin_step(std::span<const Index>) override {
    requests_.clear();
    complete_ = 0;
  }

  void bucket_ready(const Bucket& bucket, const PartialGrads& partial) override {
    sum_ = partial.sums.front();
    const Buffer buffer = as_buffer(part(sum_, bucket.range));
    requests_.emplace_back();
    if (comm_.size() == 1) return;
    if (overlaps_) {
      requests_.back() = comm_.start_all_reduce_sum(buffer);
    } else {
      // No backward is left to overlap with, and the blocking call is the faster one.
      comm_.all_reduce_sum(buffer);
    }
  }

  std::size_t progress() override {
    while (complete_ < requests_.size() && (!requests_[complete_] || requests_[complete_]->test())) {
      ++complete_;
    }
    return complete_;
  }

  std::span<Scalar> sum() override { return sum_; }

  std::span<Scalar> finish() override {
    for (const auto& request : requests_) {
      if (request) request->wait();
    }
    return sum_;
  }

 private:
  Communicator& comm_;
  bool overlaps_;
  std::span<Scalar> sum_;
  std::vector<std::unique_ptr<Request>> requests_;  // one for each bucket; none where it is complete at once
  std::size_t complete_ = 0;
};

}  // namespace

std::unique_ptr<Reducer> make_exact_reducer(Communicator& comm, const Plan& plan, Reduction reduction,
                                            Delivery delivery, bool overlaps) {
  if (reduction == Reduction::kNative && delivery == Delivery::kAllReduce) {
    return make_native_reducer(comm, overlaps);
  }
  return make_owner_reducer(comm, plan, reduction, delivery);
}

std::unique_ptr<Reducer> make_reducer(Communicator& comm, const Plan& plan, const DistOptions& options,
                                      Delivery delivery) {
  // With one rank nothing is sent, so nothing is lost.
  const bool exact = comm.size() == 1 || make_codec(options) == nullptr;
  if (!exact) return make_lossy_reducer(comm, plan, options, delivery);
  return make_exact_reducer(comm, plan, options.reduction, delivery, plan.buckets.size() > 1);
}

std::unique_ptr<Reducer> make_native_reducer(Communicator& comm, bool overlaps) {
  return std::make_unique<NativeReducer>(comm, overlaps);
}

}  // namespace lockstep
