// Class weights, weights of records in tables and beside arrays, missing targets and soft labels through the
// real executable: what they mean, and that ranks, memory modes and resuming do not change it.
#include "lockstep/base/random.h"
#include "support/numpy_files.h"
#include "support/trainer_runs.h"

namespace lockstep::test::targets_test {
namespace {

constexpr Index kRows = 300;

class Targets : public TrainerRuns {
 protected:
  Targets()
      : TrainerRuns(
            "[train]\nlr = 0.1\nreplicas = 6\nepochs = 2\nglobal_batch = 24\n"
            "[distribute]\nreduction = \"ordered\"\nstrategy = \"allreduce\"\n") {
    RandomStream random({.seed = 7, .purpose = Purpose::kSynthetic});
    for (Index row = 0; row < kRows; ++row) {
      const Scalar a = random.normal();
      const Scalar b = random.normal();
      features_.insert(features_.end(), {a, b});
      classes_.push_back(row % 4 == 0 ? 2 : a + b > 0 ? 1 : 0);
    }
    write_array("x.npy", {kRows, 2}, features_);
    write_array("y.npy", {kRows}, classes_);
  }

  std::string write_array(const std::string& name, const std::vector<Index>& sizes,
                          const std::vector<Scalar>& values) const {
    return write(name, npy_content("<f4", sizes, bytes_of(values)));
  }
  std::vector<Scalar> one_hot() const {
    std::vector<Scalar> rows;
    for (const Scalar each : classes_) {
      for (Scalar i = 0; i < 3; ++i) rows.push_back(i == each ? 1 : 0);
    }
    return rows;
  }
  // A quarter of the records is spam; `weights`: of ham and spam, in a column.
  std::string mails(const std::string& ham, const std::string& spam) const {
    std::string text = "a,b,kind,w\n";
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      const bool is_spam = classes_[i] == 2;
      text += fmt::format("{},{},{},{}\n", features_[2 * i], features_[2 * i + 1], is_spam ? "spam" : "ham",
                          is_spam ? spam : ham);
    }
    return text;
  }
  // Two targets, of which two records of each `period` lack one or the other.
  std::string gaps(std::size_t period = 6) const {
    std::string text = "a,b,u,v\n";
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      const Scalar a = features_[2 * i];
      const Scalar b = features_[2 * i + 1];
      const std::string u = i % period == 1 ? "" : fmt::format("{}", a + b);
      const std::string v = i % period == 4 ? "NA" : fmt::format("{}", a - b);
      text += fmt::format("{},{},{},{}\n", a, b, u, v);
    }
    return text;
  }

  // In each test the first run that is refused is one of two ranks, and those after it are of one.
  void expect_refused(int exit_code, const std::string& flags, const std::vector<std::string>& parts) {
    expect_failed(train(std::exchange(refused_ranks_, 1), "refused", flags), exit_code, parts);
  }
  std::string arrays(const std::string& labels) const {
    return fmt::format(
        "--data.train {} --data.train_labels {} --data.validation 'share(0.2)' --model.layers "
        "\"dense(8) tanh dense(3)\" ",
        directory_ / "x.npy", directory_ / labels);
  }
  std::string table(const std::string& name) const {
    return fmt::format("--data.train {} --data.validation 'share(0.2)' --data.chunk_kib 1 ",
                       directory_ / name);
  }
  // Loaded or streamed, any number of ranks gives one model, and so does a resumed run.
  void expect_same_bytes(const std::string& name, const std::string& flags) const {
    for (const std::string memory : {"load", "stream"}) {
      const std::string own = flags + "--data.memory " + memory + " ";
      const std::string first = name + memory;
      const std::string model = trained(1, first, own);
      const std::string three = first + "3";
      EXPECT_TRUE(trained(3, three, own) == model) << three;
      EXPECT_EQ(evaluation(three), evaluation(first)) << three;
      if (memory == "stream") continue;
      const std::string half = first + "_half";
      const std::string saves = own + "--checkpoint.every \"5 steps\" ";
      EXPECT_NE(train(2, half, saves + "--debug.fail_rank 1 --debug.fail_step 12").exit_code, 0);
      EXPECT_TRUE(trained(3, half, saves) == model) << half;
    }
  }

  std::vector<Scalar> features_;
  std::vector<Scalar> classes_;

 private:
  int refused_ranks_ = 2;
};

TEST_F(Targets, OneHotLabelsGiveTheBytesOfClassNumbers) {
  write_array("one_hot.npy", {kRows, 3}, one_hot());
  const std::string length = "--eval.metrics auc,recall,log_loss ";
  EXPECT_TRUE(trained(1, "numbers", arrays("y.npy") + length) ==
              trained(2, "one_hot", arrays("one_hot.npy") + length));
  EXPECT_EQ(evaluation("numbers"), evaluation("one_hot"));
  const std::string weighed = length + "--train.class_weights balanced ";
  EXPECT_TRUE(trained(2, "numbers_balanced", arrays("y.npy") + weighed) ==
              trained(1, "one_hot_balanced", arrays("one_hot.npy") + weighed));
}

TEST_F(Targets, SoftLabelsThatAreNoneAreRefusedWithTheirRecord) {
  std::vector<Scalar> rows = one_hot();
  rows[3 * 17] += 0.5F;
  rows[3 * 17 + 1] = rows[3 * 17 + 2] = 0;
  rows[3 * 17] = 0.5F;
  write_array("short.npy", {kRows, 3}, rows);
  expect_refused(kExitData, arrays("short.npy"),
                 {"short.npy', record 17: found labels that add up to 0.5", "3 classes, which add up to 1"});
  write_array("two.npy", {kRows, 2}, std::vector<Scalar>(2 * kRows, 0.5F));
  expect_refused(
      kExitConfig, arrays("two.npy"),
      {"the labels in '", "two.npy' have 2 columns", "3 with the probability of each", "numpy.argmax"});
}

TEST_F(Targets, WeightsBesideArraysCountARecordSoManyTimes) {
  std::vector<Scalar> ones(kRows, 1);
  std::vector<Scalar> some;
  std::vector<Scalar> repeated_x;
  std::vector<Scalar> repeated_y;
  for (Index row = 0; row < kRows; ++row) {
    some.push_back(static_cast<Scalar>(row % 3));
    for (Index i = 0; i < row % 3; ++i) {
      repeated_x.insert(repeated_x.end(), {at(features_, 2 * row), at(features_, 2 * row + 1)});
      repeated_y.push_back(at(classes_, row));
    }
  }
  write_array("ones.npy", {kRows}, ones);
  write_array("some.npy", {kRows, 1}, some);
  const std::string weights = "--data.train_weights " + (directory_ / "");
  EXPECT_TRUE(trained(1, "none", arrays("y.npy")) ==
              trained(2, "ones", arrays("y.npy") + weights + "ones.npy"));
  EXPECT_EQ(evaluation("none"), evaluation("ones"));
  expect_same_bytes("some", arrays("y.npy") + weights + "some.npy ");

  // With all records in each step, and the set itself to evaluate.
  write_array("long_x.npy", {std::ssize(repeated_y), 2}, repeated_x);
  write_array("long_y.npy", {std::ssize(repeated_y)}, repeated_y);
  const auto measured = [&](const std::string& run, const std::string& x, const std::string& y,
                            const std::string& more) {
    trained(
        2, run,
        fmt::format("--data.train {0}/{1} --data.train_labels {0}/{2} --data.test {0}/{1} --data.test_labels "
                    "{0}/{2} --model.layers \"dense(3)\" --train.global_batch 1000 {3}",
                    directory_.path().string(), x, y, more));
    return evaluation(run);
  };
  const nlohmann::json weighed =
      measured("weighed", "x.npy", "y.npy",
               fmt::format("--data.train_weights {0} --data.test_weights {0}", directory_ / "some.npy"));
  const nlohmann::json repeated = measured("repeated", "long_x.npy", "long_y.npy", "");
  for (const char* measure : {"loss", "accuracy"})
    EXPECT_NEAR(weighed[measure].get<double>(), repeated[measure].get<double>(), 1e-5) << measure;
}

TEST_F(Targets, WeightsThatDoNotFitTheArraysAreRefused) {
  std::vector<Scalar> weights(kRows, 1);
  const std::string flags = arrays("y.npy") + "--data.train_weights " + (directory_ / "");
  weights[41] = -2;
  write_array("negative.npy", {kRows}, weights);
  expect_refused(kExitData, flags + "negative.npy",
                 {"negative.npy', record 41: found weight -2, expected a number of 0"});
  write_array("few.npy", {kRows / 2}, std::vector<Scalar>(kRows / 2, 1));
  expect_refused(kExitData, flags + "few.npy",
                 {"300 records", "few.npy' has 150 weights", "data.train_weights"});
  expect_refused(kExitData, flags + "x.npy",
                 {"x.npy' has 2 numbers for each record, expected one, its weight"});
  write("t.csv", mails("1", "1"));
  expect_refused(kExitConfig,
                 table("t.csv") +
                     "--data.label kind --data.train_weights w.npy --model.layers "
                     "\"dense(2)\"",
                 {"data.train_weights has no effect with format 'csv'", "give data.weight instead"});
}

TEST_F(Targets, ClassWeightsAreWeightsOfTheRecordsOfTheClasses) {
  const std::string none = "0.6666666666666666";  // 300 / (2 * 225); that of spam is 300 / (2 * 75)
  write("t.csv", mails(none, "2"));
  const std::string base =
      fmt::format("--data.train {} --data.chunk_kib 1 --data.label kind ", directory_ / "t.csv") +
      "--model.layers \"dense(8) tanh dense(2)\" ";
  const std::string bare = base + "--data.ignore w ";
  const std::string column = trained(2, "column", base + "--data.weight w");
  const std::string balanced = trained(3, "balanced", bare + "--train.class_weights balanced");
  EXPECT_TRUE(balanced == column);
  EXPECT_TRUE(trained(1, "table", bare + "--train.class_weights \"spam: 2,ham: " + none + "\"") == column);
  EXPECT_TRUE(trained(1, "numbers", bare + "--train.class_weights \"0: " + none + ",1: 2\"") == column);
  EXPECT_FALSE(trained(1, "plain", bare) == column);
  expect_same_bytes("both", table("t.csv") +
                                "--data.label kind --data.weight w --train.class_weights balanced "
                                "--model.layers \"dense(8) tanh dense(2)\" ");
  // Yes or no in one output.
  const std::string one = "--train.loss binary_cross_entropy --model.layers \"dense(8) tanh dense(1)\" ";
  EXPECT_TRUE(trained(2, "one", bare + one + "--train.class_weights balanced") ==
              trained(1, "one_column", base + one + "--data.weight w"));
}

// As with a column of weights in the set that is evaluated.
TEST_F(Targets, ClassWeightsCountInAnEvaluationWhereThatIsAskedFor) {
  write("t.csv", mails("0.6666666666666666", "2"));
  const std::string base = fmt::format(
      "--data.train {0} --data.test {0} --data.label kind --model.layers "
      "\"dense(8) tanh dense(2)\" --train.class_weights balanced ",
      directory_ / "t.csv");
  trained(2, "plain", base + "--data.ignore w");
  trained(2, "asked", base + "--data.ignore w --eval.class_weights true");
  const nlohmann::json plain = evaluation("plain");
  const nlohmann::json asked = evaluation("asked");
  EXPECT_EQ(plain["samples"], 300);
  EXPECT_NE(plain["loss"], asked["loss"]);
  const nlohmann::json later =
      evaluate(2, fmt::format("--model {} --eval.class_weights true", directory_ / "plain"));
  EXPECT_EQ(later["test"]["samples"], 300);
  EXPECT_NEAR(later["test"]["loss"].get<double>(), asked["loss"].get<double>(), 1e-6);
  EXPECT_FALSE(later.contains("validation")) << "it has classes that are counted in the training data";
}

TEST_F(Targets, ClassWeightsThatCannotBeAreRefusedOnce) {
  write("t.csv", mails("1", "1"));
  const std::string base = table("t.csv") + "--data.label kind --data.ignore w --train.class_weights ";
  const std::string two = " --model.layers \"dense(2)\"";
  expect_refused(kExitConfig, base + "\"ham: 1,spma: 2\"" + two,
                 {"names the class 'spma'", "did you mean 'spam'?"});
  expect_refused(kExitConfig, base + "\"spam: 2\"" + two, {"no weight for the class 'ham'"});
  expect_refused(kExitConfig, base + "balance" + two, {"expected \"balanced\"", "found 'balance'"});
  expect_refused(kExitData, base + "balanced --model.layers \"dense(3)\"",
                 {"no training record of '", "is of class 2"});
  // The one record of a class is held back: the class is not learned, and the others are balanced.
  write("one.csv", mails("1", "1") + "99,2,rare,1\n");
  const ProcessResult rare = succeeded(train(
      2, "rare",
      fmt::format("--data.train {} --data.validation \"time(a, 0.01)\" --data.label kind --data.ignore w "
                  "--model.layers \"dense(3)\" --train.class_weights balanced",
                  directory_ / "one.csv")));
  expect_parts(rare.errors, {"no training record of '", "is of class 'rare', so it is not learned"});
  write("g.csv", gaps());
  expect_refused(kExitConfig,
                 table("g.csv") +
                     "--data.label u,v --train.loss mean_squared_error --model.layers "
                     "\"dense(2)\" --train.class_weights balanced",
                 {"refused: train.class_weights with a loss on numbers"});
}

TEST_F(Targets, MissingOnesOfSeveralGiveTheSameBytesAnywhere) {
  write("g.csv", gaps());
  const std::string base = table("g.csv") + "--data.label u,v --train.loss mean_squared_error ";
  expect_same_bytes("gaps", base + "--model.layers \"dense(8) tanh dense(2)\" ");
  EXPECT_GT(evaluation("gapsload")["r2"].get<double>(), 0.1);
  // The rank that reads the first records alone sees a gap, and has not all of those that lack a target.
  write("few.csv", gaps(1000));
  const std::string few = fmt::format(
      "--data.train {} --data.chunk_kib 1 --data.label u,v --train.loss mean_squared_error "
      "--model.layers \"dense(8) tanh dense(2)\" ",
      directory_ / "few.csv");
  EXPECT_TRUE(trained(3, "few3", few) == trained(1, "few", few));
  for (const std::string strategy : {"local_sgd", "parameter_server"}) {
    const std::string own =
        base + "--model.layers \"dense(8) tanh dense(2)\" --distribute.strategy " + strategy + " ";
    EXPECT_TRUE(trained(2, strategy, own) == trained(3, strategy + "3", own)) << strategy;
  }
}

TEST_F(Targets, ARecordWithoutAnyIsBad) {
  write("g.csv", gaps() + "1,2,,\n");
  const std::string base =
      table("g.csv") + "--data.label u,v --train.loss mean_squared_error --model.layers \"dense(2)\" ";
  expect_refused(kExitData, base,
                 {"g.csv', line 302: found no label, expected at least one of 2", "data.on_bad_record"});
  const ProcessResult skipped = succeeded(train(2, "skipped", base + "--data.on_bad_record skip"));
  expect_parts(skipped.output + skipped.errors, {"1 of 301 records are bad"});
  expect_refused(kExitData,
                 table("g.csv") +
                     "--data.label u --data.ignore v --train.loss mean_squared_error "
                     "--model.layers \"dense(1)\"",
                 {"found '', expected a number"});
  write_array("x.npy", {2, 2}, {1, 2, 3, 4});
  const Scalar none = std::numeric_limits<Scalar>::quiet_NaN();
  write_array("y.npy", {2, 2}, {none, 2, none, none});
  expect_refused(kExitData,
                 fmt::format("--data.train {} --data.train_labels {} --train.loss "
                             "mean_squared_error --model.layers \"dense(2)\"",
                             directory_ / "x.npy", directory_ / "y.npy"),
                 {"y.npy', record 1: found no label, expected at least one of 2"});
}

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
      "--data.weight w --train.global_batch 48 --train.epochs 3 --data.audit true --data.validation "
      "'share(0.2)' ";
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
}  // namespace lockstep::test::targets_test
