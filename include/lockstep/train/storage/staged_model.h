// The model file of a model that is divided into stages. A rank has the tensors of its stage alone; one that
// writes a piece of the file gets what is not its own from the ranks of its group. So no rank ever holds more
// of the model than its stage and the piece that it writes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/distributed/pipeline.h"
#include "lockstep/train/storage/model_file.h"

namespace lockstep {

class StagedModel {
 public:
  /// *Collective over the group.* `values`: those of the stage `model`. `facts`: those of the first stage.
  /// All but the facts must outlive it.
  StagedModel(Pipeline& pipeline, const Model& model, const ModelValues& values,
              const ModelFacts& facts = {});

  /// Bytes of the file; they are those of ModelBytes for the whole model.
  Index size() const { return size_; }
  Pipeline& pipeline() const { return pipeline_; }
  /// *Collective over the group, blocking.* Each rank gets a piece of the file. `pieces`: by stage, and equal
  /// on all ranks of the group; they may be empty. `to`: memory for this rank's piece.
  void gather(std::span<const Range> pieces, std::byte* to) const;

 private:
  struct Tensor {
    Range bytes;  // in the file
    Index stage = 0;
    const std::byte* data = nullptr;  // null: another rank has it
  };

  Pipeline& pipeline_;
  std::string head_;
  std::vector<Tensor> tensors_;  // in the order of the file
  Index size_ = 0;
};

/// Most bytes of a model file that the first rank holds at a time while it writes them.
inline constexpr Index kModelPieceBytes = Index{16} << 20;

/// *Collective over the group.* The first rank writes the model to the file that `path` gives there, as
/// save_model() does. Errors, on the first rank alone, once no other waits for it: what `path` throws;
/// std::bad_alloc; DataError.
void save_staged_model(const std::function<std::filesystem::path()>& path, const StagedModel& model,
                       Index piece_bytes = kModelPieceBytes);

}  // namespace lockstep
