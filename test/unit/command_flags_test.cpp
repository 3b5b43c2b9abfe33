// The flags of single commands, as the commands read them.
#include "app/commands.h"
#include "app/setup/catalogs.h"
#include "app/setup/outputs.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep::command_flags_test {

using Arguments = std::vector<std::string>;

CommandLine parse(const Arguments& arguments) {
  return parse_command_line(arguments, known_options());
}

// The error of a command about its flags.
std::string error_of(const Arguments& arguments) {
  return test::error_or<ConfigError>("no error", [&] {
    const CommandLine line = parse(arguments);
    if (line.command == "predict") read_predict_request(line);
    if (line.command == "importance") read_importance_flags(line);
    if (line.command == "plan") function_of(line).alone(line);
  });
}

TEST(CommandFlags, SayWhatOfAPredictionIsWanted) {
  const auto words = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"predict", "--model", "a", "--input", "-", "--output", "c.csv"});
    return more;
  };
  const PredictRequest none = read_predict_request(parse(words({})));
  EXPECT_FALSE(none.keep || none.view.probabilities || none.view.top > 0 || none.view.threshold);
  const PredictRequest some =
      read_predict_request(parse(words({"--keep", "id,name", "--threshold", "0.25"})));
  EXPECT_EQ(some.keep, "id,name");
  EXPECT_EQ(some.view.threshold, 0.25);
  EXPECT_EQ(read_predict_request(parse(words({"--top", "3", "--format", "jsonl"}))).view.top, 3);
  EXPECT_TRUE(read_predict_request(parse(words({"--proba"}))).view.probabilities);
  for (const char* bad : {"1.5", "x", "nan"})
    EXPECT_EQ(error_of(words({"--threshold", bad})),
              fmt::format("--threshold: expected a number from 0 to 1, found '{}'", bad));
  EXPECT_EQ(error_of(words({"--top", "0"})),
            "--top: expected a whole number from 1 to 1000000000, found '0'");
  EXPECT_NE(error_of(words({"--top", "2", "--proba"})).find("give one of them"), std::string::npos);
  for (const Arguments& two :
       {Arguments{"--top", "2", "--threshold", "0.5"}, Arguments{"--proba", "--threshold", "0"}})
    EXPECT_NE(error_of(words(two)).find("give one of them"), std::string::npos);
}

TEST(CommandFlags, SayWhatIsAskedOfColumns) {
  const ImportanceFlags flags =
      read_importance_flags(parse({"importance", "--model", "a", "--repeats", "3", "--metric", "auc"}));
  EXPECT_EQ(flags.metric, "auc");
  EXPECT_EQ(flags.repeats, 3);
  EXPECT_EQ(read_importance_flags(parse({"importance", "--model", "a", "--partial", "age"})).points, 20);
  EXPECT_EQ(error_of({"importance", "--model", "a", "--repeats", "0"}),
            "--repeats: expected a whole number from 1 to 1000, found '0'");
  EXPECT_EQ(error_of({"importance", "--model", "a", "--points", "9"}),
            "--points belongs to --partial COLUMN: name the column, or leave it out");
  EXPECT_EQ(error_of({"importance", "--model", "a", "--partial", "age", "--metric", "auc"}),
            "--metric has no effect with --partial: leave out one");
}

TEST(CommandFlags, NameWorldSizes) {
  for (const std::string np : {"x", "1,", ",1", "1,,2", "0", "-1", "1.5", "1 2"})
    EXPECT_EQ(error_of({"plan", "--config", "a", "--np", np}),
              "--np: expected numbers of ranks from 1 to 1048576, such as 1,2,4,8, found '" + np + "'");
}

// Whatever the command line or the config names to be read is no output, under any flag.
TEST(CommandFlags, NeverWriteToWhatIsRead) {
  const test::TemporaryDirectory directory;
  const auto make = [&](const std::string& name) {
    write_file_atomically(directory / name, "");
    return directory / name;
  };
  Config config;
  DataOptions& data = config.data;
  std::vector<std::string> read;
  for (std::string* file : {&config.train.init, &data.train, &data.train_labels, &data.validation,
                            &data.validation_labels, &data.test, &data.test_labels})
    read.push_back(*file = make(fmt::format("{}.npy", read.size())));
  std::filesystem::create_directory(directory / "run");
  for (const char* file : {"input", "run/config.toml", "run/model.safetensors", "run/schema.json"})
    read.push_back(make(file));
  const auto error = [&](const std::string& output) {
    const CommandLine line = parse({"predict", "--model", directory / "run", "--input", directory / "input",
                                    "--output", output, "--overwrite"});
    return test::error_or<ConfigError>("", [&] { check_outputs(line, files_read(line, config)); });
  };
  for (const std::string& file : read)
    EXPECT_NE(error(file).find("which is read"), std::string::npos) << file << error(file);
  EXPECT_EQ(error(make("other")), "");
  data.validation = "share(0.1)";
  EXPECT_EQ(error(directory / "share(0.1)"), "") << "no file";
  for (const char* flag : {"--json", "--csv"}) {
    const CommandLine line = parse({"importance", "--model", directory / "run", flag, data.test});
    EXPECT_THROW(check_outputs(line, files_read(line, config)), ConfigError) << flag;
    EXPECT_FALSE(writes_to_standard_output(line));
    EXPECT_TRUE(writes_to_standard_output(parse({"importance", "--model", "a", flag, "-"})));
  }
}

}  // namespace lockstep::command_flags_test
