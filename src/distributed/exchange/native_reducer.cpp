#include "lockstep/base/aligned_buffer.h"
#include "lockstep/distributed/exchange/make_reducer.h"
#include "lockstep/distributed/exchange/reducer.h"

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

std::unique_ptr<Reducer> make_native_reducer(Communicator& comm, bool overlaps) {
  return std::make_unique<NativeReducer>(comm, overlaps);
}

}  // namespace lockstep
