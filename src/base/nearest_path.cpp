#include "lockstep/base/nearest_path.h"

#include <algorithm>

#include "lockstep/base/catalog.h"

namespace lockstep {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& directory, fs::file_type type) {
  std::vector<std::string> names;
  std::error_code unreadable;  // then there is nothing to name
  for (const auto& entry : fs::directory_iterator(directory, unreadable)) {
    if (entry.status(unreadable).type() == type) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string nearest_path(const fs::path& missing, fs::file_type type) {
  const fs::path path = missing.has_filename() ? missing : missing.parent_path();  // "runs/a" for "runs/a/"
  const fs::path directory = path.has_parent_path() ? path.parent_path() : ".";
  const std::string nearest = nearest_name(path.filename().string(), names_in(directory, type));
  return nearest.empty() ? "" : (path.parent_path() / nearest).string();
}

}  // namespace lockstep
