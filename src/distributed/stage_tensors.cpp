#include "lockstep/distributed/stage_tensors.h"

namespace lockstep {
namespace {

using Direction = Pipeline::Direction;

}  // namespace

std::vector<Buffer> incoming_tensors(Direction direction, const Model& chunk, Workspace& workspace) {
  std::vector<Buffer> tensors;
  if (direction == Direction::kForward) {
    const Range received = chunk.received();
    for (Index op = received.begin; op < received.end; ++op)
      tensors.push_back(as_buffer(workspace.output(op).values()));
  } else {
    for (const Index op : chunk.sent()) tensors.push_back(as_buffer(workspace.gradient(op).values()));
  }
  return tensors;
}

std::vector<ConstBuffer> outgoing_tensors(Direction direction, const Model& chunk, Workspace& workspace) {
  std::vector<ConstBuffer> tensors;
  if (direction == Direction::kForward) {
    for (const Index op : chunk.sent()) tensors.emplace_back(as_buffer(workspace.output(op).values()));
  } else {
    const Range received = chunk.received();
    for (Index op = received.begin; op < received.end; ++op)
      tensors.emplace_back(as_buffer(workspace.gradient(op).values()));
  }
  return tensors;
}

}  // namespace lockstep
