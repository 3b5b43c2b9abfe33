// Files of configs/ that are part of the program, as they were when it was built: the guides, and the texts
// that are data (help, words of other programs, scripts of shells).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

struct EmbeddedText {
  std::string_view name;  ///< its place in configs/: "guides/tables.md"
  std::string_view text;
};

std::span<const EmbeddedText> embedded_texts();

/// The text of configs/NAME. Requires that it is embedded.
std::string_view embedded_text(std::string_view name);

/// An entry of a text in configs/texts:
///
///   train.lr
///     help: Learning rate before scaling and schedule, which
///       may go on in the next line
///     example: 0.1
///
/// A line that begins with '#' is a comment.
struct TextEntry {
  std::string name;
  std::vector<std::pair<std::string, std::string>> fields;

  /// The text of the first field of that name; "" if there is none.
  std::string get(std::string_view field) const;
  /// The texts of all fields of that name.
  std::vector<std::string> get_all(std::string_view field) const;
  /// The words of get(), which blanks separate.
  std::vector<std::string> get_words(std::string_view field) const;
};

/// The entries of configs/NAME, in order.
std::vector<TextEntry> embedded_entries(std::string_view name);

}  // namespace lockstep
