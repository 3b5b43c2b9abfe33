#include "bucket_sender.h"

#include <algorithm>

#include "lockstep/base/timer.h"
#include "lockstep/base/trace.h"
#include "lockstep/comm/watchdog.h"

namespace lockstep {

BucketSender::BucketSender(Communicator& comm, const Plan& plan, Strategy& strategy,
                           LocalGradients& gradients, ThreadTeam& team, ProgressThread* progress)
    : comm_(comm),
      plan_(plan),
      strategy_(strategy),
      gradients_(gradients),
      team_(team),
      progress_thread_(progress),
      ready_from_(static_cast<std::size_t>(plan.threads)),
      bucket_left_(plan.buckets.size()) {}

void BucketSender::begin_step(Measured measured) {
  sent_ = 0;
  measured_ = comm_.size() > 1 ? measured : Measured::kNothing;
  if (measured_ == Measured::kExchangeOnly && plan_.buckets.size() == 1) measured_ = Measured::kNothing;
  time_ = {};
  arrivals_.clear();
  arrived_ = false;
  complete_ = 0;
  time_.exchange_only = measured_ == Measured::kExchangeOnly;
  early_ = !time_.exchange_only && !nothing_to_hide();
  for (std::atomic<Index>& offset : ready_from_) offset = plan_.gradient_size;
}

void BucketSender::ready_from(Index thread, Index offset, Index first) {
  at(ready_from_, thread).store(offset, std::memory_order_release);
  if (thread == 0) send_ready(first);
}

void BucketSender::wait_for_all() {
  const Stopwatch wait;
  comm_.barrier();
  const double seconds = wait.seconds();
  time_.waiting += seconds;
  time_.exchange += seconds;
}

// All that this rank has to do before the last bucket is done.
void BucketSender::arrive() {
  if (!arrived_) arrivals_.push_back({trace_clock(), 0});
  arrived_ = true;
}

void BucketSender::sync(const std::function<void()>& together) {
  const TraceSpan span(TraceKind::kSync, std::ssize(arrivals_));
  Arrival arrival{trace_clock(), 0};
  together();
  arrival.left = trace_clock();
  time_.exchange += 1e-9 * static_cast<double>(arrival.left - arrival.arrived);
  arrivals_.push_back(arrival);
}

// Thread 0 alone starts messages. Buckets leave in the order of the plan, each once every thread has it.
void BucketSender::send_ready(Index first) {
  if (!early_) return;
  Index complete = first;
  for (const std::atomic<Index>& offset : ready_from_) {
    complete = std::max(complete, offset.load(std::memory_order_acquire));
  }
  send_from(complete, nullptr);
  if (progress_thread_ != nullptr && sent_ > 0) progress_thread_->resume();
}

void BucketSender::end_step() {
  if (progress_thread_ != nullptr) progress_thread_->pause();
  if (!early_) arrive();
  if (time_.exchange_only) wait_for_all();
  send_from(0, &team_);
}

void BucketSender::note_end() {
  note_complete(sent_);
  const std::int64_t now = trace_clock();
  arrivals_.back().left = now;
  trace_event(TraceKind::kExchange, arrivals_.back().arrived, now, std::ssize(arrivals_) - 1);
}

void BucketSender::note_complete(std::size_t buckets) {
  if (!trace_records() || comm_.size() == 1) return;
  const std::int64_t now = trace_clock();
  for (; complete_ < std::min(buckets, sent_); ++complete_) {
    trace_event(TraceKind::kBucket, bucket_left_[complete_], now, static_cast<Index>(complete_));
  }
}

// `team`: at rest, or null.
void BucketSender::send_from(Index complete, ThreadTeam* team) {
  const std::vector<Bucket>& buckets = plan_.buckets;
  while (sent_ < buckets.size() && complete <= buckets[sent_].range.begin) {
    if (sent_ + 1 == buckets.size()) arrive();
    note_phase(Phase::kCompute, static_cast<Index>(sent_));
    const Bucket& bucket = buckets[sent_++];
    static const PartialGrads kNothing;  // owners have the sums of what is divided
    const PartialGrads& partial = bucket.divided ? kNothing : gradients_.combine(bucket.range, team);
    if (trace_records()) bucket_left_[sent_ - 1] = trace_clock();
    const Stopwatch sending;
    strategy_.bucket_ready(bucket, partial);
    time_.exchange += sending.seconds();
  }
  const Stopwatch progressing;
  note_complete(strategy_.progress());
  time_.exchange += progressing.seconds();
}

}  // namespace lockstep
