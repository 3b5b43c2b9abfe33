// A config file: read, written, and read again as the same.
#include <cstdlib>
#include <string>

#include "lockstep/base/errors.h"
#include "lockstep/config/command_line.h"
#include "lockstep/config/toml.h"
#include "support/known_names.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const auto read = [](const std::string& text) {
    return load_config({}, {.file = "run.toml", .text = text}, test::options());
  };
  try {
    const std::string again =
        to_toml(read(std::string(reinterpret_cast<const char*>(data), size)), test::options());
    if (to_toml(read(again), test::options()) != again) std::abort();
  } catch (const Error&) {
    // What a user is told is a fine end.
  }
  return 0;
}
