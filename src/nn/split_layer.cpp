#include "lockstep/nn/split_layer.h"

#include <algorithm>
#include <numeric>

#include "lockstep/math/kernels.h"

namespace lockstep {

UnitBlocks::UnitBlocks(Index units, Index inputs)
    : units_(units),
      grain_(kSquareBlock / std::gcd(inputs, kSquareBlock)),
      grains_(divide_up(units, grain_)),
      count_(std::min(grains_, kMaxBlocks)) {}

Index UnitBlocks::begin_of(Index block) const {
  if (block == count_) return units_;
  return split_evenly(grains_, count_, block).begin * grain_;
}

}  // namespace lockstep
