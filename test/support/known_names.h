// Names such as the catalogs have, for tests of the config that need no catalog.
#pragma once

#include "lockstep/base/catalog.h"
#include "lockstep/config/help.h"

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
          .formats_of = {{"predict", {"csv"}},
                         {"export", {"npz", "onnx"}},
                         {"export-metrics", {"csv"}},
                         {"reference", catalog_names(reference_catalog())}},
          .guides = {"tables", "data"}};
}

/// Every option, with these names.
inline std::span<const Option> options() {
  static const std::vector<Option> kOptions = declare_options(known_names());
  return kOptions;
}

}  // namespace lockstep::test
