// Settings with a comment each, and the config file that is made of them.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "lockstep/config/option.h"

namespace lockstep {

struct CommentedSetting {
  std::string key;
  std::string value;  ///< the value as TOML
  std::string comment = {};
};

/// The settings with those that flags give, in place of the ones of the same meaning.
std::vector<CommentedSetting> with_flags(std::vector<CommentedSetting> settings,
                                         std::span<const Option> options,
                                         const std::set<std::string>& flagged);

/// `settings` in the order of `options`, section by section, below `head`, the lines of a comment.
std::string to_toml(const std::vector<CommentedSetting>& settings, std::span<const Option> options,
                    const std::vector<std::string>& head);

}  // namespace lockstep
