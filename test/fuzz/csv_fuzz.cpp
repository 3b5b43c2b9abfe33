// CSV: the first two bytes choose options and the size of chunks, the rest is the file. Whatever the chunks,
// the records must be those of the whole text; and whatever the file, reading it ends in records or in an
// error for the user.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "data/table/schema/encoder.h"
#include "lockstep/base/errors.h"
#include "lockstep/data/inspect/inspect.h"
#include "read_table.h"
#include "scratch_file.h"
#include "support/text_lines.h"

namespace lockstep::fuzz {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

std::vector<std::string> split(std::string_view text, const Dialect& rules) {
  RecordLines lines(text, rules, 1);
  std::vector<std::string> records;
  for (std::string_view record; lines.next(record);)
    records.push_back(std::to_string(lines.line()) + ":" + std::string(record));
  return records;
}

void check_chunks(const std::string& path, std::string_view text, Index bytes, const Dialect& rules) {
  const std::string paths[] = {path};
  const TextFiles files = test::index_text(paths, bytes, alone(), rules.quotes);
  if (!files.files.front().encoding.empty()) return;  // what is read is another text than that of the file
  TextReader reader(files);
  std::vector<std::string> found;
  for (const TextChunk& chunk : files.chunks) {
    const std::string_view part = reader.read(chunk);
    RecordLines lines(part, rules, reader.first_line());
    for (std::string_view record; lines.next(record);)
      found.push_back(std::to_string(lines.line()) + ":" + std::string(record));
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::string plain(text);
  if (files.files.front().old_line_ends) std::ranges::replace(plain, '\r', '\n');
  require(found == split(plain, rules));
}

// `weighted`: the first column has the weights of the records.
void check_table(const std::string& path, TableOptions options, bool weighted) {
  const TableInspection inspection = inspect_table({path, {path}}, options);
  require(!to_text(inspection).empty() && !to_json(inspection).empty());
  options.label = {inspection.table.names.back()};
  if (weighted) options.weight = inspection.table.names.front();
  read_table(path, options);
}

}  // namespace
}  // namespace lockstep::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  if (size < 2) return 0;
  TableOptions options;
  options.quotes = (data[0] & 1) == 0;
  options.on_bad_record = (data[0] & 2) == 0 ? OnBadRecord::kSkip : OnBadRecord::kFail;
  options.max_bad_share = 1;
  options.header = static_cast<Header>((data[0] >> 2) % 3);
  options.encode = (data[0] & 16) == 0 ? "onehot" : (data[0] & 32) == 0 ? "index" : "hash(5)";
  options.scale = (data[0] & 64) == 0 ? "standard" : "log";
  options.skip_lines = data[1] / 128;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string path =
      fuzz::scratch_file(std::as_bytes(std::span(text)), (data[0] & 128) == 0 ? ".csv" : ".tsv");
  try {
    const bool packed = text.starts_with("\x1f\x8b");
    if (!packed) fuzz::check_chunks(path, text, 4 + data[1] % 64, {.quotes = options.quotes});
    fuzz::check_table(path, options, (data[1] & 64) != 0);
  } catch (const Error&) {
    // What a user is told is a fine end.
  }
  return 0;
}
