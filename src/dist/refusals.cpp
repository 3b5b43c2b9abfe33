#include "lockstep/dist/refusals.h"

#include <fmt/format.h>

#include <array>

#include "lockstep/base/errors.h"

namespace lockstep {

std::span<const Refusal> refusals() {
  static const std::array kRows{
      Refusal{"as many servers as ranks, or more",
              "a server hosts no replica, so nobody would train: start more ranks, or lower "
              "distribute.servers",
              [](const Combination& c) { return c.workers() < 1; }},
  };
  return kRows;
}

void refuse(const Combination& combination) {
  for (const Refusal& row : refusals()) {
    if (!row.applies(combination)) continue;
    throw ConfigError(fmt::format("{} cannot be: {}", row.combination, row.reason));
  }
}

}  // namespace lockstep
