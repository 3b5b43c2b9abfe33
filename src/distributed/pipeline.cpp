#include "lockstep/distributed/pipeline.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <sstream>
#include <string>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/comm/agree.h"

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

// Lines of the arrays that are divided by stage: the name, and the size of each chunk's part.
std::string sizes_by_stage(const SavedState& state) {
  std::map<std::string, std::string> lines;
  for (const SavedPart& saved : state) {
    if (!saved.by_stage) continue;
    std::string sizes;
    for (const Range& chunk : chunks_of(saved.size, saved.chunk_offsets)) {
      sizes += ' ' + std::to_string(chunk.size());
    }
    lines[saved.array] = sizes;
  }
  std::string text;
  for (const auto& [array, sizes] : lines) text += array + sizes + '\n';
  return text;
}

std::map<std::string, std::vector<Index>> read_sizes(const std::string& text) {
  std::map<std::string, std::vector<Index>> sizes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string array;
    words >> array;
    for (Index size = 0; words >> size;) sizes[array].push_back(size);
  }
  return sizes;
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

void Pipeline::share_of_last(std::span<double> numbers) {
  group_->broadcast(as_buffer(numbers), group_->size() - 1);
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
      const Receive receive{before(), as_buffer(std::span(&sum, 1))};
      group_->start_exchange(kSums, {}, std::span(&receive, 1))->wait();
    }
    for (const double number : part(numbers, chunks[i])) sum += number;
    if (!is_last() || i + 1 < chunks.size()) {
      const Send send{next(), as_buffer(std::span<const double>(&sum, 1))};
      group_->start_exchange(kSums, std::span(&send, 1), {})->wait();
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
  std::vector<std::map<std::string, std::vector<Index>>> sizes;  // by stage, of each array, by chunk
  for (const std::string& text : gather_texts(pipeline.group(), sizes_by_stage(state))) {
    sizes.push_back(read_sizes(text));
  }
  std::map<std::string, std::vector<Index>> offsets;  // of this stage's chunks in that of the whole model
  std::map<std::string, Index> wholes;                // size of that
  bool more = true;
  for (std::size_t chunk = 0; more; ++chunk) {
    more = false;
    for (Index stage = 0; stage < pipeline.stages(); ++stage) {
      for (const auto& [array, by_chunk] : at(sizes, stage)) {
        if (chunk >= by_chunk.size()) continue;
        more = true;
        Index& end = wholes[array];
        if (stage == pipeline.stage()) offsets[array].push_back(end);
        end += by_chunk[chunk];
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

}  // namespace lockstep
