// Standard output where it is a terminal: how wide it is, and its last row, which may be drawn again and
// again while the log goes on above it. Rows are overwritten with spaces, without escape codes. Colours
// are for terminals that show them, and for nobody who has asked for none.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "lockstep/base/types.h"

namespace lockstep {

/// Whether standard output is a terminal that somebody looks at. Under a launcher it can be a terminal of the
/// launcher's making while the launcher itself writes to a file; so the parent's output is asked as well.
bool output_is_live();

/// From now on output_is_live() is false and no row is drawn: several processes write lines to one terminal.
void stop_live_output();

/// Whether a terminal can go back to the beginning of a row: not where TERM is "dumb", empty or not set.
bool rows_can_be_redrawn();

/// Whether what is written to standard output, or to standard error, may be coloured: on a terminal, unless
/// TERM is "dumb", empty or not set, NO_COLOR is set (no-color.org) or CLICOLOR is 0. Without NO_COLOR,
/// CLICOLOR_FORCE colours files, too (bixense.com/clicolors).
bool output_has_colours();
bool errors_have_colours();

/// Columns of the terminal that somebody looks at; 80 if it does not report them.
int terminal_columns();

/// Draws the last row again. `text`: ASCII, at most terminal_columns() - 1 characters.
void draw_live_row(std::string_view text);
/// Erases it, if there is one.
void erase_live_row();
/// Erases it and calls `write`, while no other thread draws.
void print_above_live_row(const std::function<void()>& write);

/// Breaks lines at spaces where they are wider than `columns`; continued lines are indented by so many. A
/// word that is wider is left whole. `used`: columns that are taken before the first line.
std::string wrap_lines(std::string_view text, int columns, int used = 0, int indent = 2);

/// The text as a terminal may show it: control characters but line ends and tabs, marks of the direction of
/// writing and bytes that are no UTF-8 as excerpt() writes them. Paths can have any of them.
std::string printable_lines(std::string_view text);

// Results on standard output. What cannot be written is remembered, so that a result that did not arrive is
// an error at the end and not a part of a text that looks whole.

/// As printable_lines() has it.
void print_text(std::string_view text);
/// With its control sequences.
void print_raw(std::string_view text);

template <class... Arguments>
void print_out(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Hands on what was printed so far.
void flush_printed();
/// Hands on what a KeptOutput has kept, too. Errors: DataError if something that was printed could not be
/// written.
void finish_printing();

/// While it lives, a launcher that forwards standard output to a file or a pipe gets nothing of it; what was
/// printed goes there at the end, when all of standard error has been read. mpirun of Open MPI 5 keeps a part
/// of a line until the rest comes, and where a line of standard error comes first, it prints the part before
/// that one, on standard error. One at a time.
class KeptOutput : NoCopy {
 public:
  KeptOutput();
  ~KeptOutput();
};

}  // namespace lockstep
