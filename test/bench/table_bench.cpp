// How fast one core reads a table: table_bench FILE.csv. Each rate is the median of five walks over the file,
// which the first brings into the page cache, by the time on the processor. All columns but those that are
// not numbers are read as numbers.
#include <fmt/format.h>

#include <time.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "data/table/schema/encoder.h"
#include "lockstep/data/table/schema/scan.h"

namespace lockstep {
namespace {

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void measure(const char* what, Index bytes, const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    const double before = processor_seconds();
    work();
    seconds.push_back(processor_seconds() - before);
  }
  std::ranges::sort(seconds);
  fmt::print("{:<44} {:8.0f} MB/s  {:8.3f} s\n", what, static_cast<double>(bytes) / seconds[2] / 1e6,
             seconds[2]);
}

void run(const std::string& path) {
  const std::vector<std::string> paths{path};
  const TableOptions options;
  TableText table = open_table_text(paths, options, alone());
  const Index bytes = table.text.source_bytes();

  TableSchema schema{.missing_values = options.missing_values,
                     .columns = declare_columns(options, table.names)};
  const auto infer = [&](TableText& text) {
    schema.columns = declare_columns(options, table.names);
    infer_kinds(text, schema.columns,
                look_at_columns(text, schema.columns, false, schema.missing_values, alone()));
  };
  measure("first pass (chunks found, kinds inferred)", bytes, [&] {
    TableText first = open_table_text(paths, options, alone());
    infer(first);
  });
  measure("kinds inferred", bytes, [&] { infer(table); });
  const std::vector<RowColumn> columns = match_columns(table, schema, false);
  const std::vector<ColumnWants> wants(columns.size());
  Scan scan;
  measure("statistics", bytes, [&] {
    scan = scan_table({.table = table, .columns = columns, .wants = wants, .missing = schema.missing_values},
                      alone());
  });
  for (std::size_t i = 0; i < columns.size(); ++i) schema.columns[i].numbers = scan.columns[i].numbers;

  const Encoder encoder(schema, false);
  TableReader reader(table, columns, std::ssize(columns), schema.missing_values);
  std::vector<std::byte> packed(static_cast<std::size_t>(encoder.record_bytes()));
  std::vector<Index> unseen(columns.size());
  measure("records packed", bytes, [&] {
    for (const TextChunk& chunk : table.text.chunks) {
      reader.for_each_record(
          chunk, [&](std::span<const Cell> cells) { encoder.pack(cells, packed.data(), unseen); },
          [](const std::string&) {});
    }
  });
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print("usage: table_bench FILE.csv\n");
    return 2;
  }
  lockstep::run(argv[1]);
}
