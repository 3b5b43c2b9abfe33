// Names in directories, for messages about a path that does not exist.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

/// The names of the entries of that type, sorted; links count as what they lead to. Empty if the directory
/// cannot be read.
std::vector<std::string> names_in(const std::filesystem::path& directory, std::filesystem::file_type type);

/// The path of that type beside `missing` whose name is nearest_name(), or "".
std::string nearest_path(const std::filesystem::path& missing, std::filesystem::file_type type);

}  // namespace lockstep
