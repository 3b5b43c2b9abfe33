// Weights of records through the real executable: what they mean, and that ranks, memory modes and resuming
// do not change it.
#include "lockstep/base/random.h"
#include "support/trainer_runs.h"

namespace lockstep::test::weighted_tables_test {
namespace {

struct Person {
  double age;
  double hours;
  int income;
  int times;
};

class WeightedTables : public TrainerRuns {
 protected:
  static std::vector<Person> people(Index rows, std::uint64_t seed) {
    RandomStream random({.seed = seed, .purpose = Purpose::kSynthetic});
    std::vector<Person> all;
    for (Index row = 0; row < rows; ++row) {
      const double age = double{random.normal()};
      const double hours = double{random.normal()};
      const int times = static_cast<int>(random.below(4));
      all.push_back({age, hours, age + hours + double{random.normal()} > 0 ? 1 : 0, times});
    }
    return all;
  }

  // `scale`: of the weights.
  static std::string weighed(const std::vector<Person>& all, double scale = 1) {
    std::string text = "age,hours,income,w\n";
    for (const Person& each : all)
      text += fmt::format("{},{},{},{}\n", each.age, each.hours, each.income, scale * each.times);
    return text;
  }
  static std::string repeated(const std::vector<Person>& all) {
    std::string text = "age,hours,income\n";
    for (const Person& each : all) {
      for (int i = 0; i < each.times; ++i)
        text += fmt::format("{},{},{}\n", each.age, each.hours, each.income);
    }
    return text;
  }

  // Of "NAME.csv" and "NAME_test.csv".
  ProcessResult train(int ranks, const std::string& name, const std::string& run,
                      const std::string& flags) const {
    configure(
        fmt::format("[data]\nlabel = \"income\"\nscale = \"none\"\nchunk_kib = 4\n"
                    "train = \"{0}/{1}.csv\"\ntest = \"{0}/{1}_test.csv\"\n"
                    "[model]\nlayers = \"dense(8) tanh dense(1)\"\n"
                    "[train]\nloss = \"binary_cross_entropy\"\nlr = 0.1\nreplicas = 6\n"
                    "[distribute]\nreduction = \"ordered\"\nstrategy = \"allreduce\"\n",
                    directory_.path().string(), name));
    return TrainerRuns::train(ranks, run, flags);
  }
};

// With all records in each step, a weight is the number of times that a record is there.
TEST_F(WeightedTables, OfWholeNumbersAreRecordsThatAreRepeated) {
  const std::vector<Person> trained = people(400, 1);
  const std::vector<Person> tested = people(150, 2);
  write("weighed.csv", weighed(trained));
  write("weighed_test.csv", weighed(tested));
  write("halves.csv", weighed(trained, 0.5));
  write("halves_test.csv", weighed(tested, 0.5));
  write("repeated.csv", repeated(trained));
  write("repeated_test.csv", repeated(tested));
  const std::string length = "--train.steps 30 --train.global_batch 10000";
  for (const std::string name : {"weighed", "halves", "repeated"}) {
    const std::string weight = name == "repeated" ? "" : " --data.weight w";
    succeeded(train(2, name, name, length + weight));
  }
  const nlohmann::json expected = evaluation("repeated");
  EXPECT_LT(expected["loss"].get<double>(), 0.65);
  for (const std::string name : {"weighed", "halves"}) {
    const nlohmann::json found = evaluation(name);
    EXPECT_EQ(found["samples"], 150);
    for (const char* measure : {"loss", "accuracy", "auc", "log_loss", "precision", "recall"})
      EXPECT_NEAR(found[measure].get<double>(), expected[measure].get<double>(), 1e-5) << name << measure;
  }
}

TEST_F(WeightedTables, GiveTheSameBytesOnAnyNumberOfRanksLoadedStreamedAndResumed) {
  write("t.csv", weighed(people(900, 3), 0.3));
  write("t_test.csv", weighed(people(200, 4), 0.7));
  const std::string flags =
      "--data.weight w --train.global_batch 48 --train.epochs 3 --data.audit true --data.validation_share "
      "0.2 ";
  for (const std::string memory : {"load", "stream"}) {
    const std::string own = flags + "--data.memory " + memory + " ";
    const std::string first = memory + "1";
    succeeded(train(1, "t", first, own));
    const std::string three = memory + "3";
    expect_parts(succeeded(train(3, "t", three, own)).output, {"weight  w: from 0 to 0.9"});
    EXPECT_EQ(model(three), model(first)) << memory;
    EXPECT_EQ(evaluation(three), evaluation(first)) << memory;
    const std::string half = memory + "_half";
    ASSERT_EQ(
        train(2, "t", half, own + "--checkpoint.every \"10 steps\" --debug.fail_rank 1 --debug.fail_step 25")
                .exit_code == 0,
        false);
    succeeded(train(3, "t", half, own + "--checkpoint.every \"10 steps\""));
    EXPECT_EQ(model(half), model(first)) << memory;
    EXPECT_EQ(evaluation(half), evaluation(first)) << memory;
  }
  succeeded(train(2, "t", "plain", "--data.ignore w --train.global_batch 48 --train.epochs 3"));
  EXPECT_NE(model("plain"), model("load1"));
}

TEST_F(WeightedTables, OfOneGiveTheBytesOfNone) {
  std::vector<Person> all = people(500, 5);
  for (Person& each : all) each.times = 1;
  write("t.csv", weighed(all));
  write("t_test.csv", weighed(all));
  const std::string length = "--train.global_batch 32 --train.epochs 2 ";
  for (const std::string strategy : {"allreduce", "central_storage", "local_sgd"}) {
    const std::string flags = length + "--distribute.strategy " + strategy;
    succeeded(train(2, "t", strategy, flags + " --data.weight w"));
    succeeded(train(2, "t", strategy + "_plain", flags + " --data.ignore w"));
    EXPECT_EQ(model(strategy), model(strategy + "_plain")) << strategy;
    EXPECT_EQ(evaluation(strategy), evaluation(strategy + "_plain")) << strategy;
  }
}

TEST_F(WeightedTables, AreAskedForInEvaluationAndNotInPrediction) {
  write("t.csv", weighed(people(300, 6)));
  write("t_test.csv", weighed(people(100, 7)));
  succeeded(train(2, "t", "run", "--data.weight w --train.global_batch 32 --train.epochs 1"));
  const std::string bare = write("bare.csv", "age,hours,income\n1,2,1\n0.5,-3,0\n");
  expect_failed(run_trainer(2, fmt::format("eval --model {} --data.test {}", directory_ / "run", bare)),
                kExitData, {"bare.csv' has no column 'w', the weights of its records", "age, hours, income"});
  succeed(2, fmt::format("predict --model {0}/run --input {1} --output {0}/p.csv", directory_.path().string(),
                         bare));
  EXPECT_EQ(count_of(read_file(directory_ / "p.csv"), "\n"), 3);
  expect_failed(run_trainer(2, fmt::format("eval --model {} --data.test {}", directory_ / "run",
                                           write("zeros.csv", "age,hours,income,w\n1,2,1,0\n0.5,-3,0,0\n"))),
                kExitData, {"zeros.csv', column 'w': the weights of all 2 records are 0"});
}

TEST_F(WeightedTables, ThatAreBadOrCannotBeReadAreRefusedOnce) {
  write("t.csv", weighed(people(300, 8)) + "1,2,1,-0.5\n");
  write("t_test.csv", weighed(people(100, 9)));
  const std::string length = "--train.global_batch 32 --train.epochs 1 ";
  auto error = [&, ranks = 2](const std::string& flags) mutable {
    const ProcessResult result = train(std::exchange(ranks, 1), "t", "refused", length + flags);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_EQ(count_of(result.errors, "error: "), 1) << result.errors;
    return result.errors;
  };
  expect_parts(
      error("--data.weight w"),
      {"t.csv', line 302, column 4 ('w'): found '-0.5', expected a weight, which is a number of 0 or more"});
  expect_parts(error("--data.weight v"), {"data.weight: there is no column 'v'"});
  expect_parts(error("--data.weight w --data.numeric w"), {"data.numeric: column 'w' is the weight"});
  write(
      "synthetic.toml",
      "[data]\nformat = \"synthetic\"\nsynthetic_rows = 100\nweight = \"w\"\n[model]\nlayers = \"dense(2)\"\n"
      "[train]\nloss = \"softmax_cross_entropy\"\nsteps = 1\nglobal_batch = 10\n");
  expect_failed(run_trainer("plan --config " + (directory_ / "synthetic.toml")), kExitConfig,
                {"data.weight", "synthetic"});
}

}  // namespace
}  // namespace lockstep::test::weighted_tables_test
