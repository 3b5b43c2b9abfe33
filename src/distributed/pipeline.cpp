#include "lockstep/distributed/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <numeric>
#include <sstream>
#include <string>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/nn/workspace.h"

namespace lockstep {
namespace {

enum PipelineChannel : int { kActivations, kGradients, kSums };

int channel_of(Pipeline::Direction direction) {
  return direction == Pipeline::Direction::kForward ? kActivations : kGradients;
}

// The numbers of each chunk.
std::vector<Range> chunks_of(Index count, std::span<const Index> chunk_begins) {
  std::vector<Range> chunks{{0, count}};
  for (const Index begin : chunk_begins) {
    chunks.back().end = begin;
    chunks.push_back({begin, count});
  }
  return chunks;
}

// The elements `range` of the memory.
Buffer slice(const Buffer& memory, const Range& range) {
  if (range.empty()) return {.data = memory.data, .count = 0, .type = memory.type};
  return {.data = static_cast<std::byte*>(memory.data) + range.begin * size_of(memory.type),
          .count = range.size(),
          .type = memory.type};
}

// `saved`, of an array that each stage has: the part of it in each chunk of the model, at its place in the
// array of the whole model. An empty one is left so that the array is known.
SavedState place_chunks(const SavedPart& saved, std::span<const Index> offsets, Index whole) {
  SavedState placed;
  const std::vector<Range> chunks = chunks_of(saved.size, saved.chunk_offsets);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const Range mine = intersect(saved.range, chunks[i]);
    const Range written = intersect(saved.written, chunks[i]);
    if (mine.empty() && (!placed.empty() || i + 1 < chunks.size())) continue;
    const auto place = [&](const Range& range) {
      if (range.empty()) return Range{};
      return Range{range.begin - chunks[i].begin + offsets[i], range.end - chunks[i].begin + offsets[i]};
    };
    SavedPart piece = saved;
    piece.size = whole;
    piece.range = place(mine);
    piece.memory = slice(saved.memory, {mine.begin - saved.range.begin, mine.end - saved.range.begin});
    piece.written = place(written);
    piece.chunk_offsets.clear();
    placed.push_back(std::move(piece));
  }
  return placed;
}

// Interleaved tasks. Forward passes are numbered in the order of all rounds, and of a round chunk by chunk;
// backward passes likewise, but from the last chunk to the first. A stage first takes as many forward passes
// as lie between the first one here and its gradient (the *warm-up*): those of a round through all chunks but
// the last, and two for each stage behind. Then it takes a forward and a backward pass in turn. With a last
// round that is larger than the others, the warm-up is that of a round of this size: so the gradient that a
// stage waits for never depends on a forward pass behind it, and the memory of a pass is never taken again
// before the neighbour can have what is sent from it. A test follows all ranks through many sizes.

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

using Direction = Pipeline::Direction;

// The tensors at the begin of a chunk, or at its end: activations forward, their gradients backward.
std::vector<Buffer> border_tensors(Direction direction, bool at_begin, const Model& chunk,
                                   Workspace& workspace) {
  std::vector<Buffer> tensors;
  const auto add = [&](Index op) {
    Matrix values = direction == Direction::kForward ? workspace.output(op) : workspace.gradient(op);
    tensors.push_back(as_buffer(values.values()));
  };
  const Range received = chunk.received();
  for (Index op = received.begin; at_begin && op < received.end; ++op) add(op);
  for (std::size_t i = 0; !at_begin && i < chunk.sent().size(); ++i) add(chunk.sent()[i]);
  return tensors;
}

}  // namespace

Pipeline::Pipeline(Communicator& world, const StageGrid& grid)
    : workers_(world.split(static_cast<int>(grid.stage_of(world.rank())), world.rank())),
      group_(world.split(static_cast<int>(grid.group_of(world.rank())), world.rank())),
      grid_(grid) {}

std::unique_ptr<Request> Pipeline::start_send(Direction direction, std::span<const ConstBuffer> tensors) {
  const int peer = direction == Direction::kForward ? next() : before();
  std::vector<Send> sends;
  for (const ConstBuffer& tensor : tensors) sends.push_back({peer, tensor});
  return group_->start_exchange(channel_of(direction), sends, {});
}

std::unique_ptr<Request> Pipeline::start_receive(Direction direction, std::span<const Buffer> tensors) {
  const int peer = direction == Direction::kForward ? before() : next();
  std::vector<Receive> receives;
  for (const Buffer& tensor : tensors) receives.push_back({peer, tensor});
  return group_->start_exchange(channel_of(direction), {}, receives);
}

void Pipeline::agree(bool& good, double& loss) {
  std::array<double, 2> known{good ? 0.0 : 1.0, loss};
  group_->all_reduce_sum(as_buffer(std::span(known)));
  good = known[0] == 0;
  loss = known[1];
}

double Pipeline::sum_in_order(std::span<const double> numbers, std::span<const Index> chunk_begins) {
  const std::vector<Range> chunks = chunks_of(std::ssize(numbers), chunk_begins);
  double sum = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (!is_first() || i > 0) {
      group_->start_receive(kSums, before(), as_buffer(std::span(&sum, 1)))->wait();
    }
    for (const double number : part(numbers, chunks[i])) sum += number;
    if (!is_last() || i + 1 < chunks.size()) {
      group_->start_send(kSums, next(), as_buffer(std::span(&sum, 1)))->wait();
    }
  }
  share_of_last(std::span(&sum, 1));
  return sum;
}

std::vector<double> Pipeline::join(std::span<const double> numbers, std::span<const Index> chunk_begins) {
  std::vector<double> all;
  for (const Range& chunk : chunks_of(std::ssize(numbers), chunk_begins)) {
    std::vector<Range> parts;
    Index end = std::ssize(all);
    for (const Index size : gather_numbers(*group_, chunk.size())) {
      parts.push_back({end, end + size});
      end += size;
    }
    all.resize(static_cast<std::size_t>(end));
    std::ranges::copy(part(numbers, chunk), part(std::span(all), at(parts, stage())).begin());
    const Index first = parts.front().begin;
    for (Range& range : parts) range = {range.begin - first, range.end - first};
    const std::span<double> joined = part(std::span(all), {first, end});
    group_->start_all_gather(as_buffer(joined), parts)->wait();
  }
  return all;
}

void offset_by_stage(Pipeline& pipeline, SavedState& state) {
  std::map<std::string, std::vector<Range>> chunks;  // of the arrays that are divided by stage
  std::string names;
  for (const SavedPart& saved : state) {
    if (!saved.by_stage) continue;
    names += saved.array + '\n';
    chunks[saved.array] = chunks_of(saved.size, saved.chunk_offsets);
  }
  for (const std::string& theirs : gather_texts(pipeline.group(), names)) {
    std::istringstream lines(theirs);
    for (std::string array; std::getline(lines, array);) chunks[array];  // not every stage has each
  }
  std::map<std::string, std::vector<Index>>
      offsets;                          // of this stage's chunks in the array of the whole model
  std::map<std::string, Index> wholes;  // size of that
  for (const auto& [array, mine] : chunks) {
    Index& end = wholes[array];
    const Index count = std::ranges::max(gather_numbers(pipeline.group(), std::ssize(mine)));
    for (Index chunk = 0; chunk < count; ++chunk) {
      const Index own = chunk < std::ssize(mine) ? at(mine, chunk).size() : 0;
      const std::vector<Index> sizes = gather_numbers(pipeline.group(), own);
      for (Index stage = 0; stage < pipeline.stages(); ++stage) {
        if (stage == pipeline.stage()) offsets[array].push_back(end);
        end += at(sizes, stage);
      }
    }
  }
  SavedState whole;
  for (SavedPart& saved : state) {
    if (saved.by_stage) {
      SavedState placed = place_chunks(saved, offsets[saved.array], wholes[saved.array]);
      std::ranges::move(placed, std::back_inserter(whole));
    } else {
      if (!pipeline.is_last()) saved.written = {};
      whole.push_back(std::move(saved));
    }
  }
  state = std::move(whole);
}

std::optional<PipelineSchedule> parse_schedule(std::string_view text) {
  for (const PipelineSchedule& schedule :
       {PipelineSchedule::kOneForwardOneBackward, PipelineSchedule::kGpipe}) {
    if (text == to_string(schedule)) return schedule;
  }
  if (!text.starts_with(kInterleaved) || !text.ends_with(')')) return std::nullopt;
  const std::string_view number = text.substr(kInterleaved.size(), text.size() - kInterleaved.size() - 1);
  constexpr Index kMaxChunks = 1'000'000;  // no model has more layers
  const Index chunks = number_in<Index>(number).value_or(0);
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

std::vector<Buffer> incoming_tensors(Direction direction, const Model& chunk, Workspace& workspace) {
  return border_tensors(direction, direction == Direction::kForward, chunk, workspace);
}

std::vector<ConstBuffer> outgoing_tensors(Direction direction, const Model& chunk, Workspace& workspace) {
  const auto tensors = border_tensors(direction, direction == Direction::kBackward, chunk, workspace);
  return {tensors.begin(), tensors.end()};
}

}  // namespace lockstep
