// The report of an inspection.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "findings.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string kind_of(const TableColumn& column) {
  if (column.label) return column.kind == ColumnKind::kCategorical ? "label, classes" : "label, numeric";
  if (column.weight) return "weight";
  if (column.kind == ColumnKind::kNumeric) return column.date ? "date" : "numeric";
  return column.kind == ColumnKind::kCategorical ? "categorical" : "ignore";
}

std::string list_values(const ColumnSummary& summary, std::size_t most) {
  if (summary.countless()) return "very many different values";
  return list_shares(summary.values(), "different", summary.texts + summary.numbers.count, most);
}

// A label of few numbers is shown as classes, whose balance matters.
std::string describe_values(const TableColumn& column, const ColumnSummary& summary) {
  constexpr std::size_t kMaxShown = 4;
  constexpr std::size_t kMaxClassesShown = 20;
  const bool few = !summary.countless() && summary.number_counts.distinct() <= Index{kMaxClassesShown};
  const bool numbers = summary.numbers.count > summary.texts && column.kind != ColumnKind::kCategorical;
  if (column.label && few) return list_values(summary, kMaxClassesShown);
  if (!numbers) return summary.texts + summary.numbers.count == 0 ? "" : list_values(summary, kMaxShown);
  const NumberStats& stats = summary.numbers;
  if (column.date) return column.date->term();
  return fmt::format("{:.6g} to {:.6g}, mean {:.6g}, deviation {:.4g}", stats.min, stats.max, stats.mean,
                     stats.deviation());
}

std::vector<std::string> suspicious(const TableInspection& inspection) {
  std::vector<std::string> lines = inspection.table.warnings;
  for (std::size_t i = 0; i < inspection.columns.size(); ++i) {
    const std::string& remark = inspection.guesses[i].remark;
    const TableColumn& column = inspection.columns[i];
    if (!remark.empty()) lines.push_back(fmt::format("column {}: {}", in_quotes(column.name), remark));
  }
  constexpr std::size_t kMaxFindings = 50;
  const auto shown = std::span(inspection.findings).first(std::min(kMaxFindings, inspection.findings.size()));
  for (const Finding& finding : shown) {
    const std::string about =
        finding.column.empty() ? "" : fmt::format("column {}: ", in_quotes(finding.column));
    const std::string add = finding.setting.empty() ? "" : fmt::format("; add {}", finding.setting);
    lines.push_back(about + finding.text + add);
  }
  if (inspection.findings.size() > shown.size()) {
    lines.push_back(
        fmt::format("{} more of this kind; --json lists all", inspection.findings.size() - shown.size()));
  }
  const Scan& scan = inspection.scan;
  if (scan.bad > 0) {
    lines.push_back(fmt::format("{} of {} records are bad ({:.3g} %), the first: {}", with_commas(scan.bad),
                                with_commas(scan.good + scan.bad), 100 * scan.bad_share(),
                                scan.rejects.front()));
  }
  return lines;
}

std::string column_table(const TableInspection& inspection) {
  std::size_t width = 6;
  for (const TableColumn& column : inspection.columns) width = std::max(width, excerpt(column.name).size());
  width = std::min<std::size_t>(width, 30);
  std::string text = fmt::format("  {:<{}}  {:<14}  {:>9}  values\n", "column", width, "kind", "missing");
  for (std::size_t i = 0; i < inspection.columns.size(); ++i) {
    const TableColumn& column = inspection.columns[i];
    const ColumnSummary& summary = inspection.scan.columns[i];
    const std::string missing =
        summary.missing == 0 ? "-" : fmt::format("{:.2f} %", percent(summary.missing, inspection.scan.good));
    text += fmt::format("  {:<{}}  {:<14}  {:>9}  {}\n", excerpt(column.name), width, kind_of(column),
                        missing, describe_values(column, summary));
  }
  return text;
}

Json inspected_column_json(const TableColumn& column, const ColumnSummary& summary, const std::string& remark,
                           Index records) {
  constexpr std::size_t kMaxValues = 100;
  Json json{{"name", column.name},
            {"kind", kind_of(column)},
            {"missing", summary.missing},
            {"missing_share", percent(summary.missing, records) / 100}};
  if (summary.numbers.count > 0) {
    json["numbers"] = {{"count", summary.numbers.count},
                       {"min", summary.numbers.min},
                       {"max", summary.numbers.max},
                       {"mean", summary.numbers.mean},
                       {"deviation", summary.numbers.deviation()}};
  }
  if (!summary.countless()) {
    const std::vector<ValueCounts::Entry> values = summary.values();
    json["different"] = values.size();
    for (const ValueCounts::Entry& value : std::span(values).first(std::min(kMaxValues, values.size()))) {
      json["values"].push_back({{"value", value.text}, {"count", value.count}});
    }
  }
  if (!remark.empty()) json["remark"] = remark;
  return json;
}

}  // namespace

std::string list_shares(const std::vector<ValueCounts::Entry>& values, std::string_view noun, Index whole,
                        std::size_t most) {
  std::vector<std::string> shown;
  for (const ValueCounts::Entry& value : std::span(values).first(std::min(most, values.size())))
    shown.push_back(fmt::format("{} {:.1f} %", in_quotes(value.text), percent(value.count, whole)));
  return fmt::format("{} {}: {}{}", with_commas(std::ssize(values)), noun, fmt::join(shown, ", "),
                     values.size() > most ? ", ..." : "");
}

std::string to_text(const TableInspection& inspection) {
  const Dialect& dialect = inspection.table.text.dialect;
  std::string text =
      fmt::format("{}: {} records of {} columns, separated by {}, {}\n\n{}", inspection.path,
                  with_commas(inspection.scan.good), inspection.columns.size(),
                  dialect.separator == '\t' ? "tabs" : fmt::format("'{}'", dialect.separator),
                  inspection.table.header ? "with a header" : "without a header", column_table(inspection));
  const std::vector<std::string> lines = suspicious(inspection);
  if (!lines.empty()) text += "\nSuspicious\n";
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text + "\nTo train on it:\n\n" + data_section(inspection);
}

std::string to_json(const TableInspection& inspection) {
  Json json{{"file", inspection.path},
            {"records", inspection.scan.good},
            {"bad_records", inspection.scan.bad},
            {"header", inspection.table.header},
            {"separator", std::string(1, inspection.table.text.dialect.separator)},
            {"columns", Json::array()},
            {"suspicious", suspicious(inspection)},
            {"findings", Json::array()},
            {"config", data_section(inspection)}};
  for (std::size_t i = 0; i < inspection.columns.size(); ++i) {
    json["columns"].push_back(inspected_column_json(inspection.columns[i], inspection.scan.columns[i],
                                                    inspection.guesses[i].remark, inspection.scan.good));
  }
  for (const Finding& finding : inspection.findings) {
    json["findings"].push_back({{"kind", finding.kind},
                                {"column", finding.column.empty() ? Json() : Json(finding.column)},
                                {"count", finding.count},
                                {"text", finding.text},
                                {"setting", finding.setting.empty() ? Json() : Json(finding.setting)}});
  }
  return json.dump(2) + "\n";
}

}  // namespace lockstep
