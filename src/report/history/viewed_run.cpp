#include "lockstep/report/history/viewed_run.h"

#include <algorithm>
#include <filesystem>

namespace lockstep {

std::string ViewedRun::value(std::string_view key) const {
  const auto found = std::ranges::find(config, key, &ConfigLine::key);
  return found == config.end() ? "" : found->value;
}

std::string ViewedRun::short_name() const {
  const std::string last = std::filesystem::path(name).lexically_normal().filename().string();
  return last.empty() || last == "." ? name : last;
}

bool names_no_result(std::string_view key) {
  return key == "run.dir" || key == "checkpoint.dir" || key == "run.resume" || key == "run.progress" ||
         key == "run.plan" || key.starts_with("report.");
}

}  // namespace lockstep
