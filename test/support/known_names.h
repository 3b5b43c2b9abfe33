// Names such as the catalogs have, for tests of the config that need no catalog.
#pragma once

#include "lockstep/config/option.h"

namespace lockstep::test {

inline KnownNames known_names() {
  return {.losses = {"softmax_cross_entropy", "mean_squared_error"},
          .optimizers = {"sgd", "adam"},
          .schedules = {"constant", "step", "cosine"},
          .formats = {"idx", "synthetic"},
          .strategies = {"auto", "allreduce"},
          .algorithms = {"auto", "mpi"},
          .codecs = {"fp32", "bf16"},
          .presets = {"mlp", "lenet5"},
          .metrics = {"auc", "recall"},
          .export_formats = {"npz", "onnx"},
          .guides = {"tables", "data"}};
}

}  // namespace lockstep::test
