// The pass of a window over an image, for kernels that go pixel by pixel.
#pragma once

#include "lockstep/math/shape.h"

namespace lockstep {

/// How the window moves over images of height x width pixels.
struct WindowWalk {
  Index height = 1;
  Index width = 1;
  Window vertical = {};
  Window horizontal = {};
};

/// One position of the window. Pixels are numbered row by row.
struct TapWindow {
  Index out = 0;    ///< its number: a pixel of the output
  Range rows = {};  ///< rows of its taps that do not fall into the padding
  Range columns = {};
  Index first = 0;     ///< the pixel of the input under the first of these
  Index next_row = 1;  ///< how many pixels further the taps of the next row are
  Index next_column = 1;

  Index count() const { return rows.size() * columns.size(); }
};

/// One pixel under the window.
struct Tap {
  Index out = 0;     ///< the position of the window: a pixel of the output
  Index in = 0;      ///< the pixel of the input
  Index weight = 0;  ///< its position in the window
};

/// Calls visit(window) for each position of the window.
template <class Visit>
void walk_windows(const WindowWalk& walk, const Visit& visit) {
  const Index out_height = walk.vertical.positions(walk.height);
  const Index out_width = walk.horizontal.positions(walk.width);
  TapWindow window{.next_row = walk.vertical.dilation * walk.width, .next_column = walk.horizontal.dilation};
  for (Index out_y = 0; out_y < out_height; ++out_y) {
    window.rows = walk.vertical.taps_inside(out_y, walk.height);
    const Index row = walk.vertical.input_position(out_y, window.rows.begin) * walk.width;
    for (Index out_x = 0; out_x < out_width; ++out_x) {
      window.columns = walk.horizontal.taps_inside(out_x, walk.width);
      window.first = row + walk.horizontal.input_position(out_x, window.columns.begin);
      visit(window);
      ++window.out;
    }
  }
}

/// Calls visit(pixel) for each pixel of the input under the window, row by row.
template <class Visit>
void for_each_pixel(const TapWindow& window, const Visit& visit) {
  if (window.rows.size() == 2 && window.columns.size() == 2) {  // the usual pooling, which compilers unroll
    visit(window.first);
    visit(window.first + window.next_column);
    visit(window.first + window.next_row);
    visit(window.first + window.next_row + window.next_column);
    return;
  }
  Index row = window.first;
  for (Index i = 0; i < window.rows.size(); ++i, row += window.next_row) {
    Index pixel = row;
    for (Index j = 0; j < window.columns.size(); ++j, pixel += window.next_column) visit(pixel);
  }
}

/// Calls visit(tap) for each position of the window and each pixel under it, the padding left out.
template <class Visit>
void walk_taps(const WindowWalk& walk, const Visit& visit) {
  walk_windows(walk, [&](const TapWindow& window) {
    Tap tap{.out = window.out};
    for (Index row = window.rows.begin; row < window.rows.end; ++row) {
      tap.in = window.first + (row - window.rows.begin) * window.next_row;
      for (Index column = window.columns.begin; column < window.columns.end; ++column) {
        tap.weight = row * walk.horizontal.size + column;
        visit(tap);
        tap.in += window.next_column;
      }
    }
  });
}

}  // namespace lockstep
