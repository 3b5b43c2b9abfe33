// Interleaved tasks. Forward passes are numbered in the order of all rounds, and of a round chunk by chunk;
// backward passes likewise, but from the last chunk to the first. A stage first takes as many forward passes
// as lie between the first one here and its gradient (the *warm-up*): those of a round through all chunks but
// the last, and two for each stage behind. Then it takes a forward and a backward pass in turn. With a last
// round that is larger than the others, the warm-up is that of a round of this size: so the gradient that a
// stage waits for never depends on a forward pass behind it, and the memory of a pass is never taken again
// before the neighbour can have what is sent from it. A test follows all ranks through many sizes.
#include "lockstep/distributed/stage_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

namespace lockstep {
namespace {

constexpr std::string_view kInterleaved = "interleaved(";

using Order = PipelineSchedule::Order;

// The micro-batches of each round.
std::vector<Range> rounds_of(Index stages, Index micro_batches) {
  const Index count = std::max<Index>(1, micro_batches / stages);
  std::vector<Range> rounds;
  for (Index i = 0; i < count; ++i) {
    rounds.push_back({i * stages, i + 1 == count ? micro_batches : (i + 1) * stages});
  }
  return rounds;
}

// All passes in one direction.
std::vector<StageTask> passes(const std::vector<Range>& rounds, Index chunks, bool forward) {
  std::vector<StageTask> tasks;
  for (const Range& round : rounds) {
    for (Index i = 0; i < chunks; ++i) {
      for (Index batch = round.begin; batch < round.end; ++batch) {
        tasks.push_back({.micro_batch = batch, .forward = forward, .chunk = forward ? i : chunks - 1 - i});
      }
    }
  }
  return tasks;
}

Index warm_up(const PipelineSchedule& schedule, Index stage, Index stages, Index micro_batches) {
  if (schedule.order == Order::kGpipe) return micro_batches;
  if (schedule.order == Order::kOneForwardOneBackward) return stages - stage - 1;
  return 2 * (stages - stage - 1) + (schedule.chunks - 1) * rounds_of(stages, micro_batches).back().size();
}

}  // namespace

std::optional<PipelineSchedule> parse_schedule(std::string_view text) {
  for (const PipelineSchedule& schedule :
       {PipelineSchedule::kOneForwardOneBackward, PipelineSchedule::kGpipe}) {
    if (text == to_string(schedule)) return schedule;
  }
  if (!text.starts_with(kInterleaved) || !text.ends_with(')')) return std::nullopt;
  const std::string_view number = text.substr(kInterleaved.size(), text.size() - kInterleaved.size() - 1);
  constexpr Index kMaxChunks = 1'000'000;  // no model has more layers
  Index chunks = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), chunks);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  if (chunks < 2 || chunks > kMaxChunks) return std::nullopt;
  return PipelineSchedule{.order = Order::kInterleaved, .chunks = chunks};
}

std::string to_string(const PipelineSchedule& schedule) {
  switch (schedule.order) {
    case Order::kOneForwardOneBackward:
      return "1f1b";
    case Order::kGpipe:
      return "gpipe";
    case Order::kInterleaved:
      return fmt::format("interleaved({})", schedule.chunks);
  }
  return "";
}

std::vector<StageTask> stage_tasks(const PipelineSchedule& schedule, Index stage, Index stages,
                                   Index micro_batches) {
  // Without interleaving, all are one round through one chunk.
  const std::vector<Range> rounds = schedule.order == Order::kInterleaved
                                        ? rounds_of(stages, micro_batches)
                                        : std::vector<Range>{{0, micro_batches}};
  const std::vector<StageTask> forward = passes(rounds, schedule.chunks, true);
  const std::vector<StageTask> backward = passes(rounds, schedule.chunks, false);
  const Index count = std::ssize(forward);
  const Index ahead = std::min(warm_up(schedule, stage, stages, micro_batches), count);
  std::vector<StageTask> tasks(forward.begin(), forward.begin() + ahead);
  for (Index i = 0; i < count; ++i) {
    if (i + ahead < count) tasks.push_back(at(forward, i + ahead));
    tasks.push_back(at(backward, i));
  }
  return tasks;
}

std::vector<Index> chunks_alive(const PipelineSchedule& schedule, Index stage, Index stages,
                                Index micro_batches) {
  std::vector<Index> now(static_cast<std::size_t>(schedule.chunks), 0);
  std::vector<Index> most = now;
  for (const StageTask& task : stage_tasks(schedule, stage, stages, micro_batches)) {
    at(now, task.chunk) += task.forward ? 1 : -1;
    at(most, task.chunk) = std::max(at(most, task.chunk), at(now, task.chunk));
  }
  return most;
}

Index micro_batches_alive(const PipelineSchedule& schedule, Index stage, Index stages, Index micro_batches) {
  const std::vector<Index> alive = chunks_alive(schedule, stage, stages, micro_batches);
  return std::accumulate(alive.begin(), alive.end(), Index{0});
}

// In units of a pass through a chunk. A round of fewer micro-batches than stages leaves gaps at each chunk.
double idle_share(Index stages, Index micro_batches, Index chunks) {
  const Index idle =
      chunks * (std::max(micro_batches, stages) - micro_batches) + std::min(micro_batches, stages) - 1;
  return static_cast<double>(idle) / static_cast<double>(idle + chunks * micro_batches);
}

}  // namespace lockstep
