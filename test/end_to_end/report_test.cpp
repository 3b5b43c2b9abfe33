// Runs looked at afterwards through the real executable: their page, their metrics as CSV, their status.
#include "support/trainer_runs.h"

namespace lockstep::test::report_test {
namespace {

class ReportCommand : public TrainerRuns {
 protected:
  // A table of hostile names: two columns, and classes.
  void SetUp() override {
    std::ofstream data(directory_ / "a<b>.csv");
    data << "\"<i>x</i>\",y\n";
    for (int row = 0; row < 60; ++row) data << row % 7 << ',' << (row % 7 > 3 ? "<u>yes" : "no&") << '\n';
    data.close();
    configure(fmt::format(
        "[data]\ntrain = '{}'\nlabel = \"y\"\nvalidation = 'share(0.2)'\n[model]\nlayers = \"dense(2)\"\n"
        "[train]\nloss = \"softmax_cross_entropy\"\nlr = 0.1\nepochs = 3\nglobal_batch = 8\nreplicas = 2\n"
        "[run]\nlog_every = 2\n",
        directory_ / "a<b>.csv"));
  }

  ProcessResult train(const std::string& run, const std::string& flags = "") const {
    return TrainerRuns::train(2, run, flags);
  }

  ProcessResult report(const std::string& runs, const std::string& flags = "") const {
    return run_trainer(fmt::format("report {} --output {} {}", runs, page_, flags));
  }

  const std::string page_ = directory_ / "page.html";
};

TEST_F(ReportCommand, ShowsADoneRunTheSameEachTime) {
  succeeded(train("a"));
  succeeded(report(directory_ / "a"));
  const std::string page = read_file(page_);
  expect_parts(page, {"\"state\":\"done\"", "\"steps\":18,", "\"kept\":{",
                      "\"confusion\":{\"split\":", "\"\\u003ci>x\\u003c/i>\"", "\\u003cu>yes",
                      "a\\u003cb>.csv", "\"each example seen\",\"", "Chart.js v", "The MIT License",
                      "JavaScript, which is switched off"});
  EXPECT_TRUE(read_file(directory_ / "a/report.html") == page) << "the run has written it at its end";
  expect_no_parts(page, {"<i>x", "<u>yes"});
  const ProcessResult numbers = succeed(fmt::format("report {} --json -", directory_ / "a"));
  EXPECT_NE(page.find(">" + numbers.output.substr(0, numbers.output.size() - 1) + "</script>"),
            std::string::npos)
      << "the page shows these numbers";
  const auto json = parse_json<nlohmann::json>(numbers.output);
  EXPECT_EQ(json["runs"][0]["columns"]["rows"][0][0], "<i>x</i>");
  expect_failed(report(directory_ / "a"), kExitConfig);
  succeeded(report(directory_ / "a", "--overwrite"));
  EXPECT_EQ(read_file(page_), page);

  const ProcessResult csv =
      succeed(fmt::format("export-metrics {} --format csv --output -", directory_ / "a"));
  EXPECT_EQ(count_of(csv.output, "\n"), count_of(read_file(path("a/metrics.jsonl")), "\n") + 1);
  EXPECT_TRUE(csv.output.starts_with("run,kind,split,step,epoch,samples_seen,")) << csv.output;
  expect_failed(run_trainer(fmt::format("export-metrics {} --format xml --output -", directory_ / "a")),
                kExitConfig, {"'xml'", "csv"});

  expect_parts(succeed(fmt::format("status {}", directory_ / "a")).output,
               {"done", "18/18 (100 %)", "validation loss"});
}

// The lines of metrics.jsonl without what depends on the clock.
std::vector<std::array<double, 4>> norms_of(const std::string& file) {
  std::vector<std::array<double, 4>> norms;
  for (const nlohmann::json& json : metric_lines(file)) {
    if (!json.contains("gradient_norm")) continue;
    norms.push_back({json["step"], json["loss"], json["gradient_norm"], json["weight_norm"]});
  }
  return norms;
}

TEST_F(ReportCommand, HasTheSamePredictionsAndNormsOnAnyNumberOfRanks) {
  const std::string flags =
      "--distribute.reduction ordered --distribute.strategy zero1 --train.replicas 4 --eval.batch 3 ";
  succeeded(train("two", flags));
  trained(1, "one", flags);
  const std::string predictions = read_file(directory_ / "two/evaluation.json");
  EXPECT_EQ(read_file(directory_ / "one/evaluation.json"), predictions);
  const auto json = parse_json<nlohmann::json>(predictions);
  EXPECT_EQ(json["worst"].size(), json["samples"]) << "fewer than 20 records are all shown";
  EXPECT_EQ(json["columns"], nlohmann::json({"<i>x</i>"}));
  for (std::size_t i = 1; i < json["worst"].size(); ++i)
    EXPECT_GE(json["worst"][i - 1]["loss"], json["worst"][i]["loss"]);
  const auto& curve = json["curves"][0];
  EXPECT_EQ(curve["class"], "1 (no&)");
  EXPECT_EQ(curve["recall"].back(), 1);
  EXPECT_EQ(curve["false_positive_rate"].back(), 1);

  const auto norms = norms_of(directory_ / "two/metrics.jsonl");
  EXPECT_EQ(norms_of(directory_ / "one/metrics.jsonl"), norms);
  ASSERT_EQ(norms.size(), 2) << "steps 10 and 18";
  EXPECT_GT(norms[0][2], 0);
  EXPECT_GT(norms[0][3], 0);
}

TEST_F(ReportCommand, IsNotWrittenWhereTheConfigSaysSoOrCannotBe) {
  succeeded(train("without", "--report.html false"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "without/report.html"));
  succeeded(train("longer", "--train.epochs 2 --checkpoint.every '1 epoch'"));
  std::filesystem::remove(directory_ / "longer/report.html");
  std::filesystem::create_directories(directory_ / "longer/report.html/of somebody");
  const ProcessResult blocked = succeeded(
      train("longer", "--train.epochs 3 --checkpoint.every '1 epoch' --run.resume_allow train.epochs"));
  expect_parts(blocked.errors, {"report.html is not written"});
}

TEST_F(ReportCommand, TellsWhatBecameOfRunsThatDidNotEnd) {
  expect_failed(train("nan", "--train.keep last --debug.nan_replica 1 --debug.nan_step 5"), kExitTraining);
  EXPECT_NE(train("killed", "--debug.fail_rank 1 --debug.fail_step 7").exit_code, 0);
  const std::string metrics = directory_ / "killed/metrics.jsonl";
  std::filesystem::resize_file(metrics, std::filesystem::file_size(metrics) - 9);
  const ProcessResult made = succeeded(report(directory_.path().string()));
  expect_parts(made.output + made.errors, {"2 runs"});
  const auto failed = json_in("nan/run.json")["progress"];
  EXPECT_EQ(failed, nlohmann::json({{"steps", 5}, {"samples", 40}, {"epochs", 5.0 / 6}}))
      << "not those of the last line, step 4";
  expect_parts(read_file(page_), {"\"state\":\"failed\",\"reason\":\"", "not finite", "is cut off",
                                  "\"differing\":[\"train.keep\","});
  expect_parts(run_trainer(fmt::format("status {}", directory_.path().string())).output,
               {"nan", "killed", "failed"});
}

TEST_F(ReportCommand, ReplacesNothingOfARunButItsPage) {
  succeeded(train("a", "--report.trace 'first 2 steps'"));
  const std::string run = directory_ / "a";
  const auto refused = [&](const std::string& words, const std::string& file) {
    const std::string before = read_file(run + "/" + file);
    expect_failed(run_trainer(fmt::format("{} {}/{} --overwrite", words, run, file)), kExitConfig,
                  {"which is read"});
    EXPECT_EQ(read_file(run + "/" + file), before) << words;
  };
  refused("report " + run + " --output", "metrics.jsonl");
  refused("report " + run + " --json", "run.json");
  refused("compare " + run + " --csv", "config.toml");
  refused("status " + run + " --json", "run.json");
  refused("export-metrics " + run + " --output", "model.safetensors");
  refused("eval " + run + " --json", "schema.json");
  expect_failed(run_trainer(fmt::format("eval {} --data.test '{}' --json '{}' --overwrite", run,
                                        directory_ / "a<b>.csv", directory_ / "a<b>.csv")),
                kExitConfig, {"which is read"});
  refused("trace " + run + " --output", "run.json");
  succeeded(run_trainer(fmt::format("report {0} --output {0}/report.html --overwrite", run)));
}

TEST_F(ReportCommand, ARunOfOtherDataIsNamedWithTheKey) {
  succeeded(train("a"));
  const std::string run = directory_ / "a";
  write_file_atomically(directory_ / "t.txt", std::string(4000, 'x') + "y");
  const std::string text =
      write("text.toml",
            fmt::format("[data]\ntrain = '{}'\nformat = 'text'\ntokens = 'bytes'\nwindow = 8\n[model]\n"
                        "layers = 'embedding(256,4) dense(256)'\n[train]\nsteps = 2\nglobal_batch = 8\n"
                        "replicas = 1\n",
                        directory_ / "t.txt"));
  const std::string key = "(data.format csv, not text)";
  expect_failed(run_trainer(fmt::format("--config {} --run.dir {}", text, run)), kExitConfig,
                {run, key, "run.resume = \"restart\""});
  expect_failed(run_trainer(fmt::format("eval {} --config {}", run, text)), kExitConfig,
                {run, key, "leave --config out"});
}

TEST_F(ReportCommand, NamesADirectoryWithoutRuns) {
  expect_failed(report(directory_ / "none"), kExitConfig, {"there is no run '", "none'"});
  expect_failed(run_trainer("report --output x.html"), kExitConfig);
  expect_failed(run_trainer(fmt::format("report {}", directory_ / "none")), kExitConfig,
                {"--output FILE", "--json FILE"});
}

}  // namespace
}  // namespace lockstep::test::report_test
