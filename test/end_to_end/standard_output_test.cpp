// Standard output that cannot be written to: a result that did not arrive is an error, and a training goes on
// without whoever read its log.
#include "support/file_faults.h"
#include "support/trainer_runs.h"

namespace lockstep::test::standard_output_test {
namespace {

TEST(StandardOutput, AResultThatDoesNotArriveIsAnError) {
  const SmallExperiment experiment;
  const std::string run = experiment.fresh_run();
  succeed(saving_arguments(experiment, run));
  const std::string table = experiment.directory() / "table.csv";
  write_file_atomically(table, "x,y\n1,2\n3,4\n");
  for (const std::string& command :
       {std::string("--help"), std::string("--help-all"), std::string("--version"), std::string("reference"),
        "plan --config " + experiment.config(), "eval --model " + run, "inspect " + table + " --label y"}) {
    SCOPED_TRACE(command);
    succeed(command);
    expect_failed(run_command(trainer_path() + " " + command + " >/dev/full"), kExitData,
                  {"cannot write all to standard output: No space left on device"});
  }
}

TEST(StandardOutput, AResultEndsQuietlyWithItsReader) {
  const TemporaryDirectory directory;
  const std::string table = directory / "table.csv";
  std::string text = "x,y\n";
  for (Index row = 0; row < 60'000; ++row) text += fmt::format("{},{}\n", row % 7, row % 2);
  write_file_atomically(table, text);
  const std::string config = directory / "empty.toml";
  write_file_atomically(config, "");
  const std::string run = directory / "run";
  succeed(
      fmt::format("--config {} --data.train {} --data.label y --model.layers 'dense(1)' "
                  "--train.loss mean_squared_error --train.steps 1 --train.global_batch 4 --run.dir {}",
                  config, table, run));
  const ProcessResult result = run_command(fmt::format(
      "bash -c '{} predict --model {} --input {} --output - | head -n 2; echo ${{PIPESTATUS[0]}}'",
      trainer_path(), run, table));
  constexpr const char* kEndedBySigpipe = "\n141\n";
  EXPECT_TRUE(result.output.ends_with(kEndedBySigpipe)) << result.output;
  EXPECT_EQ(count_of(result.output, "\n"), 3);
  expect_no_parts(result.errors, {"error"});
}

// Each of 70 reads takes 30 ms longer. Bash stands between, as a terminal has a shell.
TEST(StandardOutput, ATerminalShowsWhatIsReadForMoreThanTwoSeconds) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "parts");
  for (int part = 0; part < 30; ++part)
    write_file_atomically(directory / fmt::format("parts/{:02}.csv", part), "x,y\n1,2\n3,4\n5,6\n");
  for (const int slow : {70, 20}) {
    const FileFaults faults({.in = directory / "parts", .effect = "wait", .calls = "read", .count = slow});
    write_file_atomically(directory / "ask.sh",
                          fmt::format("{} {} inspect {}/parts --label y\ntrue\n", faults.words(),
                                      trainer_path(), directory.path().string()));
    const ProcessResult shown =
        run_command(fmt::format("TERM=xterm script -qec 'bash {}' /dev/null", directory / "ask.sh"));
    EXPECT_EQ(faults.hits(), slow);
    EXPECT_EQ(shown.output.find("\rreading ") != std::string::npos, slow == 70) << shown.output;
    expect_parts(shown.output, {"90 records"});
  }
}

TEST(StandardOutput, PathsAreShownAsText) {
  const SmallExperiment experiment;
  const std::string name = "run\x1b[31m\x1b]0;evil\x07 50%n";
  const std::string run = experiment.directory() / name;
  const auto words = [](const std::string& path) { return "'" + path + "'"; };
  std::string all;
  const auto ask = [&](const std::string& arguments) {
    const ProcessResult result = run_trainer(arguments);
    all += result.output + result.errors;
  };
  const std::string config = "--config " + experiment.config();
  ask(fmt::format("{} --run.dir {}", config, words(run)));
  ask("compare " + words(run));
  ask("status " + words(run));
  ask("watch --once " + words(run));
  ask("eval --model " + words(run + "no"));
  ask("report " + words(run));
  ask(fmt::format("sweep {} --run.dir {} --grid train.lr=0.1", config, words(run + "s")));
  ask("inspect " + words(run + ".csv"));
  ask("init " + words(run + ".csv"));
  ask("predict --model " + words(run) + " --output - --input " + words(run + ".csv"));
  all += read_file(run + "/log.txt");
  EXPECT_EQ(all.find('\x1b'), std::string::npos);
  EXPECT_EQ(all.find('\x07'), std::string::npos);
  expect_parts(all, {"\\x1b[31m\\x1b]0;evil\\x07 50%n"});
}

TEST(StandardOutput, ARunGoesOnWhenTheReaderOfItsLogHasGone) {
  const SmallExperiment experiment;
  for (const int ranks : {1, 2}) {
    const std::string run = experiment.fresh_run();
    const std::string arguments =
        saving_arguments(experiment, run, "--debug.delay_rank 0 --debug.delay_ms 20 --run.log_every 1");
    const std::string command =
        ranks == 1 ? trainer_path() + " " + arguments : mpiexec_words() + " " + rank_words(ranks, arguments);
    const ProcessResult result = run_command(command + " | head -n 2");
    EXPECT_EQ(count_of(result.output, "\n"), 2) << result.output;
    EXPECT_TRUE(std::filesystem::exists(run + "/summary.json")) << ranks << " ranks: " << result.errors;
  }
}

}  // namespace
}  // namespace lockstep::test::standard_output_test
