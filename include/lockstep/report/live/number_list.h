// Every number that a run writes, with its one definition: the fields of metrics.jsonl and summary.json, and
// the words of the log for them. The tables of the guide on output are written from this list.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct NumberEntry {
  std::vector<std::string> fields;  ///< names in the file; none for a number of the log alone
  std::string meaning;              ///< with its unit, in Markdown; links are those of the guide
  std::string in_log = {};          ///< how the log names it, in Markdown; "" where it has it not
  std::string label = {};           ///< stands for `fields` where these are many, or none
};

/// The numbers of one kind of line, or of one object in it.
struct NumberTable {
  std::string name;  ///< "training"; the mark of the table in the guide
  std::vector<NumberEntry> entries;
};

std::span<const NumberTable> number_tables();

/// All tables in Markdown, each below its mark, `<!-- numbers: training -->`, and above an empty line.
std::string numbers_markdown();

}  // namespace lockstep
