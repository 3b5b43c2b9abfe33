// Reads back what trainer bench --json has written.
#pragma once

#include <filesystem>

#include "lockstep/nn/model.h"
#include "lockstep/train/plan/forecast.h"

namespace lockstep {

/// The figures that a forecast takes from the file. Errors: DataError naming the file and what is wrong in
/// it; ConfigError if it is of a model with another number of parameters, or in another precision.
BenchFigures read_bench_file(const std::filesystem::path& path, const Model& model);

}  // namespace lockstep
