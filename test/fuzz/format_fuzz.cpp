// One file of the format FUZZ_FORMAT, opened as training data where labels are in it, else as an input, and
// read to its end. It must end in records or in an error for the user. What starts as a gzip stream does is
// one, what starts as an archive does is one of numpy, with an array x; of raw records the first line is the
// layout.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "lockstep/base/errors.h"
#include "lockstep/data/formats/format.h"
#include "read_all.h"
#include "scratch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  DataOptions options;
  options.format = FUZZ_FORMAT;
  const FormatEntry& format = choose_format(options);
  std::string_view content(reinterpret_cast<const char*>(data), size);
  std::string ending = format.extensions.empty() ? ".bin" : format.extensions.front();
  std::string array;
  if (options.format == "numpy" && content.starts_with("PK")) {
    ending = ".npz";
    array = ":x";
  } else if (options.format == "raw") {
    const std::size_t line_end = std::min(content.find('\n'), size);
    options.raw_layout = content.substr(0, line_end);
    content.remove_prefix(std::min(line_end + 1, size));
  }
  if (content.starts_with("\x1f\x8b")) ending += ".gz";
  options.train = fuzz::scratch_file(std::as_bytes(std::span(content)), ending) + array;
  options.table.on_bad_record = OnBadRecord::kSkip;
  options.table.max_bad_share = 1;
  try {
    const bool labels_apart = std::ranges::count(format.options, "data.train_labels") > 0;
    const auto source = labels_apart
                            ? format.open({.options = options, .peers = alone(), .input = options.train})
                            : format.open({.options = options, .peers = alone()});
    fuzz::read_all(*source);
  } catch (const Error&) {
    // What a user is told is a fine end.
  }
  return 0;
}
