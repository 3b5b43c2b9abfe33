// Texts and tables of a page. Whatever a name holds, a browser shows it as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The text with <, >, &, " and ' as entities, and control characters and what is no UTF-8 as excerpt() has
/// them; cut beyond `max_bytes`.
std::string html_text(std::string_view text, std::size_t max_bytes = 200);

/// Lines in fixed width: each as html_text() has it, the first 2,000 of them.
std::string html_lines(std::string_view text);

/// A JSON text that may stand in a <script>: no "<" is in it.
std::string script_json(std::string_view json);

/// A text as a JSON string of ASCII characters.
std::string json_text(std::string_view text);

/// Cells are texts, which are escaped here. The first cell of a row is its head; `numbers`: others stand to
/// the right.
struct HtmlTable {
  std::string caption;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows = {};
  bool numbers = true;
  std::size_t max_bytes = 200;  ///< of a cell; longer ones are cut
};

/// In a box of its own, which scrolls by the keyboard, too.
std::string to_html(const HtmlTable& table);

}  // namespace lockstep
