#include "lockstep/train/evaluation/stage_forward.h"

#include <algorithm>
#include <utility>

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

void forward_stage(Pipeline& pipeline, const Model& model, Index number, ForwardLane& lane,
                   const Pass& pass) {
  using Direction = Pipeline::Direction;
  const Model& chunk = model.chunk(number);
  Workspace& workspace = *at(lane.workspaces, number);
  std::unique_ptr<Request>& sending = at(lane.sending, number);
  if (sending) std::exchange(sending, nullptr)->wait();
  const auto memory = [](Matrix tensor) {
    return as_buffer(std::span(tensor.data(), static_cast<std::size_t>(tensor.size())));
  };
  workspace.begin(pass);
  std::vector<Buffer> received;
  const Range ops = chunk.received();
  for (Index op = ops.begin; op < ops.end; ++op) received.push_back(memory(workspace.received(op)));
  if (!received.empty()) pipeline.start_receive(Direction::kForward, received)->wait();
  workspace.forward({0, std::ssize(chunk.ops())});
  std::vector<ConstBuffer> sent;
  for (const Index op : chunk.sent()) sent.emplace_back(memory(workspace.sent(op)));
  if (!sent.empty()) sending = pipeline.start_send(Direction::kForward, sent);
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
