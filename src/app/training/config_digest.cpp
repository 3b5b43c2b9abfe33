#include "config_digest.h"

#include <fmt/format.h>

#include "app/setup/catalogs.h"
#include "lockstep/base/hash.h"

namespace lockstep {

std::string config_digest(const Config& config) {
  std::string text;
  for (const auto& [key, value] : result_options(config)) text += fmt::format("{} = {}\n", key, value);
  return fmt::format("{:016x}", hash_text(text));
}

}  // namespace lockstep
