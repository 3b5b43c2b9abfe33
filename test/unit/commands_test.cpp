// Each command has all of its text, flags that exist, and one function; and no text or function is left over.
#include "app/commands.h"

#include "app/help/help_topics.h"
#include "lockstep/base/embedded_text.h"
#include "lockstep/config/command_line.h"
#include "support/common.h"

namespace lockstep::commands_test {

TEST(Commands, HaveTheirTextAndAGuide) {
  for (const CommandEntry& command : command_catalog()) {
    ASSERT_FALSE(command.usages.empty()) << command.name;
    for (const Usage& usage : command.usages) {
      EXPECT_NE(usage.words.find("trainer" + (command.name.empty() ? "" : " " + command.name)),
                std::string::npos);
      EXPECT_FALSE(usage.help.empty()) << command.name;
    }
    EXPECT_NE(command.example.find("trainer "), std::string::npos) << command.name;
    EXPECT_EQ(std::ranges::count(guides(), command.guide, &Guide::name), 1) << command.guide;
    EXPECT_TRUE(
        (std::set<std::string>{"", "file", "model", "run", "runs", "topic"}.contains(command.operand)))
        << command.operand;
  }
}

TEST(Commands, HaveFlagsThatAreDescribed) {
  std::set<std::string> used;
  for (const CommandEntry& command : command_catalog())
    for (const auto& flags : {command.needs, command.takes}) used.insert(flags.begin(), flags.end());
  for (const OwnFlag& flag : own_flags()) {
    EXPECT_EQ(used.erase(flag.name), 1u) << flag.name << " belongs to no command, or is described twice";
    EXPECT_FALSE(flag.help.empty()) << flag.name;
    EXPECT_TRUE(!flag.value_name.empty() || (flag.kind.empty() && flag.values.empty())) << flag.name;
  }
  EXPECT_EQ(used, std::set<std::string>());
}

TEST(Commands, HaveOneFunctionEach) {
  std::vector<std::string> expected{"", "--help", "--help-all", "--version"};
  std::ranges::copy(command_names(), std::back_inserter(expected));
  std::vector<std::string> found;
  for (const CommandFunction& function : command_functions()) {
    found.emplace_back(function.name);
    EXPECT_NE(function.alone == nullptr, function.with_ranks == nullptr) << function.name;
  }
  std::ranges::sort(expected);
  std::ranges::sort(found);
  EXPECT_EQ(found, expected);
}

// A misspelt field would be dropped without a word.
TEST(Commands, TheirTextsHaveKnownFieldsOnly) {
  const std::set<std::string> of_commands{"usage", "does",      "needs",   "takes", "operand",
                                          "keys",  "otherwise", "example", "guide"};
  std::set<std::string> of_flags{"help", "value", "also", "words", "hint", "elsewhere", "common"};
  for (const std::string& command : command_names()) of_flags.insert("in " + command);
  for (const TextEntry& entry : embedded_entries("texts/commands.txt")) {
    const std::set<std::string>& known = entry.name.starts_with("--") ? of_flags : of_commands;
    for (const auto& [field, text] : entry.fields) EXPECT_TRUE(known.contains(field)) << entry.name << field;
    if (entry.name.starts_with("--")) {
      EXPECT_TRUE(entry.name == "--config FILE" || !entry.get("elsewhere").empty()) << entry.name;
    }
  }
  for (const TextEntry& entry : embedded_entries("texts/other-words.txt"))
    for (const auto& [field, text] : entry.fields) EXPECT_TRUE(field == "words" || field == "hint") << field;
}

// A misspelt field or entry would be left out of it.
TEST(Reference, HasEachTextOfRefusalsAndPresets) {
  const CommandLine line{.command = "reference"};
  testing::internal::CaptureStdout();
  function_of(line).alone(line);
  std::string reference = testing::internal::GetCapturedStdout();
  std::erase(reference, '\\');  // before a bar in a table
  const std::map<std::string, std::set<std::string>> texts{{"texts/refusals.txt", {"why"}},
                                                           {"texts/presets.txt", {"help", "layers"}}};
  for (const auto& [file, known] : texts)
    for (const TextEntry& entry : embedded_entries(file)) {
      EXPECT_EQ(entry.fields.size(), known.size()) << entry.name;
      for (const auto& [field, text] : entry.fields) {
        EXPECT_TRUE(known.contains(field)) << entry.name << ": " << field;
        EXPECT_NE(reference.find(text), std::string::npos) << text;
      }
    }
}

}  // namespace lockstep::commands_test
