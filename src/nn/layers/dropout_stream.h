// Rates and random numbers of the layers that drop numbers in training.
#pragma once

#include <cstdint>
#include <string_view>

#include "lockstep/base/errors.h"
#include "lockstep/base/random.h"
#include "lockstep/base/terms.h"
#include "lockstep/base/types.h"
#include "lockstep/nn/layer.h"

namespace lockstep {

/// The probability of an argument. Errors: ConfigError if it is below 0, or not below 1.
inline double take_dropout_rate(TermArguments& arguments, std::string_view key, double otherwise) {
  const double rate = arguments.take_number(key, otherwise);
  if (rate >= 0 && rate < 1) return rate;
  throw ConfigError("{} must be at least 0 and below 1, found {}", key, rate);
}

/// The stream that decides what of a sample is dropped: each sample of each replica's step has one of its
/// own, wherever and in whatever parts it is computed. `layer`: ParamDeclarer::number().
inline StreamKey dropout_stream(const BatchContext& batch, Index row, Index layer) {
  return {.seed = batch.seed,
          .purpose = Purpose::kDropout,
          .a = static_cast<std::uint64_t>(batch.step << 16 | layer),
          .b = static_cast<std::uint64_t>(batch.replica << 32 | (batch.first_row + row))};
}

}  // namespace lockstep
