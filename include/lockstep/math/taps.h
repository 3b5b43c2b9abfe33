// The walk of a window over a picture, for kernels that go pixel by pixel.
#pragma once

#include "lockstep/math/window.h"

namespace lockstep {

/// How the window moves over pictures of height x width pixels.
struct WindowWalk {
  Index height = 1;
  Index width = 1;
  Window vertical = {};
  Window horizontal = {};
};

/// One pixel under the window. Pixels are numbered row by row.
struct Tap {
  Index out = 0;     ///< the position of the window: a pixel of the output
  Index in = 0;      ///< the pixel of the input
  Index weight = 0;  ///< its place in the window
  Index order = 0;   ///< its number among the pixels of this window that are not padding
  Index count = 0;   ///< how many those are
};

/// Calls visit(tap) for each position of the window and each pixel under it, the padding left out.
template <class Visit>
void walk_taps(const WindowWalk& walk, const Visit& visit) {
  const Index out_height = walk.vertical.positions(walk.height);
  const Index out_width = walk.horizontal.positions(walk.width);
  for (Index out_y = 0; out_y < out_height; ++out_y) {
    const Range rows = walk.vertical.taps_inside(out_y, walk.height);
    for (Index out_x = 0; out_x < out_width; ++out_x) {
      const Range columns = walk.horizontal.taps_inside(out_x, walk.width);
      Tap tap{.out = out_y * out_width + out_x, .count = rows.size() * columns.size()};
      for (Index row = rows.begin; row < rows.end; ++row) {
        for (Index column = columns.begin; column < columns.end; ++column) {
          tap.in = walk.vertical.place(out_y, row) * walk.width + walk.horizontal.place(out_x, column);
          tap.weight = row * walk.horizontal.size + column;
          visit(tap);
          ++tap.order;
        }
      }
    }
  }
}

}  // namespace lockstep
