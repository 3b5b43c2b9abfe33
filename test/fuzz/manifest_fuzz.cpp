// manifest.json of a checkpoint: read as it is, and with the right checksum around whatever the bytes say.
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "lockstep/base/errors.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/json.h"
#include "lockstep/train/storage/checkpoint.h"

namespace lockstep::fuzz {
namespace {

// What is accepted is written again, and read again as the same.
void check(const std::string& text) {
  try {
    const std::string again = to_json(parse_manifest(text, "manifest.json"));
    if (to_json(parse_manifest(again, "manifest.json")) != again) std::abort();
  } catch (const Error&) {
    // What a user is told is a fine end.
  }
}

}  // namespace
}  // namespace lockstep::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using Json = nlohmann::ordered_json;
  const std::string text(reinterpret_cast<const char*>(data), size);
  lockstep::fuzz::check(text);
  Json content;
  try {
    content = lockstep::parse_json<Json>(text);
  } catch (const lockstep::Error&) {
    return 0;
  }
  if (!content.is_object()) return 0;
  const std::string checksum = fmt::format("{:016x}", lockstep::hash_text(content.dump()));
  lockstep::fuzz::check(Json{{"xxh3", checksum}, {"checkpoint", content}}.dump());
  return 0;
}
