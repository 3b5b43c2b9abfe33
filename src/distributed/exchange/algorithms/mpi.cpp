// The algorithm `mpi` leaves the sum to the MPI library: one MPI_Allreduce for each bucket. The library
// chooses the order of the additions, so its sum depends on the number of ranks. With ordered reduction the
// additions must follow the fixed tree; then the exchange is that of owner_reducer.cpp, messages between all
// pairs of ranks. Its buckets are nonblocking collectives. A trial of one of them says little about several
// during backward, which were slower than no overlap at all; so calibration leaves this algorithm out then
// (suffers_from_overlap).
#include "distributed/exchange/reducers.h"
#include "lockstep/base/aligned_buffer.h"

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

AlgorithmEntry mpi_entry() {
  return {.name = kMpiAlgorithm,
          .help =
              "MPI_Allreduce; with ordered reduction messages between all pairs, since MPI adds in an order "
              "of its own",
          .keeps_order = true,
          .suffers_from_overlap = true,
          .refusal = [](const Nodes&) { return std::string(); },
          .make = [](const ExchangeRequest& request) -> std::unique_ptr<Reducer> {
            if (request.options.reduction == Reduction::kOrdered) return make_owner_reducer(request);
            return std::make_unique<NativeReducer>(request.comm, request.overlaps);
          },
          .costs =
              [](const CostModelInput& question, Index rank) {
                return ExchangeCosts(question.plan, question.options, Delivery::kAllReduce).of(rank);
              }};
}

}  // namespace lockstep
