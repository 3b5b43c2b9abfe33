#include "lockstep/base/aligned_buffer.h"
#include "lockstep/dist/reducer.h"

namespace lockstep {
namespace {

class NativeReducer final : public Reducer {
 public:
  NativeReducer(Communicator& comm, const Plan& plan)
      : comm_(comm), single_bucket_(plan.buckets.size() == 1) {}

  void begin_step(std::span<const Index>) override { requests_.clear(); }

  void bucket_ready(const Bucket& bucket, const PartialGrads& partial) override {
    sum_ = partial.sums.front();
    if (comm_.size() == 1) return;
    const Buffer buffer = as_buffer(part(sum_, bucket.range));
    if (single_bucket_) {
      // Nothing is left to hide behind, and the blocking call is the faster one.
      comm_.all_reduce_sum(buffer);
    } else {
      requests_.push_back(comm_.start_all_reduce_sum(buffer));
    }
  }

  void progress() override {
    for (const auto& request : requests_) {
      if (!request->test()) return;
    }
  }

  std::span<Scalar> finish() override {
    for (const auto& request : requests_) request->wait();
    return sum_;
  }

 private:
  Communicator& comm_;
  bool single_bucket_;
  std::span<Scalar> sum_;
  std::vector<std::unique_ptr<Request>> requests_;
};

}  // namespace

std::unique_ptr<Reducer> make_native_reducer(Communicator& comm, const Plan& plan) {
  return std::make_unique<NativeReducer>(comm, plan);
}

}  // namespace lockstep
