#include "config_digest.h"

#include <fmt/format.h>

#include "catalogs.h"
#include "lockstep/base/hash.h"
#include "lockstep/report/report_page.h"

namespace lockstep {

std::string config_digest(const Config& config) {
  Config shown;
  const std::vector<Option> options = declare_options(shown, known_names());
  shown = config;
  std::string text;
  for (const Option& option : options) {
    if (!names_no_result(option.key) && option.has_value())
      text += fmt::format("{} = {}\n", option.key, option.text());
  }
  return fmt::format("{:016x}", hash_text(text));
}

}  // namespace lockstep
