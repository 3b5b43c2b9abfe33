#include "lockstep/data/table/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/text.h"
#include "lockstep/data/table/number.h"

namespace lockstep {
namespace {

constexpr Index kMaxClasses = 20;

// Whole numbers, few enough to be classes, that are not 0, 1, 2, ... already.
bool are_classes_by_other_numbers(const ColumnSummary& summary) {
  const ValueCounts& counts = summary.number_counts;
  if (summary.texts > 0 || counts.overflowed() || counts.distinct() > kMaxClasses) return false;
  for (const ValueCounts::Entry& entry : counts.by_count()) {
    const double number = parse_number(entry.text).value_or(0);
    if (number != std::floor(number)) return false;
  }
  const auto last = static_cast<double>(counts.distinct() - 1);
  return summary.numbers.min != 0 || summary.numbers.max != last;
}

void take_guess(TableColumn& column, const ColumnSummary& summary, const ColumnGuess& guess) {
  if (column.kind != ColumnKind::kUnknown) return;
  column.kind = guess.kind;
  if (column.label && are_classes_by_other_numbers(summary)) column.kind = ColumnKind::kCategorical;
  if (guess.hash > 0 && !column.label && column.encoding == Encoding::kOneHot) {
    column.encoding = Encoding::kHash;
    column.buckets = guess.hash;
  }
}

ColumnGuess look_at_weight(const ColumnSummary& summary) {
  ColumnGuess guess{.kind = ColumnKind::kNumeric, .remark = ""};
  const Index without = summary.missing + summary.texts;
  if (without > 0) {
    guess.remark = fmt::format("{} record{} no weight: a bad record", with_commas(without),
                               without == 1 ? " has" : "s have");
  } else if (summary.numbers.min < 0) {
    guess.remark =
        fmt::format("weights go down to {:.4g}: a record with one below 0 is bad", summary.numbers.min);
  } else if (summary.numbers.max == 0) {
    guess.remark = "all weights are 0: there is nothing to learn";
  } else if (summary.numbers.min == summary.numbers.max) {
    guess.remark = "all weights are equal: as good as none";
  }
  return guess;
}

// The text as a string of TOML.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20 || code == 0x7f) {
      out += fmt::format("\\u{:04X}", code);
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

std::string list_line(const char* key, const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::vector<std::string> texts;
  for (const std::string& name : names) texts.push_back(quoted(name));
  return fmt::format("{} = [{}]\n", key, fmt::join(texts, ", "));
}

// A list in the config cannot hold a name with a comma; such a column is inferred instead.
bool can_be_listed(const TableColumn& column) {
  return column.name.find(',') == std::string::npos;
}

std::vector<std::string> names_of(const TableInspection& inspection, ColumnKind kind) {
  std::vector<std::string> names;
  for (const TableColumn& column : inspection.columns) {
    const bool listed = !column.label && !column.weight && can_be_listed(column);
    if (listed && column.kind == kind) names.push_back(column.name);
  }
  return names;
}

std::vector<std::string> special_columns(const TableInspection& inspection) {
  std::vector<std::string> special;
  for (std::size_t i = 0; i < inspection.columns.size(); ++i) {
    const TableColumn& column = inspection.columns[i];
    if (!can_be_listed(column)) continue;
    if (column.label && column.kind == ColumnKind::kCategorical) {
      special.push_back(column.name + ": categorical");
    } else if (!column.label && column.kind == ColumnKind::kCategorical &&
               column.encoding == Encoding::kHash) {
      special.push_back(fmt::format("{}: hash({})", column.name, column.buckets));
    }
  }
  return special;
}

// Records that would be bad with these kinds: at most as many.
Index count_bad(const TableInspection& inspection) {
  Index bad = inspection.scan.bad;
  for (std::size_t i = 0; i < inspection.columns.size(); ++i) {
    const ColumnSummary& summary = inspection.scan.columns[i];
    if (inspection.columns[i].kind == ColumnKind::kNumeric) bad += summary.texts;
    if (inspection.columns[i].weight) bad += summary.missing;
  }
  return bad;
}

std::string bad_record_lines(const TableInspection& inspection) {
  const Index bad = count_bad(inspection);
  if (bad == 0) return "";
  std::string lines = "on_bad_record = \"skip\"\n";
  const double share =
      static_cast<double>(bad) / static_cast<double>(inspection.scan.good + inspection.scan.bad);
  if (share > TableOptions{}.max_bad_share) {
    lines += fmt::format("max_bad_share = {:.3f}\n", std::min(1.0, std::ceil(share * 1000) / 1000));
  }
  return lines;
}

}  // namespace

TableInspection inspect_table(const std::string& path, const TableOptions& options) {
  const std::vector<std::string> paths{path};
  TableInspection inspection{.path = path,
                             .table = open_table_text(paths, options, alone()),
                             .columns = {},
                             .guesses = {},
                             .scan = {}};
  inspection.columns = declare_columns(options, inspection.table.names);
  inspection.scan =
      look_at_columns(inspection.table, inspection.columns, true, options.missing_values, alone());
  for (std::size_t i = 0; i < inspection.columns.size(); ++i) {
    const ColumnSummary& summary = inspection.scan.columns[i];
    inspection.guesses.push_back(inspection.columns[i].weight
                                     ? look_at_weight(summary)
                                     : guess_column(summary, inspection.columns[i].label));
    take_guess(inspection.columns[i], summary, inspection.guesses.back());
  }
  return inspection;
}

std::string data_section(const TableInspection& inspection) {
  std::vector<std::string> labels;
  std::string weight;
  for (const TableColumn& column : inspection.columns) {
    if (column.label) labels.push_back(column.name);
    if (column.weight) weight = fmt::format("weight = {}\n", quoted(column.name));
  }
  const Dialect& dialect = inspection.table.dialect;
  const std::string separator = dialect.separator == '\t' ? "tab" : std::string(1, dialect.separator);
  return fmt::format("[data]\nformat = \"csv\"\ntrain = {}\n", quoted(inspection.path)) +
         (labels.empty()
              ? "# label = [...]: the column to learn; 'trainer inspect FILE --label NAME' looks at it\n"
              : list_line("label", labels)) +
         weight + list_line("numeric", names_of(inspection, ColumnKind::kNumeric)) +
         list_line("categorical", names_of(inspection, ColumnKind::kCategorical)) +
         list_line("ignore", names_of(inspection, ColumnKind::kIgnored)) +
         list_line("columns", special_columns(inspection)) +
         fmt::format("header = \"{}\"\nseparator = \"{}\"\n", inspection.table.header ? "yes" : "no",
                     separator) +
         (dialect.quotes ? "" : "quotes = false\n") + bad_record_lines(inspection);
}

}  // namespace lockstep
