#include "lockstep/train/bucket_sender.h"

#include <algorithm>
#include <limits>

#include "lockstep/base/timer.h"

namespace lockstep {
namespace {

constexpr Index kNothingDone = std::numeric_limits<Index>::max();

}  // namespace

BucketSender::BucketSender(Communicator& comm, const Plan& plan, Strategy& strategy,
                           LocalGradients& gradients)
    : comm_(comm),
      plan_(plan),
      strategy_(strategy),
      gradients_(gradients),
      at_node_(static_cast<std::size_t>(plan.threads)) {}

void BucketSender::begin_step(bool measure_waiting) {
  sent_ = 0;
  measure_waiting_ = measure_waiting && comm_.size() > 1;
  time_ = {};
  for (std::atomic<Index>& node : at_node_) node = kNothingDone;
}

void BucketSender::node_done(Index thread, Index node, Index first) {
  at_node_[static_cast<std::size_t>(thread)].store(node, std::memory_order_release);
  if (thread == 0) send_ready(first);
}

void BucketSender::wait_for_all() {
  if (!measure_waiting_) return;
  const Stopwatch wait;
  comm_.barrier();
  const double seconds = wait.seconds();
  time_.waiting = time_.waiting.value_or(0) + seconds;
  time_.exchange += seconds;
}

void BucketSender::meet(const std::function<void()>& together) {
  wait_for_all();
  const Stopwatch meeting;
  together();
  time_.exchange += meeting.seconds();
}

// Thread 0 alone talks to other ranks. Buckets leave in the order of the plan, each once every thread is past
// it.
void BucketSender::send_ready(Index first) {
  Index slowest = kPastAll;
  for (const std::atomic<Index>& node : at_node_) {
    slowest = std::max(slowest, node.load(std::memory_order_acquire));
  }
  const std::vector<Bucket>& buckets = plan_.buckets;
  while (sent_ < buckets.size() && std::max(slowest, first) <= buckets[sent_].layer) {
    if (sent_ + 1 == buckets.size()) wait_for_all();
    const Bucket& bucket = buckets[sent_++];
    const PartialGrads& partial = gradients_.combine(bucket.range);
    const Stopwatch sending;
    strategy_.bucket_ready(bucket, partial);
    time_.exchange += sending.seconds();
  }
  const Stopwatch progressing;
  strategy_.progress();
  time_.exchange += progressing.seconds();
}

}  // namespace lockstep
