// The sources, libraries and features that this program was built from. The values are collected by CMake
// (cmake/features.cmake and cmake/build_info.cmake), which is the one place that lists libraries and
// features.
#pragma once

#include <span>
#include <string_view>

namespace lockstep {

/// A library that every build links or includes.
struct Library {
  std::string_view name;
  std::string_view version;
};

/// A library that a build may lack.
struct Feature {
  std::string_view name;  ///< "HDF5", as in LOCKSTEP_WITH_HDF5
  std::string_view library;
  bool built_in = false;
  std::string_view version;   ///< empty where it is not built in
  std::string_view packages;  ///< Debian's, to build with it
  std::string_view gives;     ///< ability of the program with it
  std::string_view without;   ///< advice, or the effect, if it is missing
};

struct BuildInfo {
  std::string_view version;
  std::string_view commit;  ///< "11f4b13d353b", with "-dirty" if files were changed; "unknown" outside of git
  std::string_view type;    ///< "Release"
  std::string_view architecture;  ///< the value of LOCKSTEP_ARCH: "native"
  std::span<const Library> libraries;
  std::span<const Feature> features;
};

const BuildInfo& build_info();

bool has_feature(std::string_view name);

/// Errors: ConfigError if the feature is not built in: "WHAT: this trainer was built without HDF5; ...".
void require_feature(std::string_view name, std::string_view what);

}  // namespace lockstep
