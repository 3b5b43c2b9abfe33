// Reads back what trainer bench --json has written.
#pragma once

#include <filesystem>

#include "lockstep/train/forecast.h"

namespace lockstep {

/// What a forecast takes from it. Errors: DataError naming the file and what is wrong in it; ConfigError if
/// it is of a model with another number of parameters.
Calibration read_bench_file(const std::filesystem::path& path, Index parameters);

}  // namespace lockstep
