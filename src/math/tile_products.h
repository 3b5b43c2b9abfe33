// Small products in the vectors of the processor, for kernels that copy their operands first, with zeros up
// to whole tiles. A product is made of tiles: some rows by some columns that stay in registers. An element is
// the sum of fused multiply-adds in the order of its depth, whatever the tile, so that tiles of other sizes
// give the same bits.
#pragma once

#include <Eigen/Core>

#include "lockstep/base/types.h"
#include "lockstep/math/kernels.h"

// GCC says of vectors that they lose their alignment as arguments of a template.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"

namespace lockstep::tiles {

using Packet = Eigen::internal::packet_traits<Scalar>::type;
constexpr Index kLanes = Eigen::internal::packet_traits<Scalar>::size;

constexpr Index kWidth = 16;  // of panels; whole vectors on every processor

// The left side of a product: element (i, k) at data[i * row + k * depth].
struct Left {
  const Scalar* data;
  Index row;
  Index depth;
};

// The right side: element (k, j) at data[k * depth + j / kWidth * panel + j % kWidth].
struct Right {
  const Scalar* data;
  Index depth;
  Index panel;
};

// The memory for a product: rows that begin `stride` apart.
struct Result {
  Scalar* data;
  Index stride;
  Write write;
};

template <Index kVectors>
constexpr Index kTileRows = kLanes >= 16 ? 16 / kVectors : 4;

template <Index kVectors>
void multiply_tile(Index depth, Left a, Right b, Result c) {
  using namespace Eigen::internal;
  constexpr Index kVectorsOfPanel = kWidth / kLanes;
  constexpr Index kRows = kTileRows<kVectors>;
  Packet sums[kRows][kVectors];
  for (Index i = 0; i < kRows; ++i)
    for (Index j = 0; j < kVectors; ++j)
      sums[i][j] = c.write == Write::kAdd ? ploadu<Packet>(c.data + i * c.stride + j * kLanes)
                                          : pset1<Packet>(Scalar{0});
  for (Index k = 0; k < depth; ++k) {
    Packet right[kVectors];
    for (Index j = 0; j < kVectors; ++j)
      right[j] =
          ploadu<Packet>(b.data + k * b.depth + j / kVectorsOfPanel * b.panel + j % kVectorsOfPanel * kLanes);
    for (Index i = 0; i < kRows; ++i) {
      const Packet left = pset1<Packet>(a.data[i * a.row + k * a.depth]);
      for (Index j = 0; j < kVectors; ++j) sums[i][j] = pmadd(left, right[j], sums[i][j]);
    }
  }
  for (Index i = 0; i < kRows; ++i)
    for (Index j = 0; j < kVectors; ++j) pstoreu(c.data + i * c.stride + j * kLanes, sums[i][j]);
}

template <Index kVectors>
void multiply_columns(Index rows, Index depth, Left a, Right b, Result c) {
  for (Index i = 0; i < rows; i += kTileRows<kVectors>) {
    multiply_tile<kVectors>(depth, {a.data + i * a.row, a.row, a.depth}, b,
                            {c.data + i * c.stride, c.stride, c.write});
  }
}

// c(rows x columns) (+)= a(rows x depth) · b(depth x columns); rows and columns are multiples of kWidth.
inline void multiply(Index rows, Index columns, Index depth, Left a, Right b, Result c) {
  constexpr Index kVectors = kWidth / kLanes;  // in a panel
  constexpr Index kPanels = kLanes >= 16 ? 2 : 1;
  Index j = 0;
  const auto take = [&](const auto& work, Index width) {
    for (; j + width <= columns; j += width)
      work(rows, depth, a, Right{b.data + j / kWidth * b.panel, b.depth, b.panel},
           Result{c.data + j, c.stride, c.write});
  };
  take(multiply_columns<kPanels * kVectors>, kPanels * kWidth);
  take(multiply_columns<kVectors>, kWidth);
}

// Turns a square of kLanes x kLanes numbers, whose rows begin `stride` apart, into one of a panel.
inline void turn_square(const Scalar* from, Index stride, Scalar* to) {
  using namespace Eigen::internal;
  PacketBlock<Packet, kLanes> square;
  for (Index j = 0; j < kLanes; ++j) square.packet[j] = ploadu<Packet>(from + j * stride);
  ptranspose(square);
  for (Index j = 0; j < kLanes; ++j) pstoreu(to + j * kWidth, square.packet[j]);
}

}  // namespace lockstep::tiles

#pragma GCC diagnostic pop
