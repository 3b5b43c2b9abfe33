#include "run_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/base/build_info.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "read_run.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const std::filesystem::path& file) {
  return is_there(file) ? read_file(file) : "";
}

double number_or_zero(const Json& json, const char* name) {
  const auto found = json.is_object() ? json.find(name) : json.end();
  return found != json.end() && found->is_number() ? found->get<double>() : 0;
}

std::string text_at(const Json& json, const char* name) {
  const auto found = json.is_object() ? json.find(name) : json.end();
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

void add_predictions(PageRun& run, const std::string& text) {
  run.predictions = read_shown_predictions(text);
}

void add_importance(PageRun& run, const std::string& text) {
  const auto json = parse_json<Json>(text);
  run.importance = {.measure = text_at(json, "measure"),
                    .set = text_at(json, "set"),
                    .baseline = number_or_zero(json, "baseline")};
  const Json columns = json.is_object() ? json.value("columns", Json()) : Json();
  for (const Json& column : columns) {
    run.importance.columns.push_back(
        {.name = text_at(column, "column"), .mean = number_or_zero(column, "importance")});
  }
}

std::string describe_values(const Json& column) {
  const auto values = column.find("values");
  if (values == column.end() || !values->is_array()) {
    return fmt::format("{:.5g} to {:.5g}, mean {:.5g}", number_or_zero(column, "min"),
                       number_or_zero(column, "max"), number_or_zero(column, "mean"));
  }
  constexpr std::size_t kShown = 8;
  std::vector<std::string> shown;
  for (const Json& value : *values) {
    if (value.is_string() && shown.size() < kShown) shown.push_back(value.get<std::string>());
  }
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     values->size() > kShown ? fmt::format(", ... ({} in all)", values->size()) : "");
}

void add_schema(PageRun& run, const std::string& text) {
  const auto json = parse_json<Json>(text);
  const Json columns = json.is_object() ? json.value("columns", Json()) : Json();
  for (const Json& column : columns) {
    if (!column.is_object()) throw DataError("a column is no object");
    run.columns.push_back(
        {text_at(column, "name"), text_at(column, "use"), text_at(column, "kind"),
         with_commas(static_cast<Index>(std::clamp(number_or_zero(column, "missing_count"), 0.0, 1e15))),
         text_at(column, "use") == "ignore" ? "" : describe_values(column)});
    const auto values = column.find("values");
    if (text_at(column, "use") != "label" || values == column.end() || !values->is_array()) continue;
    for (const Json& value : *values)
      run.classes.push_back(value.is_string() ? value.get<std::string>() : "");
  }
}

}  // namespace

PageRun read_page_run(const std::filesystem::path& path) {
  PageRun run{read_run(path)};
  const RunDirectory directory{path};
  const auto add = [&](const std::filesystem::path& file, void (*part)(PageRun&, const std::string&)) {
    try {
      const std::string text = text_of(file);
      if (!text.empty()) part(run, text);
    } catch (const std::exception& error) {
      run.record.warnings.push_back(
          fmt::format("{} cannot be read: {}", file.filename().string(), error.what()));
    }
  };
  add(directory.evaluation(), add_predictions);
  add(directory.importance(), add_importance);
  add(directory.schema(), add_schema);
  return run;
}

std::vector<PageRun> read_page_runs(const std::vector<std::string>& names) {
  std::vector<PageRun> runs;
  for (const std::filesystem::path& directory : find_runs(names)) runs.push_back(read_page_run(directory));
  return runs;
}

void write_evaluation_file(const RunDirectory& run, const EvaluationDetails& details) {
  try {
    write_file_atomically(run.evaluation(), to_json(details));
  } catch (const std::exception& error) {
    log_warning("evaluation.json is not written: {}", error.what());
  }
}

void write_run_page(const RunDirectory& run) {
  constexpr Index kMaxMetricsBytes = Index{16} << 20;  // read in a third of a second
  if (!has_feature("CHARTJS")) return;
  try {
    if (file_bytes(run.metrics()) > kMaxMetricsBytes) {
      log_info("report.html is left out, as metrics.jsonl is long: trainer report {} --output report.html",
               run.root.string());
      return;
    }
    write_file_atomically(run.report(), report_page({read_page_run(run.root)}));
  } catch (const std::exception& error) {
    log_warning("report.html is not written: {}", error.what());
  }
}

}  // namespace lockstep
