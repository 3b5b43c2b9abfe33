// The man page and the completions hold every command, flag, key and value; bash is asked to complete.
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/config/help.h"
#include "support/known_names.h"
#include "support/temporary_directory.h"
#include "support/trainer_process.h"

namespace lockstep::test::completion_test {

using Words = std::vector<std::string>;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// As a word of its own in single quotes, as both shells have it.
std::string in_shell_quotes(const std::string& value) {
  return fmt::format("'{}'", value);
}

class Written : public testing::Test {
 protected:
  KnownNames names = known_names();
  std::span<const Option> options = test::options();
  std::string written(const std::string& format) const {
    return find_entry(reference_catalog(), "format", format).write(options, names);
  }
};

TEST_F(Written, CompletionsHoldEveryCommandFlagKeyAndValue) {
  for (const std::string& script : {written("bash"), written("zsh")}) {
    for (const Option& option : options) {
      EXPECT_TRUE(has(script, fmt::format("--{}", option.key))) << option.key;
      EXPECT_TRUE(option.alias.empty() || has(script, fmt::format("--{}", option.alias))) << option.alias;
      for (const std::string& choice : option.choices)
        EXPECT_TRUE(has(script, choice)) << option.key << " " << choice;
    }
    for (const OwnFlag& flag : own_flags()) EXPECT_TRUE(has(script, fmt::format("--{}", flag.name)));
    for (const CommandEntry& command : command_catalog())
      EXPECT_TRUE(has(script, in_shell_quotes(command.name))) << command.name;
    for (const auto& [command, formats] : names.formats_of)
      for (const std::string& format : formats) EXPECT_TRUE(has(script, in_shell_quotes(format))) << format;
  }
}

TEST_F(Written, ManPageHoldsEveryCommandFlagKeyValueAndExitCode) {
  std::string page = written("man");
  for (std::size_t at = page.find("\\-"); at != std::string::npos; at = page.find("\\-")) page.erase(at, 1);
  for (const Option& option : options) {
    EXPECT_TRUE(has(page, fmt::format("\\fB--{}\\fR", option.key))) << option.key;
    for (const std::string& choice : option.choices) EXPECT_TRUE(has(page, choice)) << option.key << choice;
  }
  for (const OwnFlag& flag : own_flags()) EXPECT_TRUE(has(page, fmt::format("\\fB--{}\\fR", flag.name)));
  for (const CommandEntry& command : command_catalog())
    for (const Usage& usage : command.usages) EXPECT_TRUE(has(page, fmt::format("\\fB{}\\fR", usage.words)));
  for (const ExitCode& exit : exit_codes()) EXPECT_TRUE(has(page, fmt::format("\\fB{}\\fR\n", exit.code)));
}

TEST(ExitCodes, OfTheHelpAreThoseOfTheErrors) {
  const std::vector<std::pair<int, std::string>> constants{{0, "done"},
                                                           {kExitInternal, "internal"},
                                                           {kExitConfig, "config"},
                                                           {kExitData, "data"},
                                                           {kExitComm, "communication"},
                                                           {kExitTraining, "bad numbers"},
                                                           {kExitStopped, "stopped"},
                                                           {kExitStalled, "stalled"}};
  std::vector<std::pair<int, std::string>> codes;
  for (const ExitCode& exit : exit_codes()) codes.emplace_back(std::stoi(exit.code), exit.word);
  EXPECT_EQ(codes, constants);
}

TEST_F(Written, NoTextOfTheManPageIsTakenForAMacro) {
  std::istringstream page(written("man"));
  const Words macros{".\\\"", ".TH", ".SH", ".SS", ".TP", ".br", ".nh", ".hy", ".BR"};
  for (std::string line; std::getline(page, line);) {
    EXPECT_TRUE(std::ranges::all_of(line, [](char c) { return c >= ' ' && c <= '~'; })) << line;
    if (!line.starts_with('.') && !line.starts_with('\'')) continue;
    const std::string macro = line.substr(0, line.find(' '));
    EXPECT_EQ(std::ranges::count(macros, macro), 1) << line;
  }
}

// What bash offers after these words, of which the last is being typed.
class Bash : public Written {
 protected:
  void SetUp() override { write_file_atomically(directory / "script", written("bash")); }
  Words offers(const Words& line) const {
    Words quoted;
    for (const std::string& word : line) quoted.push_back(in_shell_quotes(word));
    const ProcessResult result =
        run_command(fmt::format("cd {} && bash -c \"source ./script; COMP_WORDS=(trainer {}); COMP_CWORD={}; "
                                "_trainer; printf '%s\\n' "
                                "\\\"\\${{COMPREPLY[@]}}\\\"\"",
                                directory.path().string(), fmt::join(quoted, " "), line.size()));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_EQ(result.errors, "");
    std::istringstream lines(result.output);
    Words words;
    for (std::string word; std::getline(lines, word);) {
      if (!word.empty()) words.push_back(word);
    }
    return words;
  }
  TemporaryDirectory directory;
};

TEST_F(Bash, CompletesEveryKeyAndChoice) {
  std::string script = "source ./script\n", expected;
  for (const Option& option : options) {
    for (const bool joined : {false, true}) {
      const std::string words = joined ? "= ''" : "''";
      if (option.choices.empty() || (joined && option.kind == ValueKind::kTextList)) continue;
      script += fmt::format(
          "COMP_WORDS=(trainer --{} {}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _trainer; eval "
          "\"replies=(${{COMPREPLY[*]}})\"; printf "
          "'%s\\n' \"${{replies[@]}}\"\n",
          option.key, words);
      for (const std::string& choice : option.choices) expected += choice + "\n";
    }
    script += fmt::format(
        "COMP_WORDS=(trainer --{0}); COMP_CWORD=1; _trainer; printf '%s\\n' \"${{COMPREPLY[@]}}\" | grep -x "
        "-- '--{0}'\n",
        option.key);
    expected += "--" + option.key + "\n";
  }
  write_file_atomically(directory / "ask", script);
  const ProcessResult result = run_command(fmt::format("cd {} && bash ask", directory.path().string()));
  EXPECT_EQ(result.errors, "");
  EXPECT_EQ(result.output, expected);
}

TEST_F(Bash, CompletesCommandsFlagsAndParts) {
  EXPECT_EQ(offers({"pl"}), Words{"plan"});
  EXPECT_EQ(offers({""}), (Words{"sweep", "cv", "plan", "bench", "eval", "predict", "generate", "importance",
                                 "export", "inspect", "init", "compare", "report", "export-metrics", "status",
                                 "watch", "trace", "reference", "help"}));
  EXPECT_EQ(offers({"--train.lr", "0.1", "ev"}), Words{"eval"});
  EXPECT_EQ(offers({"--train.lr", "=", "0.1", "ev"}), Words{"eval"});
  EXPECT_EQ(offers({"sweep", "--ra"}), (Words{"--random", "--ranks-per-trial"}));
  EXPECT_EQ(offers({"--tr"}), Words{"--train."});
  EXPECT_EQ(offers({"--train.opt"}), Words{"--train.optimizer"});
  EXPECT_EQ(offers({"--train.optimizer", "ad"}), Words{"adam"});
  EXPECT_EQ(offers({"--train.optimizer", "=", "ad"}), Words{"adam"});
  EXPECT_EQ(offers({"--train.nesterov", "t"}), Words{"true"});
  EXPECT_EQ(offers({"--eval.metrics", "auc,re"}), Words{"auc,recall"});
  EXPECT_EQ(offers({"export", "--format", ""}), (Words{"npz", "onnx"}));
  EXPECT_EQ(offers({"reference", "--format", ""}), catalog_names(reference_catalog()));
  EXPECT_EQ(offers({"init", "--task", "b"}), Words{"binary"});
  EXPECT_EQ(offers({"--once", "wat"}), Words{"watch"});
  EXPECT_EQ(offers({"--train.lr", ""}), Words{});
  EXPECT_EQ(offers({"help", "ta"}), Words{"tables"});
  EXPECT_EQ(offers({"help", "ch"}), Words{"checkpoint"});
  EXPECT_EQ(offers({"help", "pl"}), Words{"plan"});
  EXPECT_EQ(offers({"help", "train.opt"}), Words{"train.optimizer"});
}

TEST_F(Bash, CompletesFiles) {
  for (const char* name : {"run.toml", "run.csv", "a b.toml"}) write_file_atomically(directory / name, "");
  std::filesystem::create_directory(directory / "runs");
  EXPECT_EQ(offers({"--config", "r"}), (Words{"run.toml", "runs"}));
  EXPECT_EQ(offers({"--config", "a"}), (Words{"a b.toml"}));
  EXPECT_EQ(offers({"eval", "--model", "r"}), Words{"runs"});
  EXPECT_EQ(offers({"inspect", "run.c"}), Words{"run.csv"});
  EXPECT_EQ(offers({"compare", "r"}), Words{"runs"});
  EXPECT_EQ(offers({"report", "r"}), Words{"runs"});
  EXPECT_EQ(offers({"--data.train", "run.c"}), Words{"run.csv"});
}

TEST_F(Written, ZshReadsItsScript) {
  if (run_command("command -v zsh").exit_code != 0) GTEST_SKIP() << "zsh is not there";
  const TemporaryDirectory directory;
  write_file_atomically(directory / "_trainer", written("zsh"));
  const ProcessResult result = run_command(fmt::format("zsh -n {}", (directory / "_trainer")));
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  // What its own completion hands on to the function that both shells have.
  const auto answer = [&](const std::string& words) {
    return run_command(
               fmt::format("cd {} && zsh -fc 'compdef() {{ :; }}; words=(); . ./_trainer 2>/dev/null; "
                           "_trainer_ask {}; print -r -- $kind $values $helps'",
                           directory.path().string(), words))
        .output;
  };
  EXPECT_EQ(answer("sweep --ra"),
            "words --random --ranks-per-trial sweep: draws of a key from uniform(a,b), log(a,b), int(a,b) or "
            "choice(a|b|c) ranks that train one trial together (default 1)\n");
  EXPECT_EQ(answer("--train.optimizer ad"), "words sgd adam\n");
  EXPECT_EQ(answer("--config x"), "config\n");
  EXPECT_EQ(answer("eval --model x"), "directory\n");
  EXPECT_EQ(answer("compare x"), "directory\n");
}

TEST_F(Written, ManReadsItsPage) {
  if (run_command("command -v groff").exit_code != 0) GTEST_SKIP() << "groff is not there";
  const TemporaryDirectory directory;
  write_file_atomically(directory / "trainer.1", written("man"));
  const ProcessResult result =
      run_command(fmt::format("groff -man -Tascii -P-cbou -ww {}", (directory / "trainer.1")));
  EXPECT_EQ(result.errors, "");
  EXPECT_TRUE(has(result.output, "distribute.strategy"));
}

}  // namespace lockstep::test::completion_test
