// The trials of a sweep: which values each of them gives to which keys. A pure function of the flags and the
// seed, so that it is the same on any number of ranks, and at every start.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/config/command_line.h"
#include "lockstep/config/option.h"

namespace lockstep {

/// A key and its value, as a flag takes it.
struct Setting {
  std::string key;
  std::string value;

  bool operator==(const Setting&) const = default;
};

/// Whether the values of an option are lists.
bool takes_a_list(const Option& option);

/// The most trials of a sweep; their numbers have four digits.
inline constexpr Index kMaxTrials = 9999;

/// The settings of each trial: the product of the values of --grid, the first key varying slowest, for each
/// of the draws of --random. A draw is keyed by the seed, its number and the key.
/// Errors: ConfigError that names the flag, what was expected, and the key or value that may be meant.
std::vector<std::vector<Setting>> list_trials(const SweepRequest& request, std::span<const Option> options,
                                              std::uint64_t seed);

}  // namespace lockstep
