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
#include "lockstep/base/embedded_text.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/terminal.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/checked_communicator.h"
#include "lockstep/comm/session.h"
#include "lockstep/config/help.h"
#include "lockstep/math/kernels.h"

namespace lockstep {
namespace {

std::string list_topics() {
  const TextEntry first = embedded_entries("texts/help.txt").front();
  std::string text = fmt::format("{}\n\nGuides\n", fmt::join(first.get_all("topic"), "\n"));
  for (const Guide& guide : guides()) {
    const std::string_view title = guide.text.substr(guide.text.find_first_not_of("# "));
    text += fmt::format("  {:<28}{}\n", guide.name, title.substr(0, title.find('\n')));
  }
  return text + fmt::format("\nOther topics\n  {}\n", fmt::join(first.get_all("other"), "\n  "));
}

// The options of that key or name, or which other programs call so; those of [debug] by their key only.
std::string key_pages(std::span<const Option> options, std::string_view topic) {
  std::string pages;
  for (const Option& option : options) {
    const std::string name(option.name());
    const bool is_named =
        same_spelling(name, topic) || find_synonym(key_synonyms(), topic, {&option.key, 1}) != nullptr;
    if (option.key == topic || (is_named && option.section() != "debug")) pages += option_page(option) + "\n";
  }
  return pages;
}

// The entries of that name in all catalogs, such as a loss; with a hint for another program's word.
std::string entry_pages(std::string_view topic) {
  std::string pages;
  for (const CatalogTable& table : catalog_tables()) {
    const Cells& heads = table.rows.front();
    for (const Cells& row : std::span(table.rows).subspan(1)) {
      if (!row.front().starts_with('`')) continue;
      const std::string name = row.front().substr(1, row.front().find_first_of("`(", 1) - 1);
      const Synonym* const other = find_synonym(name_synonyms(), topic, {&name, 1});
      if (!same_spelling(name, topic) && other == nullptr) continue;
      if (other != nullptr) pages += fmt::format("{}: {}\n", topic, describe(*other));
      pages += fmt::format("{}: {}\n", table.title, row.front());
      for (std::size_t i = 1; i < row.size(); ++i) {
        if (!row[i].empty()) pages += fmt::format("  {}: {}\n", heads[i], row[i]);
      }
      pages += '\n';
    }
  }
  return wrap_lines(pages, terminal_columns());
}

// The best part of the guides, and where else to read. `known`: other pages stand above, so that a part whose
// heading does not name the topic is left out.
std::string guide_parts(std::string_view topic, bool known) {
  constexpr std::size_t kMaxOthers = 6;
  const std::vector<GuideSection> parts = find_sections(topic);
  const bool shown = !parts.empty() && (!known || parts.front().score >= kNamed);
  std::string text = shown ? fmt::format("{}\nRead on:   trainer help {}\n", guide_page(parts.front().text),
                                         parts.front().guide)
                           : "";
  for (std::size_t i = shown ? 1 : 0; i < std::min(parts.size(), kMaxOthers); ++i) {
    text += fmt::format("See also:  trainer help \"{}\"\n", parts[i].heading);
  }
  return text;
}

[[noreturn]] void refuse(const std::string& topic, std::span<const Option> options) {
  std::string hint = suggestion(topic, help_topics(options, names_with_guides()));
  if (const std::string key = suggest_key(topic, options); hint.empty() && !key.empty()) {
    hint = fmt::format("; {}", key);
  }
  throw ConfigError("there is no help on {}{}; 'trainer help' lists the topics", in_quotes(topic), hint);
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
  for (const auto& [name, value] : build_facts()) text += fmt::format("{}: {}\n", name, value);
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
  const std::string topic = fmt::format("{}", fmt::join(line.operands, " "));
  if (topic.empty()) {
    print_text(line.command == "help" ? list_topics() : short_help(options));
    return 0;
  }
  const auto guide = std::ranges::find(guides(), topic, &Guide::name);
  const auto command = std::ranges::find(command_catalog(), topic, &CommandEntry::name);
  if (line.command == "help" && guide != guides().end()) {
    print_text(guide_page(guide->text));
    return 0;
  }
  if (command != command_catalog().end()) {
    print_text(command_page(*command, known_names()));
    return 0;
  }
  std::string pages = section_help(options, topic);
  std::string name = topic;
  std::ranges::replace(name, ' ', '_');
  pages += key_pages(options, name) + entry_pages(name);
  const std::string section = topic.substr(0, topic.find('.'));
  const bool is_key = section != topic && !section_help(options, section).empty();
  if (!is_key || !pages.empty())
    pages += guide_parts(is_key ? topic.substr(topic.rfind('.') + 1) : topic, !pages.empty());
  if (pages.empty()) refuse(topic, options);
  print_text(pages);
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
