// The walk of a window over an image, for kernels that go pixel by pixel.
#pragma once

#include "lockstep/math/window.h"

namespace lockstep {

/// How the window moves over images of height x width pixels.
struct WindowWalk {
  Index height = 1;
  Index width = 1;
  Window vertical = {};
  Window horizontal = {};
};

/// One position of the window. Pixels are numbered row by row.
struct WindowPlace {
  Index out = 0;    ///< its number: a pixel of the output
  Range rows = {};  ///< of its taps, those that do not fall into the padding
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
  Index weight = 0;  ///< its place in the window
};

/// Calls visit(place) for each position of the window.
template <class Visit>
void walk_windows(const WindowWalk& walk, const Visit& visit) {
  const Index out_height = walk.vertical.positions(walk.height);
  const Index out_width = walk.horizontal.positions(walk.width);
  WindowPlace place{.next_row = walk.vertical.dilation * walk.width, .next_column = walk.horizontal.dilation};
  for (Index out_y = 0; out_y < out_height; ++out_y) {
    place.rows = walk.vertical.taps_inside(out_y, walk.height);
    const Index row = walk.vertical.place(out_y, place.rows.begin) * walk.width;
    for (Index out_x = 0; out_x < out_width; ++out_x) {
      place.columns = walk.horizontal.taps_inside(out_x, walk.width);
      place.first = row + walk.horizontal.place(out_x, place.columns.begin);
      visit(place);
      ++place.out;
    }
  }
}

/// Calls visit(pixel) for each pixel of the input under the window, row by row.
template <class Visit>
void for_each_pixel(const WindowPlace& place, const Visit& visit) {
  if (place.rows.size() == 2 && place.columns.size() == 2) {  // the usual pooling, which compilers unroll
    visit(place.first);
    visit(place.first + place.next_column);
    visit(place.first + place.next_row);
    visit(place.first + place.next_row + place.next_column);
    return;
  }
  Index row = place.first;
  for (Index i = 0; i < place.rows.size(); ++i, row += place.next_row) {
    Index pixel = row;
    for (Index j = 0; j < place.columns.size(); ++j, pixel += place.next_column) visit(pixel);
  }
}

/// Calls visit(tap) for each position of the window and each pixel under it, the padding left out.
template <class Visit>
void walk_taps(const WindowWalk& walk, const Visit& visit) {
  walk_windows(walk, [&](const WindowPlace& place) {
    Tap tap{.out = place.out};
    for (Index row = place.rows.begin; row < place.rows.end; ++row) {
      tap.in = place.first + (row - place.rows.begin) * place.next_row;
      for (Index column = place.columns.begin; column < place.columns.end; ++column) {
        tap.weight = row * walk.horizontal.size + column;
        visit(tap);
        tap.in += place.next_column;
      }
    }
  });
}

}  // namespace lockstep
