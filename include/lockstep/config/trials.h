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

/// The trials of a sweep, and how they are carried out.
struct SweepRequest {
  std::vector<std::string> grids = {};    ///< each --grid: "train.lr=0.01,0.1"
  std::vector<std::string> randoms = {};  ///< each --random: "train.lr=log(1e-4,1e-1)"
  Index draws = 0;                        ///< --trials; 0 without --random
  Index halving = 0;                      ///< --halving: one in so many goes on at each rung; 0: all do
  Index ranks_per_trial = 1;              ///< --ranks-per-trial
  Index part = 1;                         ///< --part: which of the `parts` parts of the trials is run here
  Index parts = 1;
  ValidationPart folds = {};  ///< folds of cv; its `fold` is that of each trial
  bool refit = false;         ///< --refit
};

/// Reads the flags of sweep or cv. Errors: ConfigError that names the flag, and what was expected.
SweepRequest parse_sweep(const CommandLine& line);

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
