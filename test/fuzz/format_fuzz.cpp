// One file of the format FUZZ_FORMAT, opened as training data where labels are in it, else as an input, and
// read to its end. It must end in records or in an error for the user.
#include <cstdint>

#include "lockstep/base/errors.h"
#include "lockstep/data/format.h"
#include "read_all.h"
#include "scratch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  DataOptions options;
  options.format = FUZZ_FORMAT;
  const FormatEntry& format = choose_format(options);
  options.train = fuzz::scratch_file(std::as_bytes(std::span(data, size)), format.extensions.front());
  options.table.on_bad_record = OnBadRecord::kSkip;
  options.table.max_bad_share = 1;
  try {
    const bool labels_inside = options.format == "libsvm";
    const auto source = labels_inside ? format.open({.options = options, .colleagues = alone()})
                                      : format.open_input({options, options.train, alone()});
    fuzz::read_all(*source);
  } catch (const Error&) {
    // What a user is told is a fine end.
  }
  return 0;
}
