#include "lockstep/report/run_description.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace lockstep {

std::string RunDescription::value(const std::string& key) const {
  const auto found = std::ranges::find(config, key, &ConfigLine::key);
  return found == config.end() ? "" : found->value;
}

std::string RunDescription::planned_value(const std::string& row) const {
  const auto found = std::ranges::find(planned, row, &std::pair<std::string, std::string>::first);
  return found == planned.end() ? "" : found->second;
}

double RunDescription::planned_number(const std::string& row) const {
  std::string text = planned_value(row);
  std::erase(text, ',');
  return std::strtod(text.c_str(), nullptr);
}

std::string RunDescription::short_name() const {
  const std::string last = std::filesystem::path(name).lexically_normal().filename().string();
  return last.empty() || last == "." ? name : last;
}

bool names_no_result(std::string_view key) {
  return key == "run.dir" || key == "checkpoint.dir" || key == "run.resume" || key == "run.progress" ||
         key == "run.plan" || key.starts_with("report.");
}

}  // namespace lockstep
