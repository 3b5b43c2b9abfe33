#include "outputs.h"

#include <fmt/format.h>

#include <cstdio>

#include "lockstep/base/output_file.h"
#include "lockstep/base/print.h"
#include "lockstep/data/byte_stream.h"
#include "lockstep/data/file_list.h"
#include "lockstep/data/folds/held_part.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {
namespace {

void add_files(std::vector<std::string>& files, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) files.push_back(split_array_path(path).file);
}

void add_files(std::vector<std::string>& files, const std::string& named, const std::string& key) {
  if (!named.empty()) add_files(files, list_files(named, {}, key));
}

}  // namespace

bool writes_to_standard_output(const CommandLine& line) {
  return is_standard_output(line.output) || is_standard_output(line.json) || is_standard_output(line.csv);
}

std::vector<std::string> files_read(const CommandLine& line) {
  std::vector<std::string> files{line.config_file, line.planned.bench, line.data};
  if (!line.model.empty()) {
    const RunDirectory run{line.model};
    for (const auto& file : {run.config(), run.model(), run.schema()}) files.push_back(file.string());
  }
  if (!line.input.empty()) add_files(files, list_input_files(line.input, {}));
  return files;
}

std::vector<std::string> files_read(const CommandLine& line, const Config& config) {
  std::vector<std::string> files = files_read(line);
  files.push_back(config.train.init);
  const DataOptions& data = config.data;
  add_files(files, data.train, "data.train");
  add_files(files, data.train_labels, "data.train_labels");
  if (!parse_held_part(data.validation)) add_files(files, data.validation, "data.validation");
  add_files(files, data.validation_labels, "data.validation_labels");
  add_files(files, data.test, "data.test");
  add_files(files, data.test_labels, "data.test_labels");
  return files;
}

void check_outputs(const CommandLine& line, const std::vector<std::string>& inputs) {
  const bool exported = line.command == CommandLine::Command::kExport;
  OutputRequest request{.flag = "--output",
                        .name = line.output,
                        .inputs = inputs,
                        .overwrite = line.overwrite,
                        .binary = exported};
  if (!line.output.empty()) check_output(request);
  if (exported && !is_stream(line.output)) {
    request.name = schema_beside(line.output);
    if (std::filesystem::exists(RunDirectory{line.model}.schema())) check_output(request);
  }
  for (const auto& [flag, name] : {std::pair("--json", line.json), std::pair("--csv", line.csv)}) {
    if (name.empty()) continue;
    request.flag = flag;
    request.name = name;
    check_output(request);
  }
}

std::string schema_beside(const std::string& output) {
  return output + ".schema.json";
}

void print_report(const CommandLine& line, const std::string& text) {
  if (writes_to_standard_output(line)) {
    std::fputs(text.c_str(), stderr);
  } else {
    print_text(text);
  }
}

}  // namespace lockstep
