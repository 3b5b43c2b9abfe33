#include "lockstep/train/evaluation/stage_forward.h"

#include <algorithm>
#include <utility>

#include "lockstep/distributed/stage_tensors.h"

namespace lockstep {

ForwardLane::ForwardLane(const Model& model, Index rows) : sending(static_cast<std::size_t>(model.chunks())) {
  for (Index i = 0; i < model.chunks(); ++i) {
    workspaces.push_back(
        std::make_unique<Workspace>(model.chunk(i), rows, ActivationRetention::kForEvaluation));
  }
}

void ForwardLane::finish() {
  for (std::unique_ptr<Request>& message : sending) {
    if (message) std::exchange(message, nullptr)->wait();
  }
}

std::optional<ConstMatrix> forward_stage(Pipeline* pipeline, const Model& model, Index number,
                                         ForwardLane& lane, const Pass& pass) {
  using Direction = Pipeline::Direction;
  const Model& chunk = model.chunk(number);
  Workspace& workspace = *at(lane.workspaces, number);
  std::unique_ptr<Request>& sending = at(lane.sending, number);
  if (sending) std::exchange(sending, nullptr)->wait();
  workspace.begin(pass);
  const std::vector<Buffer> received = incoming_tensors(Direction::kForward, chunk, workspace);
  if (!received.empty()) pipeline->start_receive(Direction::kForward, received)->wait();
  workspace.forward({0, std::ssize(chunk.ops())});
  const std::vector<ConstBuffer> sent = outgoing_tensors(Direction::kForward, chunk, workspace);
  if (!sent.empty()) sending = pipeline->start_send(Direction::kForward, sent);
  const bool last_stage = pipeline == nullptr || pipeline->is_last();
  if (!last_stage || number + 1 < model.chunks()) return std::nullopt;
  return workspace.outputs();
}

void for_each_pass(const Model& model, const Pipeline* pipeline, Range blocks,
                   const std::function<void(Index block, Index chunk)>& pass) {
  const Index chunks = model.chunks();
  const Index at_once = chunks == 1 ? std::max<Index>(blocks.size(), 1) : pipeline->stages();
  for (Index begin = blocks.begin; begin < blocks.end; begin += at_once) {
    for (Index chunk = 0; chunk < chunks; ++chunk) {
      for (Index block = begin; block < std::min(begin + at_once, blocks.end); ++block) pass(block, chunk);
    }
  }
}

}  // namespace lockstep
