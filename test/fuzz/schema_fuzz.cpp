// schema.json of a model of tables or of libsvm files. What is accepted is written again, and read again as
// the same.
#include <cstdlib>
#include <string>

#include "data/table/sources/sparse_source.h"
#include "lockstep/base/errors.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep::fuzz {
namespace {

template <class Parse>
void check(const std::string& text, const Parse& parse) {
  try {
    const std::string again = to_json(parse(text));
    if (to_json(parse(again)) != again) std::abort();
  } catch (const Error&) {
    // What a user is told is a fine end.
  }
}

}  // namespace
}  // namespace lockstep::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string text(reinterpret_cast<const char*>(data), size);
  fuzz::check(text, [](const std::string& json) { return parse_schema(json, "schema.json"); });
  fuzz::check(text, parse_sparse_schema);
  return 0;
}
