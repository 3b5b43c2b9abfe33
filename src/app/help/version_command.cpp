// trainer --version: for people, or with --json for programs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/commands.h"
#include "app/setup/outputs.h"
#include "app/setup/startup.h"
#include "lockstep/base/build_info.h"
#include "lockstep/base/json.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/terminal.h"
#include "lockstep/comm/checked_communicator.h"
#include "lockstep/comm/session.h"
#include "lockstep/math/kernels.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string describe_feature(const Feature& feature) {
  if (feature.built_in) return fmt::format("{} {}: {}", feature.library, feature.version, feature.gives);
  return fmt::format("{}: not built in, which would give: {}; without it: {}", feature.library, feature.gives,
                     feature.without);
}

std::string text() {
  const BuildInfo& build = build_info();
  std::string text =
      fmt::format("lockstep {}\ncommit: {}\nbuild: {}, for {}\n", build.version, build.commit,
                  build.type.empty() ? "no type" : build.type,
                  build.architecture == "native" ? "the machine it was built on" : build.architecture);
  for (const std::string& fact : build_facts()) text += fact + "\n";
  std::vector<std::string> libraries;
  for (const Library& library : build.libraries) {
    libraries.push_back(fmt::format("{} {}", library.name, library.version));
  }
  text += fmt::format("libraries: {}\nfeatures:\n", fmt::join(libraries, ", "));
  for (const Feature& feature : build.features) text += fmt::format("  {}\n", describe_feature(feature));
  return text;
}

std::string json() {
  const BuildInfo& build = build_info();
  Json json{{"name", "lockstep"},
            {"version", build.version},
            {"commit", build.commit},
            {"build_type", build.type},
            {"architecture", build.architecture},
            {"compiler", __VERSION__},
            {"mpi", mpi_library()},
            {"kernels", kernel_back_end()},
            {"bf16", to_string(bf16_support())},
            {"checks_collectives", kChecksCollectives},
            {"libraries", Json::object()},
            {"features", Json::object()}};
  for (const Library& library : build.libraries)
    json["libraries"][std::string(library.name)] = library.version;
  for (const Feature& feature : build.features) {
    json["features"][std::string(feature.name)] = {
        {"library", feature.library}, {"built_in", feature.built_in}, {"version", feature.version},
        {"gives", feature.gives},     {"without", feature.without},   {"debian_packages", feature.packages}};
  }
  return json.dump(2) + "\n";
}

}  // namespace

int version_command(const CommandLine& line) {
  if (!line.has("json")) {
    print_text(text());
  } else {
    check_outputs(line, {});
    write_output(line.text("json"), json());
  }
  return 0;
}

}  // namespace lockstep
