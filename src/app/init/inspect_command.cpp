// trainer inspect: what is in a table, with the [data] section to train on it; in a text; or in the records
// of any other format.
#include <fmt/format.h>

#include "app/commands.h"
#include "app/setup/catalogs.h"
#include "app/setup/outputs.h"
#include "app/setup/run_config.h"
#include "init.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/inputs/byte_stream.h"
#include "lockstep/data/inputs/reading_row.h"
#include "lockstep/data/kinds/kind.h"

namespace lockstep {
namespace {

// The text for people, and what --json has.
struct Report {
  std::string text;
  std::string json;
};

Report inspect_a_table(const DataOptions& options, const FormatEntry& format) {
  const auto set = [&](const char* name, const std::string& path, const char* key) {
    return FileSet{name, list_files(path, format.extensions, key)};
  };
  std::vector<FileSet> others;
  if (!options.validation.empty())
    others.push_back(set("the validation set", options.validation, "data.validation"));
  if (!options.test.empty()) others.push_back(set("the test set", options.test, "data.test"));
  TableInspection inspection =
      inspect_table(set(options.train.c_str(), options.train, "DATA"), options.table, others);
  try {
    inspection.series = summarise_series_of(inspection, options);
  } catch (const DataError& error) {  // such as two records of one time
    inspection.table.warnings.push_back(error.what());
  }
  return {to_text(inspection), to_json(inspection)};
}

Report inspect_a_text(const DataOptions& options) {
  refuse_for_text(options);
  const TextSummary summary = summarise_text(options, 0.1);
  return {describe_text(options.train, options.text.tokens, summary), indented(to_json(summary))};
}

// The numbers of each feature or channel, where they are few; else of all of them.
Report inspect_records(const DataOptions& options) {
  constexpr std::size_t kMaxRows = 40;
  InitData data = read_init_data(options.train, options, false);
  const bool by_channel = std::ssize(data.numbers) < data.features.size();
  if (data.numbers.size() > kMaxRows) {
    NumberStats all;
    for (const NumberStats& feature : data.numbers) all.merge(feature);
    data.numbers = {all};
  }
  Report report;
  report.text = fmt::format("{}: {} of {}, format {}\n\n", options.train, plural(data.records, "record"),
                            to_string(data.features), data.format);
  nlohmann::ordered_json json{{"file", options.train},
                              {"format", data.format},
                              {"records", data.records},
                              {"features", data.features.dims},
                              {"numbers", nlohmann::ordered_json::array()}};
  std::vector<std::vector<std::string>> rows{
      {by_channel ? "channel" : "feature", "min", "mean", "deviation", "max"}};
  const auto add_row = [&rows](const std::string& name, const NumberStats& of) {
    rows.push_back({name, fmt::format("{:.6g}", of.min), fmt::format("{:.6g}", of.mean),
                    fmt::format("{:.6g}", of.deviation()), fmt::format("{:.6g}", of.max)});
  };
  for (const NumberStats& of : data.numbers) {
    add_row(data.numbers.size() == 1 ? "all" : fmt::format("{}", rows.size() - 1), of);
    json["numbers"].push_back(to_json(of));
  }
  const LabelFacts& label = data.label;
  if (label.columns > 0) {
    if (label.numbers.count > 0) add_row(label.name, label.numbers);
    json["label"] = to_json(label.numbers);
  }
  report.text += text_table(rows, 1);
  if (!label.values.empty())
    report.text +=
        fmt::format("\n{}: {}\n", label.name, list_shares(label.values, "different", data.label_count(), 10));
  report.text += "\n'trainer init' writes a first config for it.\n";
  report.json = indented(json);
  return report;
}

}  // namespace

int inspect_command(const CommandLine& line) {
  const ReadingRow row;
  DataOptions options = options_of_series(load_config(line, {}, known_options()).data, line);
  options.train = line.operands.front();
  if (!is_there(options.train)) list_files(options.train, {}, "DATA");  // whose errors say why not
  const FormatEntry& format = choose_format(options);
  check_outputs(line, files_read(line));
  const Report report = kind_of_files(options).has_tokens ? inspect_a_text(options)
                        : format.reads("data.label")      ? inspect_a_table(options, format)
                                                          : inspect_records(options);
  print_report(line, report.text);
  if (line.has("json")) write_output(line.text("json"), report.json);
  return 0;
}

}  // namespace lockstep
