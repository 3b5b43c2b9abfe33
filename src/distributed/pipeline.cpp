#include "lockstep/distributed/pipeline.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

enum Channel : int { kActivations, kGradients, kSums };

int channel_of(Pipeline::Direction direction) {
  return direction == Pipeline::Direction::kForward ? kActivations : kGradients;
}

// "NAME SIZE" lines of the arrays that are divided by stage.
std::string sizes_by_stage(const SavedState& state) {
  std::map<std::string, Index> sizes;
  for (const SavedPart& part : state) {
    if (part.by_stage) sizes[part.array] = part.size;
  }
  std::string text;
  for (const auto& [array, size] : sizes) text += array + ' ' + std::to_string(size) + '\n';
  return text;
}

std::map<std::string, Index> read_sizes(const std::string& text) {
  std::map<std::string, Index> sizes;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    const std::size_t space = text.rfind(' ', end);
    sizes[text.substr(begin, space - begin)] = std::stoll(text.substr(space + 1, end - space - 1));
    begin = end + 1;
  }
  return sizes;
}

}  // namespace

std::vector<StageTask> stage_tasks(PipelineSchedule schedule, Index stage, Index stages,
                                   Index micro_batches) {
  const Index ahead = micro_batches_alive(schedule, stage, stages, micro_batches);
  std::vector<StageTask> tasks;
  for (Index i = 0; i < micro_batches + ahead; ++i) {
    if (i < micro_batches) tasks.push_back({.micro_batch = i, .forward = true});
    if (i + 1 >= ahead && i + 1 - ahead < micro_batches) {
      tasks.push_back({.micro_batch = i + 1 - ahead, .forward = false});
    }
  }
  return tasks;
}

Index micro_batches_alive(PipelineSchedule schedule, Index stage, Index stages, Index micro_batches) {
  if (schedule == PipelineSchedule::kGpipe) return micro_batches;
  return std::min(stages - stage, micro_batches);
}

double idle_share(Index stages, Index micro_batches) {
  const auto idle = static_cast<double>(stages - 1);
  return idle / (idle + static_cast<double>(micro_batches));
}

std::vector<Index> workers_on_nodes(std::span<const Index> nodes, Index stages, Index stage) {
  std::vector<Index> workers;
  const auto before = [&](Index rank) { return divide_up(rank - stage, stages); };  // workers before it
  Index first = 0;
  for (const Index ranks : nodes) {
    const Index count = before(first + ranks) - before(first);
    if (count > 0) workers.push_back(count);
    first += ranks;
  }
  return workers;
}

Pipeline::Pipeline(Communicator& world, Index stages)
    : workers_(world.split(world.rank() % stages, world.rank())),
      group_(world.split(world.rank() / stages, world.rank())) {}

std::unique_ptr<Request> Pipeline::start_send(Direction direction, std::span<const ConstBuffer> tensors) {
  const int peer = group_->rank() + (direction == Direction::kForward ? 1 : -1);
  std::vector<Send> sends;
  for (const ConstBuffer& tensor : tensors) sends.push_back({peer, tensor});
  return group_->start_exchange(channel_of(direction), sends, {});
}

std::unique_ptr<Request> Pipeline::start_receive(Direction direction, std::span<const Buffer> tensors) {
  const int peer = group_->rank() + (direction == Direction::kForward ? -1 : 1);
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

double Pipeline::sum_in_order(std::span<const double> numbers) {
  double sum = 0;
  if (!is_first()) {
    const Receive before{group_->rank() - 1, as_buffer(std::span(&sum, 1))};
    group_->start_exchange(kSums, {}, std::span(&before, 1))->wait();
  }
  for (const double number : numbers) sum += number;
  if (!is_last()) {
    const Send next{group_->rank() + 1, as_buffer(std::span<const double>(&sum, 1))};
    group_->start_exchange(kSums, std::span(&next, 1), {})->wait();
  }
  share_of_last(std::span(&sum, 1));
  return sum;
}

std::vector<double> Pipeline::join(std::span<const double> numbers) {
  std::vector<Range> parts;
  Index end = 0;
  for (const Index size : gather_numbers(*group_, std::ssize(numbers))) {
    parts.push_back({end, end + size});
    end += size;
  }
  std::vector<double> all(static_cast<std::size_t>(end));
  std::ranges::copy(numbers, part(std::span(all), at(parts, stage())).begin());
  group_->start_all_gather(as_buffer(std::span(all)), parts)->wait();
  return all;
}

AlignedBuffer<Scalar> gather_stages(Pipeline& pipeline, const Model& model, const ModelValues& values) {
  if (pipeline.workers().rank() != 0) return {};  // all ranks of a group have the same rank there
  const Index weights = model.whole().layout().size;
  const Range own[] = {model.weights_in_whole(),
                       {weights + model.state_in_whole().begin, weights + model.state_in_whole().end}};
  std::array<std::vector<Index>, 4> borders;  // by stage
  for (std::size_t i = 0; i < 2; ++i) {
    borders[2 * i] = gather_numbers(pipeline.group(), own[i].begin);
    borders[2 * i + 1] = gather_numbers(pipeline.group(), own[i].end);
  }
  if (!pipeline.is_first()) {
    const Send sends[] = {{0, as_buffer(values.weights)}, {0, as_buffer(values.state)}};
    pipeline.group().start_exchange(kSums, sends, {})->wait();
    return {};
  }
  AlignedBuffer<Scalar> stored(model.whole().stored_layout().size);
  std::ranges::copy(values.weights, part(stored.span(), own[0]).begin());
  std::ranges::copy(values.state, part(stored.span(), own[1]).begin());
  std::vector<Receive> receives;
  for (Index stage = 1; stage < pipeline.stages(); ++stage) {
    for (std::size_t i = 0; i < 4; i += 2) {
      const Range range{at(borders[i], stage), at(borders[i + 1], stage)};
      receives.push_back({static_cast<int>(stage), as_buffer(part(stored.span(), range))});
    }
  }
  pipeline.group().start_exchange(kSums, {}, receives)->wait();
  return stored;
}

void offset_by_stage(Pipeline& pipeline, SavedState& state) {
  const std::vector<std::string> texts = gather_texts(pipeline.group(), sizes_by_stage(state));
  std::map<std::string, Index> offsets;  // offset of this stage's array in that of the whole model
  std::map<std::string, Index> wholes;   // size of that
  for (Index stage = 0; stage < pipeline.stages(); ++stage) {
    for (const auto& [array, size] : read_sizes(at(texts, stage))) {
      Index& end = wholes[array];
      if (stage == pipeline.stage()) offsets[array] = end;
      end += size;
    }
  }
  for (SavedPart& part : state) {
    if (!part.by_stage) {
      if (!pipeline.is_last()) part.written = {};
      continue;
    }
    const Index offset = offsets[part.array];
    part.size = wholes[part.array];
    part.range = {part.range.begin + offset, part.range.end + offset};
    if (!part.written.empty()) part.written = {part.written.begin + offset, part.written.end + offset};
  }
}

}  // namespace lockstep
