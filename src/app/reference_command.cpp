#include <fmt/format.h>

#include "catalogs.h"
#include "commands.h"
#include "lockstep/config/help.h"

namespace lockstep {

int reference_command() {
  Config defaults;
  fmt::print("{}", reference_markdown(declare_options(defaults, known_names())));
  return 0;
}

}  // namespace lockstep
