// trainer help: every guide, key, section and command has a page, and other words are told the nearest topic.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "support/error_text.h"
#include "support/trainer_process.h"

namespace lockstep::test {
namespace {

ProcessResult help(const std::string& topic) {
  return run_trainer("help " + topic);
}

TEST(Help, PrintsEveryGuideOfTheProject) {
  const ProcessResult topics = help("");
  EXPECT_EQ(topics.exit_code, 0) << topics.errors;
  for (const auto& file : std::filesystem::directory_iterator(LOCKSTEP_SOURCE_DIR "/configs/guides")) {
    const std::string name = file.path().stem();
    EXPECT_NE(topics.output.find("\n  " + name + " "), std::string::npos) << topics.output;
    const ProcessResult guide = help(name);
    EXPECT_EQ(guide.exit_code, 0) << guide.errors;
    const std::string text = read_file(file.path());
    EXPECT_EQ(guide.output.substr(0, guide.output.find('\n')), text.substr(0, text.find('\n')));
    EXPECT_EQ(guide.output.find("<!--"), std::string::npos) << "marks for the check of its commands";
    EXPECT_GT(guide.output.size(), text.size() / 2) << name;
  }
}

TEST(Help, TellsOfAKeyWhatItMeansAndWhereItIsUsed) {
  const ProcessResult key = help("data.label");
  EXPECT_EQ(key.exit_code, 0) << key.errors;
  expect_parts(key.output,
               {"data.label\n", "Columns of a table to learn", "label in section [data]", "--data.label",
                "default:", "example:      [data]  label = ", "trainer help ", "tables"});
  EXPECT_EQ(help("global_batch").output, help("train.global_batch").output);
  expect_parts(help("dir").output, {"run.dir\n", "checkpoint.dir\n"});
  expect_parts(help("optimizer").output, {"train.optimizer", "one of 'sgd', 'adam'"});
  expect_parts(help("checkpoint").output, {"[checkpoint]", "--checkpoint.every", "--checkpoint.keep"});
}

TEST(Help, HasAPageForEachCommand) {
  for (const std::string command :
       {"plan", "bench", "eval", "predict", "importance", "export", "inspect", "init", "compare", "report",
        "export-metrics", "status", "watch", "trace", "sweep", "cv", "reference", "help"}) {
    const ProcessResult page = run_trainer(command + " --help");
    EXPECT_EQ(page.exit_code, 0) << page.errors;
    EXPECT_EQ(page.output, command == "help" ? page.output : help(command).output);
    expect_parts(page.output, {"Usage\n", "trainer " + command, "Example\n", "Read on: trainer help "});
  }
  expect_parts(help("export").output, {"--format NAME", "npz | onnx"});
  EXPECT_NE(run_trainer("--help").output, run_trainer("plan --help").output);
}

TEST(Help, KnowsNoOtherTopicsAndNamesTheNearest) {
  const ProcessResult wrong = help("tabels");
  EXPECT_EQ(wrong.exit_code, kExitConfig);
  expect_parts(wrong.errors, {"no help on 'tabels'", "did you mean 'tables'?", "'trainer help' lists"});
  expect_parts(help("train.learning_rate").errors, {"'train.lr'"});
  expect_parts(help("tables data").errors, {"unexpected argument 'data'"});
}

}  // namespace
}  // namespace lockstep::test
