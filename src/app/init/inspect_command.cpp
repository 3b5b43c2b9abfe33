// trainer inspect: what is in a table, and the [data] section to train on it.
#include <fmt/format.h>

#include "app/commands.h"
#include "app/setup/catalogs.h"
#include "app/setup/outputs.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/output_file.h"
#include "lockstep/data/file_list.h"
#include "lockstep/data/format.h"
#include "lockstep/data/table/inspect/inspect.h"

namespace lockstep {
namespace {

std::vector<OtherSet> other_sets(const DataOptions& options) {
  std::vector<OtherSet> sets;
  if (!options.validation.empty())
    sets.push_back({"the validation set", list_files(options.validation, {}, "data.validation")});
  if (!options.test.empty()) sets.push_back({"the test set", list_files(options.test, {}, "data.test")});
  return sets;
}

}  // namespace

int inspect_command(const CommandLine& line) {
  DataOptions options = load_config(line, {}, known_names()).config.data;
  options.train = line.data;
  if (options.format.empty() && has_known_extension(options.train) && choose_format(options).name != "csv") {
    throw ConfigError(
        fmt::format("'{}' is of the format '{}': inspect looks at tables; where this is one, "
                    "give --data.format csv",
                    line.data, choose_format(options).name));
  }
  check_outputs(line, files_read(line));
  const TableInspection inspection = inspect_table(line.data, options.table, other_sets(options));
  print_report(line, to_text(inspection));
  if (!line.json.empty()) write_output(line.json, to_json(inspection));
  return 0;
}

}  // namespace lockstep
