#include "lockstep/train/loop/best_weights.h"

#include <algorithm>
#include <string>

#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/train/storage/checkpoint/directory.h"
#include "lockstep/train/storage/model_file.h"

namespace lockstep {

void BestWeights::allocate() {
  if (stored_.size() == 0) stored_ = AlignedBuffer<Scalar>(model_.stored_layout().size);
}

void BestWeights::keep(const ModelValues& values, Index step) {
  if (workers_.rank() != 0) return;
  allocate();
  const auto end = std::ranges::copy(values.weights, stored_.data()).out;
  std::ranges::copy(values.state, end);
  step_ = step;
}

bool BestWeights::load(Index step, const std::filesystem::path& directory) {
  allocate();
  std::string problem;
  if (workers_.rank() == 0 && step_ != step) {
    try {
      load_model(directory / kCheckpointModel, model_.whole().stored_layout(),
                 {.layout = &model_.stored_layout(), .values = stored_.span()});
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  problem = text_of_first(comm_, problem.empty() ? 1 : 0, problem);
  if (!problem.empty()) {
    if (comm_.rank() == 0) {
      log_warning("the best weights, of step {}, are lost: {}; the model has the last weights",
                  with_commas(step), problem);
    }
    return false;
  }
  workers_.broadcast(as_buffer(stored_.span()), 0);
  return true;
}

}  // namespace lockstep
