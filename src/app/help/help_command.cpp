// trainer help: a guide, a key, a section or a command; trainer COMMAND --help. trainer --version: for
// people, or with --json for programs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/commands.h"
#include "app/setup/catalogs.h"
#include "app/setup/outputs.h"
#include "app/setup/startup.h"
#include "help_topics.h"
#include "lockstep/base/build_info.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/terminal.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/checked_communicator.h"
#include "lockstep/comm/session.h"
#include "lockstep/config/help.h"
#include "lockstep/config/toml.h"
#include "lockstep/math/kernels.h"

namespace lockstep {
namespace {

std::string list_topics() {
  std::string text =
      "trainer help TOPIC prints a guide, what a key means, the keys of a section, or a command.\n\nGuides\n";
  for (const Guide& guide : guides()) text += fmt::format("  {:<28}{}\n", guide.name, guide_title(guide));
  return text +
         "\nKeys and sections\n  train.lr, data.label, ...    'trainer --help-all' lists them\n"
         "  train, data, model, ...\n\nCommands\n  plan, bench, eval, ...       'trainer --help' lists "
         "them\n";
}

std::string key_page(const Option& option) {
  const KeyUses uses = find_uses(option.key);
  std::string page = option_page(option);
  const std::string example =
      option.example.empty()
          ? uses.example
          : fmt::format("[{}]  {} = {}", option.section(), option.name(), toml_value(option, option.example));
  if (!example.empty()) page += fmt::format("example:      {}\n", example);
  if (!uses.names.empty())
    page += fmt::format("read on:      trainer help {}\n", fmt::join(uses.names, ", "));
  return page;
}

std::vector<const Option*> find_options(std::span<const Option> options, std::string_view topic) {
  std::vector<const Option*> found;
  for (const Option& option : options) {
    if (option.key == topic) return {&option};
    if (option.name() == topic) found.push_back(&option);
  }
  return found;
}

[[noreturn]] void refuse(const std::string& topic, std::span<const Option> options) {
  std::string hint = suggestion(topic, help_topics(options, names_with_guides()));
  if (const std::string key = suggest_key(topic, options); hint.empty() && !key.empty()) {
    hint = fmt::format("; {}", key);
  }
  throw ConfigError(
      fmt::format("there is no help on {}{}; 'trainer help' lists the topics", in_quotes(topic), hint));
}

// trainer --version

using Json = nlohmann::ordered_json;

std::string describe_feature(const Feature& feature) {
  if (feature.built_in) return fmt::format("{} {}: {}", feature.library, feature.version, feature.gives);
  return fmt::format("{}: not built in, which would give: {}; without it: {}", feature.library, feature.gives,
                     feature.without);
}

std::string version_text() {
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

std::string version_json() {
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

int help_command(const CommandLine& line) {
  const std::span<const Option> options = known_options();
  const std::string topic = line.operands.empty() ? "" : line.operands.front();
  if (topic.empty()) {
    print_text(line.command == "help" ? list_topics() : short_help(options));
    return 0;
  }
  for (const Guide& guide : guides()) {
    if (guide.name != topic || line.command != "help") continue;
    print_text(guide_page(guide));
    return 0;
  }
  for (const CommandEntry& command : command_catalog()) {
    if (command.name != topic) continue;
    print_text(command_page(command, known_names()));
    return 0;
  }
  const std::string section = section_help(options, topic);
  if (!section.empty()) {
    print_text(section);
    return 0;
  }
  const std::vector<const Option*> found = find_options(options, topic);
  if (found.empty()) refuse(topic, options);
  for (const Option* option : found) {
    print_out("{}{}", option == found.front() ? "" : "\n", key_page(*option));
  }
  return 0;
}

int version_command(const CommandLine& line) {
  if (!line.has("json")) {
    print_text(version_text());
  } else {
    check_outputs(line, {});
    write_output(line.text("json"), version_json());
  }
  return 0;
}

}  // namespace lockstep
