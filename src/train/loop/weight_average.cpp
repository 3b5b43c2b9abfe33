#include "lockstep/train/loop/weight_average.h"

#include <string>

#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/train/storage/model_file.h"

namespace lockstep {
namespace {

constexpr const char* kTrainingWeights = "training.weights";

void move_towards(std::span<Scalar> average, std::span<const Scalar> now, Scalar share) {
  for (std::size_t i = 0; i < average.size(); ++i) average[i] += share * (now[i] - average[i]);
}

}  // namespace

WeightAverage::WeightAverage(Communicator& comm, const Model& model, ThreadTeam& team, double decay)
    : comm_(comm), model_(model), team_(team), decay_(decay), values_(model.stored_layout().size) {
  for (Index rank = 0; rank < comm.size(); ++rank) {
    slices_.push_back(split_evenly(model.layout().size, comm.size(), rank, kAlignment));
  }
}

// The decay rises with the number of averaged weights, so that the first ones do not dominate the average for
// long.
double WeightAverage::next_share() const {
  const auto count = static_cast<double>(count_);
  return is_uniform() ? 1 / (count + 1) : 1 - std::min(decay_, (1 + count) / (10 + count));
}

void WeightAverage::add(std::span<const Scalar> weights, std::span<const Scalar> moments) {
  gathered_ = false;
  const Range slice = at(slices_, comm_.rank());
  const std::span<Scalar> average = part(this->weights(), slice);
  const std::span<const Scalar> now = part(weights, slice);
  const auto share = static_cast<Scalar>(next_share());
  const bool first = count_++ == 0;
  if (first) {
    std::ranges::copy(now, average.begin());
    std::ranges::copy(moments, this->moments().begin());
    return;
  }
  team_.run_parts({0, slice.size()},
                  [&](Range range) { move_towards(part(average, range), part(now, range), share); });
  if (!moments.empty()) move_towards(this->moments(), moments, share);
}

ModelValues WeightAverage::gather_model() {
  if (!gathered_) {
    comm_.start_all_gather(as_buffer(weights()), slices_)->wait();
    if (!moments().empty()) comm_.broadcast(as_buffer(moments()), 0);
    gathered_ = true;
  }
  return stored_values(model_, values_.span());
}

void WeightAverage::add_saved(SavedState& state) {
  state.push_back(saved_by_first(comm_.rank(), "average.count", std::span(&count_, 1)));
  state.back().optional = true;  // a run may be allowed to begin an average
}

void WeightAverage::add_training_weights(SavedState& state, std::span<const Scalar> weights) {
  const Range slice = at(slices_, comm_.rank());
  if (training_weights_.size() == 0) training_weights_ = AlignedBuffer<Scalar>(slice.size());
  std::ranges::copy(part(weights, slice), training_weights_.data());
  state.push_back({.array = kTrainingWeights,
                   .size = model_.layout().size,
                   .range = slice,
                   .memory = as_buffer(training_weights_.span()),
                   .written = slice,
                   .by_stage = true,
                   .chunk_offsets = model_.layout().chunk_offsets()});
}

void WeightAverage::load(const ModelValues& values) {
  std::ranges::copy(values.weights, weights().begin());
  std::ranges::copy(values.state, moments().begin());
}

void load_training_values(const CheckpointReader& checkpoint, const Model& model, std::span<Scalar> stored,
                          WeightAverage* average) {
  ModelFile(checkpoint.directory() / kCheckpointModel)
      .load(model.whole().stored_layout(), {.layout = &model.stored_layout(), .values = stored});
  if (average != nullptr) average->load(stored_values(model, stored));
  SavedState weights;
  for (Index i = 0; i < model.chunks(); ++i) {
    const Model& chunk = model.chunk(i);
    weights.push_back({.array = kTrainingWeights,
                       .size = model.whole().layout().size,
                       .range = chunk.weights_in_whole(),
                       .memory = as_buffer(part(stored, chunk.weights())),
                       .written = {},
                       .optional = true});
  }
  checkpoint.fill(weights);
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
      ModelFile(directory / kCheckpointModel)
          .load(model_.whole().stored_layout(),
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
