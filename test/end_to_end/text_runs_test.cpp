// From a text to a model, as trainer init writes the config; the same bits on any ranks, and after a kill.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"
#include "support/trainer_process.h"

namespace lockstep::test {
namespace {

class TextRuns : public testing::Test {
 protected:
  TextRuns() {
    std::string text;
    for (Index i = 0; i < 400; ++i) text += fmt::format("{} sheep and {} goats, ", i % 10, i * i % 10);
    write_file_atomically(directory_ / "t.txt", text);
  }

  ProcessResult init() const {
    return run_command(fmt::format("cd {} && {} init t.txt", directory_.path().string(), trainer_path()));
  }
  ProcessResult train(int ranks, const std::string& name, const std::string& flags = "") const {
    return run_trainer(ranks,
                       fmt::format("--config {} --data.train {} --run.dir {} --train.steps 40 {}",
                                   directory_ / "t.toml", directory_ / "t.txt", directory_ / name, flags));
  }
  std::string model(const std::string& name) const {
    return read_file(directory_ / name + "/model.safetensors");
  }

  TemporaryDirectory directory_;
};

TEST_F(TextRuns, GiveTheSameBitsOnAnyRanksAndAfterAResume) {
  const ProcessResult first = init();
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  expect_parts(first.output, {"a vocabulary of 22 (characters)", "bits per character", "mpirun"});
  const ProcessResult whole = train(1, "one", "--train.threads 2");
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  expect_parts(whole.output + whole.errors, {"a vocabulary of 22", "bits_per_character"});
  ASSERT_EQ(train(2, "two").exit_code, 0);
  EXPECT_EQ(model("two"), model("one"));
  ASSERT_NE(
      train(3, "three", "--checkpoint.every '15 steps' --debug.fail_rank 2 --debug.fail_step 25").exit_code,
      0);
  ASSERT_EQ(train(2, "three", "--checkpoint.every '15 steps'").exit_code, 0);
  EXPECT_EQ(model("three"), model("one"));
  const auto figures = evaluate(2, fmt::format("--model {}", directory_ / "two"));
  EXPECT_NEAR(figures.front().at("bits_per_character").get<double>(),
              figures.front().at("loss").get<double>() / 0.693147, 1e-4);
}

TEST_F(TextRuns, AVocabularyIsThatOfTheRun) {
  ASSERT_EQ(init().exit_code, 0);
  ASSERT_EQ(train(1, "run", "--train.steps 3").exit_code, 0);
  write_file_atomically(directory_ / "new.txt",
                        "3 sheep, 4 goats and 5 sheep, 6 goats and 7 sheep, 8 wolves, 9 sheep");
  const auto predict = [&] {
    return run_trainer(2, fmt::format("predict --model {} --input {} --output {} --overwrite",
                                      directory_ / "run", directory_ / "new.txt", directory_ / "p.csv"));
  };
  const ProcessResult refused = predict();
  EXPECT_EQ(refused.exit_code, 3);
  expect_parts(refused.errors, {"new.txt', byte 53", "the character 'w'"});
  write_file_atomically(directory_ / "new.txt", std::string(150, '3'));
  const ProcessResult predicted = predict();
  EXPECT_EQ(predicted.exit_code, 0) << predicted.errors;
  EXPECT_TRUE(read_file(directory_ / "p.csv").starts_with("row,record,position,prediction,p_0,"));
}

}  // namespace
}  // namespace lockstep::test
