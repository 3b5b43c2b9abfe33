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

void scatter_blocks(const BlockOutputs<const Scalar>& from, Matrix& y) {
  for (Index block = from.blocks.begin; block < from.blocks.end; ++block) {
    const Range units = from.layout.units(block);
    const Scalar* source = from.of(block);
    for (Index row = 0; row < from.rows; ++row) {
      std::copy_n(source + row * units.size(), units.size(), y.data() + row * y.cols() + units.begin);
    }
  }
}

void gather_blocks(const ConstMatrix& y, const BlockOutputs<Scalar>& to) {
  for (Index block = to.blocks.begin; block < to.blocks.end; ++block) {
    const Range units = to.layout.units(block);
    Scalar* target = to.of(block);
    for (Index row = 0; row < to.rows; ++row) {
      std::copy_n(y.data() + row * y.cols() + units.begin, units.size(), target + row * units.size());
    }
  }
}

}  // namespace lockstep
