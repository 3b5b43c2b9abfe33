#include "lockstep/distributed/tied_weights.h"

#include <algorithm>

#include "lockstep/comm/agree.h"
#include "lockstep/math/kernels.h"

namespace lockstep {
namespace {

// Channels of the group. Each tie has one for its gradients: a rank may take them in another order than it
// is given them.
enum TiedChannel : int { kTiedWeights = 5, kFirstTiedGradient = 6 };

// A rank of a group, and one of its chunks of the model.
struct StagePosition {
  Index stage = 0;
  Index chunk = 0;
  bool operator==(const StagePosition&) const = default;
};

// The two ends of a tie.
struct TieEnds {
  ModelTie tie;
  StagePosition op;
  StagePosition owner;
  int channel = 0;

  bool crosses_ranks() const { return op.stage != owner.stage; }
};

// The ties between different parts of a model, last op first. `begins`: the first op of each part.
std::vector<TieEnds> ties_between(const Model& whole, std::span<const Index> begins, Index stages) {
  const auto position_of = [&](Index op) {
    const Index part = std::ranges::upper_bound(begins, op) - begins.begin() - 1;
    return StagePosition{.stage = part % stages, .chunk = part / stages};
  };
  std::vector<TieEnds> ties;
  int channel = kFirstTiedGradient;
  for (const ModelTie& tie : model_ties(whole)) {
    const TieEnds ends{
        .tie = tie, .op = position_of(tie.op), .owner = position_of(tie.owner), .channel = channel++};
    if (ends.op != ends.owner) ties.push_back(ends);
  }
  return ties;
}

// *Collective over the group.*
std::vector<TieEnds> ties_of_group(Pipeline& pipeline, const Model& model) {
  if (model_ties(model.whole()).empty()) return {};
  std::vector<Index> begins;
  for (Index i = 0; i < model.chunks(); ++i) {
    const std::vector<Index> of_chunk = gather_numbers(pipeline.group(), model.chunk(i).stage().begin);
    begins.insert(begins.end(), of_chunk.begin(), of_chunk.end());
  }
  return ties_between(model.whole(), begins, pipeline.stages());
}

Range range_of(const Layout& layout, const std::string& name) {
  return std::ranges::find(layout.params, name, &ParamInfo::name)->range;
}

// The first tie of each weight between each two ranks: a weight is sent once.
std::vector<TieEnds> sent_weights(std::span<const TieEnds> ties) {
  std::vector<TieEnds> sent;
  for (const TieEnds& ends : ties) {
    const auto same = [&](const TieEnds& other) {
      return other.op.stage == ends.op.stage && other.tie.owner == ends.tie.owner;
    };
    if (ends.crosses_ranks() && std::ranges::none_of(sent, same)) sent.push_back(ends);
  }
  return sent;
}

// Gradients that are kept of a tie. Each waits for the owner's backward pass of its micro-batch, and a chunk
// has no forward pass of a further one before that. With all forward passes first, stages go back one behind
// the other, so that no more of them are on their way than there are stages; but where replicas meet at a
// layer, all go back to it before the first one goes on.
Index gradients_alive(const Model& whole, const TieEnds& ends, const PipelineSchedule& schedule, Index stages,
                      Index micro_batches) {
  const Index alive = at(chunks_alive(schedule, ends.owner.stage, stages, micro_batches), ends.owner.chunk);
  return schedule == PipelineSchedule::kGpipe && !whole.runs_in_lockstep(2) ? std::min(alive, stages) : alive;
}

}  // namespace

TiedWeights::TiedWeights(Pipeline* pipeline, const Model& model)
    : pipeline_(pipeline), copies_(model.borrowed().size) {
  if (pipeline == nullptr) return;
  for (const TieEnds& ends : sent_weights(ties_of_group(*pipeline, model))) {
    if (ends.owner.stage == pipeline->stage()) {
      lent_.push_back({static_cast<int>(ends.op.stage), range_of(model.layout(), ends.tie.name)});
    } else if (ends.op.stage == pipeline->stage()) {
      borrowed_.push_back({static_cast<int>(ends.owner.stage), range_of(model.borrowed(), ends.tie.name)});
    }
  }
}

ModelValues TiedWeights::share(const ModelValues& values) {
  std::vector<Send> sends;
  for (const Message& lent : lent_)
    sends.push_back({lent.peer, as_buffer(part(values.weights, lent.weight))});
  if (!sends.empty()) sending_ = pipeline_->group().start_exchange(kTiedWeights, sends, {});
  std::vector<Receive> receives;
  for (const Message& borrowed : borrowed_) {
    receives.push_back({borrowed.peer, as_buffer(part(copies_.span(), borrowed.weight))});
  }
  if (!receives.empty()) pipeline_->group().start_exchange(kTiedWeights, {}, receives)->wait();
  ModelValues shared = values;
  shared.borrowed = copies_.span();
  return shared;
}

TiedGradients::TiedGradients(Pipeline& pipeline, const Model& model, const PipelineSchedule& schedule,
                             Index micro_batches)
    : pipeline_(pipeline) {
  Index largest = 0;
  for (const TieEnds& ends : ties_of_group(pipeline, model)) {
    if (ends.op.stage == pipeline.stage()) {
      const Model& chunk = model.chunk(ends.op.chunk);
      SentGradient& gradient = sent_.emplace_back();
      gradient.chunk = ends.op.chunk;
      gradient.op = ends.tie.op - chunk.stage().begin + chunk.received().end;
      gradient.peer = static_cast<int>(ends.owner.stage);
      gradient.channel = ends.channel;
      const Index alive = gradients_alive(model.whole(), ends, schedule, pipeline.stages(), micro_batches);
      for (Index i = 0; i < alive; ++i) gradient.slots.push_back({AlignedBuffer<Scalar>(ends.tie.size)});
    }
    if (ends.owner.stage == pipeline.stage()) {
      received_.push_back({.chunk = ends.owner.chunk,
                           .weight = range_of(model.layout(), ends.tie.name),
                           .peer = static_cast<int>(ends.op.stage),
                           .channel = ends.channel});
      if (ends.crosses_ranks()) largest = std::max(largest, ends.tie.size);
    }
  }
  receive_buffer_ = AlignedBuffer<Scalar>(largest);
}

void TiedGradients::begin(Index chunk, Index micro_batch, Workspace& workspace) {
  for (SentGradient& gradient : sent_) {
    if (gradient.chunk != chunk) continue;
    Slot& slot = gradient.slot(micro_batch);
    if (slot.sending) std::exchange(slot.sending, nullptr)->wait();
    workspace.set_tied_gradient(gradient.op, slot.gradient.span());
  }
}

void TiedGradients::add_received(Index chunk, Index micro_batch, std::span<Scalar> arena) {
  for (const ReceivedGradient& source : received_) {
    if (source.chunk == chunk) add(part(arena, source.weight), receive(source, micro_batch));
  }
}

std::span<const Scalar> TiedGradients::receive(const ReceivedGradient& source, Index micro_batch) {
  if (source.peer == pipeline_.stage()) {
    return std::ranges::find(sent_, source.channel, &SentGradient::channel)
        ->slot(micro_batch)
        .gradient.span();
  }
  const std::span<Scalar> received = part(receive_buffer_.span(), {0, source.weight.size()});
  pipeline_.group().start_receive(source.channel, source.peer, as_buffer(received))->wait();
  return received;
}

void TiedGradients::send(Index chunk, Index micro_batch) {
  for (SentGradient& gradient : sent_) {
    if (gradient.chunk != chunk || gradient.peer == pipeline_.stage()) continue;
    Slot& slot = gradient.slot(micro_batch);
    slot.sending =
        pipeline_.group().start_send(gradient.channel, gradient.peer, as_buffer(slot.gradient.span()));
  }
}

void TiedGradients::finish() {
  for (SentGradient& gradient : sent_) {
    for (Slot& slot : gradient.slots) {
      if (slot.sending) std::exchange(slot.sending, nullptr)->wait();
    }
  }
}

TiedBytes tied_bytes(std::span<const std::unique_ptr<Model>> stages, Index stage,
                     const PipelineSchedule& schedule, Index micro_batches) {
  const Model& model = *at(stages, stage);
  std::vector<Index> begins;
  for (Index i = 0; i < model.chunks(); ++i) {
    for (const std::unique_ptr<Model>& each : stages) begins.push_back(each->chunk(i).stage().begin);
  }
  const std::vector<TieEnds> ties = ties_between(model.whole(), begins, std::ssize(stages));
  TiedBytes bytes;
  Index received = 0;
  for (const TieEnds& ends : ties) {
    const Index size = ends.tie.size * Index{sizeof(Scalar)};
    const Index sent = ends.crosses_ranks() ? size : 0;
    if (ends.op.stage == stage) {
      bytes.kept_gradients +=
          size * gradients_alive(model.whole(), ends, schedule, std::ssize(stages), micro_batches);
      bytes.returned += sent;
    }
    if (ends.owner.stage == stage) {
      bytes.collected += sent;
      received = std::max(received, sent);
    }
  }
  for (const TieEnds& ends : sent_weights(ties)) {
    const Index size = ends.tie.size * Index{sizeof(Scalar)};
    if (ends.op.stage == stage) bytes.borrowed += size;
    if (ends.owner.stage == stage) bytes.lent += size;
  }
  bytes.kept_gradients += received;
  return bytes;
}

}  // namespace lockstep
