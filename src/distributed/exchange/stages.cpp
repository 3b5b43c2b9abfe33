#include "stages.h"

#include <algorithm>

namespace lockstep {

void append_stage(std::vector<Stage>& stages, const Transfer& send, const Transfer& receive, Write write) {
  Stage stage{.send = {}, .receive = {}, .write = write};
  if (!send.range.empty()) stage.send = send;
  if (!receive.range.empty()) stage.receive = receive;
  if (stage.send || stage.receive) stages.push_back(stage);
}

Index numbers_sent(const std::vector<Stage>& stages) {
  Index sum = 0;
  for (const Stage& stage : stages) sum += stage.send ? stage.send->range.size() : 0;
  return sum;
}

Index max_added(const std::vector<Stage>& stages) {
  Index most = 0;
  for (const Stage& stage : stages) {
    if (stage.receive && stage.write == Write::kAdd) most = std::max(most, stage.receive->range.size());
  }
  return most;
}

}  // namespace lockstep
