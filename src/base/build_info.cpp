#include "lockstep/base/build_info.h"

#include <algorithm>

#include "build_values.h"
#include "commit.h"
#include "lockstep/base/errors.h"

namespace lockstep {

const BuildInfo& build_info() {
  static constexpr BuildInfo kBuild{.version = LOCKSTEP_VERSION,
                                    .commit = LOCKSTEP_COMMIT,
                                    .type = kBuildType,
                                    .architecture = kArchitecture,
                                    .libraries = kLibraries,
                                    .features = kFeatures};
  return kBuild;
}

static const Feature& feature_named(std::string_view name) {
  return *std::ranges::find(kFeatures, name, &Feature::name);
}

bool has_feature(std::string_view name) {
  return feature_named(name).built_in;
}

void require_feature(std::string_view name, std::string_view what) {
  const Feature& feature = feature_named(name);
  if (feature.built_in) return;
  throw ConfigError(
      "{}: this trainer was built without {}; install its library (Debian: apt-get install {}), run cmake "
      "with -DLOCKSTEP_WITH_{}=ON and build again, or {}",
      what, feature.library, feature.packages, feature.name, feature.without);
}

}  // namespace lockstep
