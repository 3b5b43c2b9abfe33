#include "support/case_files.h"

#include <fmt/chrono.h>

#include <ctime>

namespace lockstep::test {
namespace {

constexpr const char* kSideBySide = " / ";

// A formula of whole numbers: numbers, dates such as 2024-01-31, which are days since 1970, `i` and
// parentheses, between = < > (1 or 0), then + -, then * / %.
class Formula {
 public:
  Formula(std::string_view text, Index i) : rest_(text), i_(i) {}

  Index value() {
    const Index found = level(0);
    if (!rest_.empty()) throw std::runtime_error(fmt::format("'{}' is no formula", rest_));
    return found;
  }

 private:
  char next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    return rest_.empty() ? '\0' : rest_.front();
  }
  Index level(std::size_t depth) {
    constexpr std::array<std::string_view, 3> kSigns{"=<>", "+-", "*/%"};
    if (depth == kSigns.size()) return factor();
    Index left = level(depth + 1);
    while (kSigns[depth].find(next()) != std::string_view::npos) {
      const char sign = rest_.front();
      rest_.remove_prefix(1);
      const Index right = level(depth + 1);
      left = sign == '='   ? left == right
             : sign == '<' ? left < right
             : sign == '>' ? left > right
             : sign == '+' ? left + right
             : sign == '-' ? left - right
             : sign == '*' ? left * right
             : sign == '/' ? left / right
                           : left % right;
    }
    return left;
  }
  Index factor() {
    if (next() == '-') {
      rest_.remove_prefix(1);
      return -factor();
    }
    if (next() == 'i' || next() == '(') {
      const bool is_number = rest_.front() == 'i';
      rest_.remove_prefix(1);
      const Index inner = is_number ? i_ : level(0);
      if (!is_number && next() == ')') rest_.remove_prefix(1);
      return inner;
    }
    if (const std::optional<Index> date = days_of(rest_.substr(0, 10))) {
      rest_.remove_prefix(10);
      return *date;
    }
    std::size_t digits = 0;
    const Index number = std::stoll(std::string(rest_), &digits);
    rest_.remove_prefix(digits);
    return number;
  }

  std::string_view rest_;
  Index i_;
};

// The place of a text in another one, outside of braces; npos: it is not there.
std::size_t find_outside(std::string_view text, std::string_view wanted) {
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (depth == 0 && text.substr(at).starts_with(wanted)) return at;
    depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
  }
  return std::string_view::npos;
}

std::string expand(std::string_view text, Index i);

std::string choose(std::string_view texts, Index number, Index i) {
  for (;; --number) {
    const std::size_t end = find_outside(texts, "|");
    if (number == 0) {
      std::string_view chosen = texts.substr(0, end);
      if (chosen.starts_with(' ')) chosen.remove_prefix(1);
      if (chosen.ends_with(' ') && end != std::string_view::npos) chosen.remove_suffix(1);
      return expand(chosen, i);
    }
    if (end == std::string_view::npos) throw std::runtime_error("there are too few texts to choose from");
    texts.remove_prefix(end + 1);
  }
}

std::string value_of(std::string_view text, Index i) {
  if (const std::size_t at = find_outside(text, "?"); at != std::string_view::npos)
    return choose(text.substr(at + 1), Formula(text.substr(0, at), i).value() != 0 ? 0 : 1, i);
  if (const std::size_t at = find_outside(text, " of "); at != std::string_view::npos)
    return choose(text.substr(at + 4), Formula(text.substr(0, at), i).value(), i);
  const std::size_t colon = std::min(text.find(':'), text.size());
  std::string form(text.substr(std::min(colon + 1, text.size())));
  const Index number = Formula(text.substr(0, colon), i).value();
  if (form.find('%') == std::string::npos) return fmt::format(fmt::runtime("{:" + form + "}"), number);
  const bool seconds = form.front() == '@';
  if (seconds) form.erase(0, 1);
  const std::time_t time = seconds ? number : number * 86400;
  return fmt::format(fmt::runtime("{:" + form + "}"), fmt::gmtime(time));
}

std::string expand(std::string_view text, Index i) {
  std::string all;
  while (!text.empty()) {
    const std::size_t open = std::min(text.find('{'), text.size());
    all += text.substr(0, open);
    text.remove_prefix(open);
    if (text.empty()) break;
    const std::size_t close = find_outside(text.substr(1), "}");
    if (close == std::string_view::npos) throw std::runtime_error("a brace that is not closed");
    all += value_of(text.substr(1, close), i);
    text.remove_prefix(close + 2);
  }
  return all;
}

// The lines of a content as they are written, one after the other.
class Writer {
 public:
  void write(const std::vector<CaseLine>& lines) {
    for (std::size_t at = 0; at < lines.size(); ++at) {
      const std::string& text = lines[at].text;
      const std::size_t colon = text.find(':');
      if (!text.starts_with("repeat ") || colon == std::string::npos) {
        add(text);
        continue;
      }
      std::vector<std::string> body;
      if (colon + 1 < text.size()) body.push_back(text.substr(colon + 2));
      const Index times = Formula(std::string_view(text).substr(7, colon - 7), 0).value();
      while (at + 1 < lines.size() && lines[at + 1].text.starts_with("  "))
        body.push_back(lines[++at].text.substr(2));
      for (Index turn = 0; turn < times; ++turn) {
        for (const std::string& line : body) add(expand(line, lines_ - 1));
      }
    }
  }
  std::string take() { return std::move(text_); }

 private:
  void add(const std::string& line) {
    const bool goes_on = line.ends_with('\\');
    text_ += with_bytes(goes_on ? line.substr(0, line.size() - 1) : line);
    if (goes_on) return;
    text_ += '\n';
    ++lines_;
  }

  std::string text_;
  Index lines_ = 0;
};

void add_lines(const std::string& text, int line, std::vector<CaseLine>& lines) {
  if (text.find(kSideBySide) == std::string::npos) return lines.push_back({text, line});
  for (const std::string& each : split_text(text, kSideBySide)) lines.push_back({each, line});
}

CaseSection read_section(const std::string& text, int line) {
  const std::size_t colon = text.starts_with("keys ") ? std::string::npos : text.find(": ");
  const std::string head = text.substr(0, colon);
  const std::size_t end = std::min(head.find(' '), head.size());
  CaseSection section{
      .word = head.substr(0, end), .rest = head.substr(std::min(end + 1, head.size())), .line = line};
  if (colon != std::string::npos) add_lines(text.substr(colon + 2), line, section.lines);
  return section;
}

}  // namespace

std::optional<Index> days_of(std::string_view date) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  const std::string text(date);
  if (std::sscanf(text.c_str(), "%4d-%2u-%2u", &year, &month, &day) < 3) return std::nullopt;
  const std::chrono::year_month_day found{std::chrono::year{year}, std::chrono::month{month},
                                          std::chrono::day{day}};
  return std::chrono::sys_days(found).time_since_epoch().count();
}

std::string with_bytes(const std::string& text) {
  std::string all;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool byte = text.compare(at, 2, "\\x") == 0;
    all += byte ? static_cast<char>(std::stoi(text.substr(at + 2, 2), nullptr, 16)) : text[at];
    if (byte) at += 3;
  }
  return all;
}

std::string content_of(const CaseSection& section) {
  Writer writer;
  writer.write(section.lines);
  return writer.take();
}

std::vector<std::string> split_text(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    const std::size_t first = std::min(text.find_first_not_of(' ', begin), end);
    const std::size_t last = first == end ? end : text.find_last_not_of(' ', end - 1) + 1;
    parts.push_back(text.substr(first, last - first));
    begin = end + separator.size();
  }
  return parts;
}

std::vector<Case> read_cases(const std::string& path) {
  std::ifstream file(path);
  std::vector<Case> cases;
  Case common{.file = path, .name = {}};
  int number = 0;
  int blank = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::vector<CaseSection>& sections = cases.empty() ? common.sections : cases.back().sections;
    if (line.starts_with("  ") && !sections.empty()) {
      std::vector<CaseLine>& lines = sections.back().lines;
      if (!lines.empty()) lines.insert(lines.end(), static_cast<std::size_t>(blank), {"", number});
      add_lines(line.substr(2), number, lines);
    } else if (line.starts_with("case ")) {
      cases.push_back({.file = path, .name = line.substr(5), .line = number, .sections = common.sections});
    } else if (!line.empty() && line[0] != '#') {
      for (const std::string& each : split_text(line, " => ")) sections.push_back(read_section(each, number));
    }
    blank = line.empty() ? blank + 1 : 0;
  }
  if (cases.empty()) throw std::runtime_error(fmt::format("{} has no cases", path));
  return cases;
}

bool says(const std::string& expected, const Json& found) {
  const Json wanted = Json::parse(expected, nullptr, false);
  if (wanted.is_number() && found.is_number()) {
    const double number = wanted.get<double>();
    return std::abs(found.get<double>() - number) <= 2e-6 * std::max(1.0, std::abs(number));
  }
  return expected == "_" || found == wanted || (found.is_string() && found.get<std::string>() == expected);
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words{""};
  int depth = 0;
  bool quoted = false;
  for (const char c : line) {
    quoted ^= c == '"';
    depth += quoted ? 0 : c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c != ' ' || depth > 0 || quoted) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool says_same(const std::string& line, const std::string& found) {
  if (line == found) return true;
  std::vector<std::string> wanted;
  for (const std::string& word : words_of(line)) {
    const std::size_t star = word.find('*');
    const bool once = star == std::string::npos;
    wanted.insert(wanted.end(), once ? 1 : std::stoull(word), word.substr(once ? 0 : star + 1));
  }
  return std::ranges::equal(wanted, words_of(found), [](const std::string& a, const std::string& b) {
    const Json number = Json::parse(b, nullptr, false);
    return a == b || says(a, number.is_number() ? number : Json(b));
  });
}

Json member(const Json& json, const std::string& path) {
  const std::size_t dot = path.find('.');
  const std::string name = path.substr(0, dot);
  Json found;
  if (json.is_object() && json.contains(name)) found = json.at(name);
  if (json.is_array() && std::stoull(name) < json.size()) found = json.at(std::stoull(name));
  return dot == std::string::npos ? found : member(found, path.substr(dot + 1));
}

}  // namespace lockstep::test
