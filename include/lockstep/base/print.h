// Results on standard output. What cannot be written is remembered, so that a result that did not arrive is
// an error at the end and not a part of a text that looks whole.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace lockstep {

void print_text(std::string_view text);

template <class... Arguments>
void print_out(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Errors: DataError if something that was printed could not be written.
void finish_printing();

}  // namespace lockstep
