// Case files (test/cases/*.case): tables and texts, the keys of a config, and what comes out of them, as
// data. The notation stands in test/README.md; cases_test.cpp says what the words of a case mean.
#pragma once

#include "lockstep/base/json.h"
#include "lockstep/base/types.h"
#include "support/common.h"

namespace lockstep::test {

struct CaseLine {
  std::string text;
  int line = 0;  ///< of the case file, from 1 on
};

/// A word at the start of a line with what is behind it, and what stands below it, or behind a colon: lines,
/// with " / " between those that stand side by side.
struct CaseSection {
  std::string word;
  std::string rest;
  int line = 0;
  std::vector<CaseLine> lines = {};
};

struct Case {
  std::string file;  ///< path of the case file
  std::string name;
  int line = 0;
  std::vector<CaseSection> sections = {};
};

/// The cases of a file; sections before the first one belong to each. Errors: std::runtime_error.
std::vector<Case> read_cases(const std::string& path);

/// The lines of a section as the content of a file: `\x41` is a byte, a line that ends in `\` has no line
/// end, and what stands below `repeat N:`, or behind it, is written N times. There `{i}` is the number of the
/// line, the second one being 0: `{i%7+1:02}` computes, `{i%20=3 ? NA | {i}.5}` and `{i%3 of a|b|c}` choose,
/// and
/// `{2024-01-31+i:%d.%m.%Y}` counts days, `{i*60:@%H:%M}` seconds. Errors: std::runtime_error.
std::string content_of(const CaseSection& section);
/// A text with its bytes `\x41`.
std::string with_bytes(const std::string& text);

/// Days since 1970 of "2024-01-31", whatever stands behind it. Nothing: that is no date.
std::optional<Index> days_of(std::string_view date);

/// Its parts between separators, without the blanks around them.
std::vector<std::string> split_text(const std::string& text, const std::string& separator);

using Json = nlohmann::json;

/// Whether a text says what was found: the same text or JSON, a number to six digits, or "_", anything.
bool says(const std::string& expected, const Json& found);
/// The same of all words of a line; "3*0" is "0 0 0".
bool says_same(const std::string& line, const std::string& found);
/// The words of a line; blanks in quotes and brackets divide none.
std::vector<std::string> words_of(const std::string& line);
/// "a.b" of an object, "a.0" of a list; null if it is not there.
Json member(const Json& json, const std::string& path);

}  // namespace lockstep::test
