// The settings that trainer init chooses, by their keys.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "app/init/init.h"

namespace lockstep::test {

/// "" for a key that is not set.
inline std::string value_of(const std::vector<CommentedSetting>& settings, const std::string& key) {
  const auto found = std::ranges::find(settings, key, &CommentedSetting::key);
  return found == settings.end() ? "" : found->value;
}

}  // namespace lockstep::test
