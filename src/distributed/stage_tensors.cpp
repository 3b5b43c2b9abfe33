#include "lockstep/distributed/stage_tensors.h"

namespace lockstep {
namespace {

using Direction = Pipeline::Direction;

std::span<Scalar> numbers_of(Matrix tensor) {
  return {tensor.data(), static_cast<std::size_t>(tensor.size())};
}

}  // namespace

std::vector<Buffer> incoming_tensors(Direction direction, const Model& chunk, Workspace& workspace) {
  std::vector<Buffer> tensors;
  if (direction == Direction::kForward) {
    const Range received = chunk.received();
    for (Index op = received.begin; op < received.end; ++op)
      tensors.push_back(as_buffer(numbers_of(workspace.output(op))));
  } else {
    for (const Index op : chunk.sent()) tensors.push_back(as_buffer(numbers_of(workspace.gradient(op))));
  }
  return tensors;
}

std::vector<ConstBuffer> outgoing_tensors(Direction direction, const Model& chunk, Workspace& workspace) {
  std::vector<ConstBuffer> tensors;
  if (direction == Direction::kForward) {
    for (const Index op : chunk.sent()) tensors.emplace_back(as_buffer(numbers_of(workspace.output(op))));
  } else {
    const Range received = chunk.received();
    for (Index op = received.begin; op < received.end; ++op)
      tensors.emplace_back(as_buffer(numbers_of(workspace.gradient(op))));
  }
  return tensors;
}

}  // namespace lockstep
