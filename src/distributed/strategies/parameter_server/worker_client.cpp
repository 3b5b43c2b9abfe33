#include "worker_client.h"

#include <fmt/format.h>

#include <cmath>

#include "lockstep/base/aligned_buffer.h"

namespace lockstep {

WorkerClient::WorkerClient(Communicator& comm, const Service& service, const DistOptions& options)
    : comm_(comm),
      service_(service),
      held_(Timeouts::kHeld * options.timeout_seconds),
      answer_(Timeouts::kAnswer * options.timeout_seconds),
      collects_(options.backup_workers > 0),
      codec_(make_codec(options)),
      versions_(service.slices.size()),
      headers_(service.slices.size()) {
  if (codec_ == nullptr) return;
  const Index end = std::ranges::max(service.slices, {}, &Range::end).end;  // losses go in the headers
  for (const Range slice : service.slices) {
    encoders_.emplace_back(*codec_, slice, end, options.error_feedback);
    encoded_.emplace_back(encoders_.back().bytes());
  }
}

ConstBuffer WorkerClient::message_of(std::size_t server, std::span<const Scalar> gradient) {
  const std::span<const Scalar> slice = part(gradient, service_.slices[server]);
  if (codec_ == nullptr) return as_buffer(slice);
  encoders_[server].encode(slice, encoded_[server].span());
  return as_buffer(encoded_[server].span());
}

void WorkerClient::send_header(std::size_t server, const MessageHeader& header) {
  const int rank = service_.server_rank(server);
  answer_.wait(*comm_.start_send(kHeaders, rank, bytes_of(header)), rank);
}

std::optional<Assignment> WorkerClient::ask(bool ends_early) {
  PullReply reply;
  const int first = service_.server_rank(0);
  const auto answer = comm_.start_receive(kPullReplies, first, bytes_of(reply));
  send_header(0, {.kind = MessageKind::kAsk, .ends_early = ends_early ? 1 : 0});
  const Stopwatch waiting;
  held_.wait(*answer, first);
  if (reply.granted == 0) return std::nullopt;
  slowest_ = reply.slowest;
  reply.assignment.waited = waiting.seconds();
  return reply.assignment;
}

void WorkerClient::pull(Index step, std::span<Scalar> weights) {
  std::vector<std::unique_ptr<Request>> answers;  // version and weights, by server
  for (std::size_t server = 0; server < service_.slices.size(); ++server) {
    const int rank = service_.server_rank(server);
    answers.push_back(comm_.start_receive(kVersions, rank, as_buffer(std::span(&versions_[server], 1))));
    answers.push_back(comm_.start_receive(kWeights, rank, as_buffer(part(weights, service_.slices[server]))));
  }
  for (std::size_t server = 0; server < service_.slices.size(); ++server) {
    send_header(server, {.kind = MessageKind::kPull, .step = step, .slowest = slowest_});
  }
  if (collects_) wait_for_any(answers);
  for (std::size_t i = 0; i < answers.size(); ++i) answer_.wait(*answers[i], service_.server_rank(i / 2));
}

// Waits for the first answer, which comes once the step before is done; then all servers are to answer.
void WorkerClient::wait_for_any(const std::vector<std::unique_ptr<Request>>& answers) const {
  const auto answered = [&] {
    return std::ranges::any_of(answers, [](const auto& answer) { return answer->test(); });
  };
  held_.wait(answered, [first = service_.server_rank(0), servers = service_.servers] {
    return servers == 1 ? fmt::format("rank {}", first)
                        : fmt::format("ranks {} to {}", first, first + servers - 1);
  });
}

void WorkerClient::push(const Contribution& contribution, std::span<const Scalar> gradient) {
  for (std::size_t server = 0; server < service_.slices.size(); ++server) {
    const int rank = service_.server_rank(server);
    headers_[server] = {.kind = MessageKind::kPush,
                        .step = contribution.step,
                        .version = versions_[server],
                        .samples = contribution.samples,
                        .weight = contribution.weight,
                        .loss = contribution.loss,
                        .correct = contribution.correct,
                        .lr = contribution.lr,
                        .moments = std::ssize(contribution.moments)};
    pushes_.push_back(comm_.start_send(kHeaders, rank, bytes_of(headers_[server])));
    pushes_.push_back(comm_.start_send(kGradients, rank, message_of(server, gradient)));
  }
  if (contribution.moments.empty()) return;
  const int first = service_.server_rank(0);
  answer_.wait(*comm_.start_send(kMoments, first, as_buffer(contribution.moments)), first);
}

void WorkerClient::finish_push() {
  for (std::size_t i = 0; i < pushes_.size(); ++i) answer_.wait(*pushes_[i], service_.server_rank(i / 2));
  pushes_.clear();
}

// The losses belong to this number of workers and servers.
void WorkerClient::add_saved(SavedState& state) {
  for (SliceCodec& encoder : encoders_) {
    encoder.add_saved(state, fmt::format("lost.{}.{}.{}", service_.workers, service_.servers, comm_.rank()));
  }
}

void WorkerClient::send_done() {
  finish_push();
  for (std::size_t server = 0; server < service_.slices.size(); ++server) {
    send_header(server, {.kind = MessageKind::kDone});
  }
}

Service lay_out_service(const Plan& plan, const Layout& layout, const Optimizer& optimizer) {
  const bool whole = optimizer.uses_trust_ratio() || optimizer.needs_whole_tensors();
  const BlockGrid grid(layout, whole ? Grain::kTensor : Grain::kBlock);
  return {.workers = plan.workers(),
          .servers = plan.servers,
          .slices = owner_slices(grid, {0, layout.size}, plan.servers)};
}

UpdateRules clipping_rules(const StrategyContext& context, bool on_server) {
  const bool together = context.options.backup_workers > 0;
  UpdateRules rules = context.rules;
  if (on_server != together) rules.clip_norm = rules.clip_value = 0;
  return rules;
}

WorkerStats::WorkerStats(Index workers) : counts_(static_cast<std::size_t>(workers * kColumns)) {}

void WorkerStats::count_step(std::size_t worker, Index samples) {
  ++at(worker, kSteps);
  at(worker, kSamples) += samples;
}

void WorkerStats::count_drop(std::size_t worker, Index samples) {
  ++at(worker, kDropped);
  at(worker, kDroppedSamples) += samples;
}

void WorkerStats::count_staleness(std::size_t worker, Index staleness) {
  ++at(worker, kStaleness + std::min(staleness, kMaxStaleness));
  at(worker, kStalenessSum) += staleness;
}

std::vector<WorkerRecord> WorkerStats::gather(Communicator& comm) const {
  std::vector<Index> all = counts_;
  comm.all_reduce_sum(as_buffer(std::span(all)));
  std::vector<WorkerRecord> records;
  for (auto row = all.begin(); row != all.end(); row += kColumns) {
    const auto histogram = row + kStaleness;
    auto end = row + kColumns;
    while (end != histogram && *(end - 1) == 0) --end;
    records.push_back({.computed = row[kComputed],
                       .steps = row[kSteps],
                       .samples = row[kSamples],
                       .dropped = row[kDropped],
                       .dropped_samples = row[kDroppedSamples],
                       .max_ahead = row[kAhead],
                       .staleness_sum = row[kStalenessSum],
                       .staleness = {histogram, end}});
  }
  return records;
}

double WorkersReport::mean_staleness() const {
  double count = 0;
  double sum = 0;
  for (const WorkerRecord& worker : workers) {
    for (const Index slices : worker.staleness) count += static_cast<double>(slices);
    sum += static_cast<double>(worker.staleness_sum);
  }
  return count > 0 ? sum / count : 0;
}

Index WorkersReport::staleness_percentile(double share) const {
  std::vector<Index> histogram;
  Index count = 0;
  for (const WorkerRecord& worker : workers) {
    histogram.resize(std::max(histogram.size(), worker.staleness.size()));
    for (std::size_t i = 0; i < worker.staleness.size(); ++i) {
      histogram[i] += worker.staleness[i];
      count += worker.staleness[i];
    }
  }
  const auto wanted = static_cast<Index>(std::ceil(share * static_cast<double>(count)));
  Index below = 0;
  for (std::size_t i = 0; i < histogram.size(); ++i) {
    below += histogram[i];
    if (below >= wanted) return static_cast<Index>(i);
  }
  return 0;
}

}  // namespace lockstep
