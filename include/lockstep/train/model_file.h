// Weights as a safetensors file: 8 bytes of header length (little endian), a JSON header that gives each
// tensor's type, shape and byte range, then the tensors. Readable by Python's safetensors and by ten lines of
// numpy. Format: https://github.com/huggingface/safetensors
#pragma once

#include <filesystem>

#include "lockstep/nn/params.h"

namespace lockstep {

/// Writes all tensors, in order of the arena, as F32. The same weights give the same bytes.
/// Errors: DataError.
void save_model(const std::filesystem::path& path, const ParamStore& store);

/// Fills all tensors of the layout. Errors: DataError naming the file and what does not fit: every missing,
/// surplus and misshapen tensor is listed, and nothing is changed.
void load_model(const std::filesystem::path& path, const ParamStore& store);

}  // namespace lockstep
