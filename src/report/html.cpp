#include "html.h"

#include <fmt/format.h>

#include <sstream>

#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep {

std::string html_text(std::string_view text, std::size_t max_bytes) {
  std::string html;
  for (const char c : excerpt(text, max_bytes)) {
    switch (c) {
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '&':
        html += "&amp;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string html_lines(std::string_view text) {
  constexpr int kMaxLines = 2000;
  std::istringstream in{std::string(text)};
  std::string html;
  int lines = 0;
  for (std::string line; std::getline(in, line);) {
    if (++lines > kMaxLines) return html + "...\n";
    html += html_text(line, 400) + "\n";
  }
  return html;
}

std::string script_json(std::string_view json) {
  std::string text;
  for (const char c : json) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::string json_text(std::string_view text) {
  return nlohmann::json(excerpt(text, 200)).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string to_html(const HtmlTable& table) {
  std::string html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\">\n"
      "<table{1}>\n<caption><span>{0}</span></caption>\n<thead><tr>",
      html_text(table.caption), table.numbers ? " class=\"numbers\"" : "");
  for (const std::string& cell : table.head)
    html += fmt::format("<th scope=\"col\">{}</th>", html_text(cell));
  html += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell = html_text(row[i], table.max_bytes);
      html += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", cell) : fmt::format("<td>{}</td>", cell);
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table>\n</div>\n";
}

}  // namespace lockstep
