// Runs as they are now, for a terminal: as of `trainer watch`.
#pragma once

#include <string>
#include <vector>

#include "lockstep/report/history/viewed_run.h"

namespace lockstep {

/// The place that a view has, in characters.
struct ViewSize {
  int columns = 80;
  int rows = 24;
};

/// Lines of at most size.columns characters, at most size.rows of them: of one run its progress, curves, the
/// shares of its time and its last warnings; of several a line each, with a small curve. UTF-8; no escape
/// codes, whatever names there are.
std::vector<std::string> watch_view(const std::vector<ViewedRun>& runs, ViewSize size);

/// The view for programs: a JSON list with an object for each run: its state, how far it is, how fast, its
/// last and best values of the measure that decides, the weights that are kept, its last sign of life.
std::string to_json(const std::vector<ViewedRun>& runs);

/// A curve in Braille, two values in a character: `width` characters wide and `height` high, from top to
/// bottom. Values that are not finite leave a gap.
std::vector<std::string> braille_curve(const std::vector<double>& values, int width, int height);

}  // namespace lockstep
