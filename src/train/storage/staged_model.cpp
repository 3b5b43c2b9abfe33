// The file begins with its head, which the first rank of the group makes and sends to the others; then come
// the tensors of the weights in the order of the model, and then those of the running moments. A piece is any
// range of bytes. What a rank sends of it are ranges of its own tensors, from where they are; what it
// receives goes to where it belongs in the piece. Both sides walk through the tensors in the order of the
// file, so that messages match.
#include "lockstep/train/storage/staged_model.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/file.h"
#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

constexpr int kFileBytes = 4;  // channel

// *Collective over the group.* The range of each stage in the arena of the whole model's stored numbers.
std::vector<Range> ranges_of_stages(Pipeline& pipeline, Range own) {
  const std::vector<Index> begins = gather_numbers(pipeline.group(), own.begin);
  const std::vector<Index> ends = gather_numbers(pipeline.group(), own.end);
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < begins.size(); ++i) ranges.push_back({begins[i], ends[i]});
  return ranges;
}

// A range of the whole model's stored numbers on each stage: weights or running moments of a chunk.
struct Held {
  std::vector<Range> stages;
  std::span<const Scalar> own;  // the numbers of this rank

  // The stage that has the number there; as many as there are, if none has.
  Index stage_with(Index position) const {
    const auto holds = [&](const Range& range) { return range.contains(position); };
    return std::ranges::find_if(stages, holds) - stages.begin();
  }
};

// *Collective over the group.*
std::vector<Held> held_by_stages(Pipeline& pipeline, const Model& model, const ModelValues& values) {
  const Index weights = model.whole().layout().size;
  std::vector<Held> all;
  for (Index i = 0; i < model.chunks(); ++i) {
    const Model& chunk = model.chunk(i);
    const Range state = chunk.state_in_whole();
    all.push_back(
        {ranges_of_stages(pipeline, chunk.weights_in_whole()), part(values.weights, chunk.weights())});
    all.push_back({ranges_of_stages(pipeline, {weights + state.begin, weights + state.end}),
                   part(values.state, chunk.state())});
  }
  return all;
}

}  // namespace

StagedModel::StagedModel(Pipeline& pipeline, const Model& model, const ModelValues& values,
                         const ModelFacts& facts)
    : pipeline_(pipeline) {
  const Layout& whole = model.whole().stored_layout();
  // Only the first rank knows the facts.
  head_ = broadcast_text(pipeline.group(), pipeline.is_first()
                                               ? model_file_head(whole, model.whole().input(), facts)
                                               : std::string());
  const std::vector<Held> held = held_by_stages(pipeline, model, values);
  size_ = std::ssize(head_);
  for (const ParamInfo& param : whole.params) {
    const auto holds = [&](const Held& each) {
      return each.stage_with(param.range.begin) < pipeline.stages();
    };
    const auto holder = std::ranges::find_if(held, holds);
    Tensor tensor{.bytes = {size_, size_ + param.shape.size() * Index{sizeof(Scalar)}},
                  .stage = holder->stage_with(param.range.begin)};
    if (tensor.stage == pipeline.stage()) {
      const Index begin = param.range.begin - at(holder->stages, tensor.stage).begin;
      tensor.data = std::as_bytes(holder->own.subspan(static_cast<std::size_t>(begin))).data();
    }
    size_ = tensor.bytes.end;
    tensors_.push_back(tensor);
  }
}

void StagedModel::gather(std::span<const Range> pieces, std::byte* to) const {
  const Index stage = pipeline_.stage();
  const Range mine = at(pieces, stage);
  const auto copy = [&](Range bytes, const std::byte* from) {
    if (!bytes.empty())
      std::memcpy(to + (bytes.begin - mine.begin), from, static_cast<std::size_t>(bytes.size()));
  };
  const Range head = intersect(mine, {0, std::ssize(head_)});
  if (!head.empty()) copy(head, std::as_bytes(std::span(head_)).data() + head.begin);
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (const Tensor& tensor : tensors_) {
    if (tensor.stage != stage) {
      const Range bytes = intersect(mine, tensor.bytes);
      if (bytes.empty()) continue;
      receives.push_back(
          {static_cast<int>(tensor.stage), {to + (bytes.begin - mine.begin), bytes.size(), DataType::kByte}});
      continue;
    }
    for (Index other = 0; other < pipeline_.stages(); ++other) {
      const Range bytes = intersect(at(pieces, other), tensor.bytes);
      if (bytes.empty()) continue;
      const std::byte* from = tensor.data + (bytes.begin - tensor.bytes.begin);
      if (other == stage) {
        copy(bytes, from);
      } else {
        sends.push_back({static_cast<int>(other), {from, bytes.size(), DataType::kByte}});
      }
    }
  }
  pipeline_.group().start_exchange(kFileBytes, sends, receives)->wait();
}

// The first rank says before each piece whether it goes on: where it cannot write, nobody sends in vain.
void save_staged_model(const std::function<std::filesystem::path()>& path, const StagedModel& model,
                       Index piece_bytes) {
  Pipeline& pipeline = model.pipeline();
  std::optional<AtomicFile> file;
  AlignedBuffer<std::byte> piece;
  std::exception_ptr failure;
  const auto attempt = [&](const std::function<void()>& work) {
    if (!pipeline.is_first() || failure) return;
    try {
      work();
    } catch (...) {  // memory that is not to be had, too: nobody may wait
      failure = std::current_exception();
    }
  };
  attempt([&] {
    file.emplace(path());
    piece = AlignedBuffer<std::byte>(std::min(piece_bytes, model.size()));
  });
  std::vector<Range> pieces(static_cast<std::size_t>(pipeline.stages()));
  for (Index begin = 0; begin < model.size(); begin += piece_bytes) {
    if (!broadcast_value(pipeline.group(), !failure)) break;
    pieces.front() = intersect({begin, begin + piece_bytes}, {0, model.size()});
    model.gather(pieces, piece.data());
    attempt([&] {
      file->write(
          {reinterpret_cast<const char*>(piece.data()), static_cast<std::size_t>(pieces.front().size())});
    });
  }
  attempt([&] { file->commit(); });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace lockstep
