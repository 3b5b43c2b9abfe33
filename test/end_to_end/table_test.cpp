// Tables through the real executable: looked at, trained on, evaluated and predicted from.
#include "lockstep/base/random.h"
#include "support/trainer_runs.h"

namespace lockstep::test::table_test {
namespace {

class Table : public TrainerRuns {
 protected:
  // So many people whose income follows from age, hours and education.
  static std::string people(Index rows, std::uint64_t seed) {
    RandomStream random({.seed = seed, .purpose = Purpose::kSynthetic});
    std::string text;
    for (Index row = 0; row < rows; ++row) {
      const Index age = 17 + random.below(70);
      const Index school = random.below(3);
      const double hours = 40 + 10 * double{random.normal()};
      const double score = static_cast<double>(age - 50) / 15 + (hours - 40) / 10 + (school == 2 ? 1.5 : -1);
      text += fmt::format(
          "{},{},{},{}\n", age,
          std::array{"school", "\"college, \"\"some\"\"\"", "masters"}[static_cast<std::size_t>(school)],
          random.below(20) == 0 ? "?" : fmt::format("{:.2f}", hours),
          score + double{random.normal()} > 0 ? ">50K" : "<=50K");
    }
    return text;
  }

  void config(const std::string& data) const {
    configure(data +
              "\n[model]\nlayers = \"dense(8) relu dense(1)\"\n"
              "[train]\nloss = \"binary_cross_entropy\"\noptimizer = \"adam\"\nlr = 0.02\n"
              "epochs = 2\nglobal_batch = 48\nreplicas = 6\n[distribute]\nreduction = \"ordered\"\n");
  }

  std::string header_ = "age,education,hours,income\n";
  std::string train_ = write("train.csv", header_ + people(3000, 1));
  std::string test_ = write("test.csv", header_ + people(500, 2));
};

TEST_F(Table, LongAndStrangeNamesOfColumnsAreCutAndEscaped) {
  const std::string table =
      write("names.csv", fmt::format("age,\x1b[2Jevil,{:a>50000},income\n1,2,3,4\n5,6,7,8\n", "b"));
  const ProcessResult inspected = succeed(fmt::format("inspect {} --label income", table));
  EXPECT_LT(inspected.output.size(), 53'000U) << "whole in the proposed config alone";
  EXPECT_EQ(inspected.output.find('\x1b'), std::string::npos) << inspected.output;
}

TEST_F(Table, RecordsOfOtherFormatsAreInspectedWithTheirLabels) {
  const std::string sparse = write("s.libsvm", "1 1:2 3:5\n4 1:-4\n4 3:1\n1 1:8\n1 3:2\n");
  const ProcessResult inspected = succeed(fmt::format("inspect {} --json {}", sparse, directory_ / "s.json"));
  expect_parts(inspected.output,
               {"s.libsvm: 5 records of 3, format libsvm", "0           -4   1.2    3.91918    8",
                "the label: 2 different: '1' 60.0 %, '4' 40.0 %"});
  const auto json = json_in("s.json");
  EXPECT_EQ(json["records"], 5);
  EXPECT_NEAR(json["numbers"][2]["mean"], 1.6, 1e-12);
  EXPECT_EQ(json["numbers"][2]["max"], 5);
  EXPECT_NEAR(json["label"]["mean"], 2.2, 1e-12);
}

TEST_F(Table, WhatInspectWritesTrainsWithTheSameBitsOnAnyNumberOfRanks) {
  const ProcessResult inspected =
      succeed(fmt::format("inspect {} --label income --json {}", train_, directory_ / "i.json"));
  const auto json = json_in("i.json");
  EXPECT_EQ(run_trainer(fmt::format("inspect {} --label income --json -", train_)).output,
            read_file(directory_ / "i.json"));
  EXPECT_EQ(json["records"], 3000);
  EXPECT_EQ(json["columns"][1]["different"], 3);
  EXPECT_NE(inspected.output.find(json["config"].get<std::string>()), std::string::npos);
  config(json["config"].get<std::string>() + fmt::format("test = \"{}\"\nchunk_kib = 8\n", test_));
  for (const int ranks : {1, 2, 3}) {
    const std::string run = fmt::format("run{}", ranks);
    expect_parts(succeeded(train(ranks, run)).output,
                 {"age: number", "2..5  education: one-hot of 3 values", "label  income: 2 classes"});
    predict(ranks, run, test_, run + ".csv");
    for (const char* file : {"/model.safetensors", "/schema.json", ".csv"}) {
      EXPECT_EQ(read_file(directory_ / (run + file)), read_file(directory_ / (std::string("run1") + file)))
          << ranks << file;
    }
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run1/rejects.txt"));
  const auto summary = summary_of("run1");
  EXPECT_GT(summary["evaluation"]["accuracy"].get<double>(), 0.75);
}

TEST_F(Table, InitProposesAPresetForTablesAndWritesAllOfItsKeys) {
  const auto init = [&](const std::string& flags) {
    return succeed(fmt::format("init {} --label income --output {} --overwrite {}", train_,
                               directory_ / "run.toml", flags))
        .output;
  };
  expect_parts(init(""), {"or      with --preset tabular"});
  expect_no_parts(init("--preset tabular"), {"or      with"});
  expect_parts(read_file(directory_ / "run.toml"), {"scale = \"robust bins(", "preset = \"tabular\"",
                                                    "outputs = 1", "lr_multiplier = [\"0.*: 6\"]"});
  succeeded(train(2, "run", "--train.epochs 1"));
}

// Quantiles of a sample (of many chunks), edges by the label, an ensemble, sines of its own, and a rate for
// the first layer.
TEST_F(Table, BinsAndAnEnsembleHaveTheSameBitsOnAnyNumberOfRanks) {
  config(
      fmt::format("[data]\ntrain = \"{}\"\nlabel = \"income\"\nscale = \"robust bins(6)\"\nchunk_kib = 8\n"
                  "validation = 'share(0.1)'\ncolumns = [\"hours: robust bins(6, by=label)\"]\n",
                  train_));
  for (const int ranks : {1, 2, 3}) {
    const std::string run = fmt::format("run{}", ranks);
    const ProcessResult trained = succeeded(train(
        ranks, run,
        "--model.layers 'concat(slice(0, 7) periodic(2) | slice(7, 11)) scale tabm(3) tabm_dense(8) relu "
        "dropout(0.1) tabm_heads(1)' --train.lr_multiplier '1.*: 6'"));
    expect_parts(trained.output,
                 {"age: number, median ", "; 6 bins from 17 to 86", "; 6 bins by the label from "});
    for (const char* file : {"/model.safetensors", "/schema.json"}) {
      EXPECT_EQ(read_file(directory_ / (run + file)), read_file(directory_ / (std::string("run1") + file)))
          << ranks << file;
    }
  }
  predict(2, "run1", test_, "p.csv");
}

TEST_F(Table, TheSchemaOfTheRunIsAppliedUnchanged) {
  config(fmt::format("[data]\ntrain = \"{}\"\ntest = \"{}\"\nlabel = \"income\"\n", train_, test_));
  succeeded(train(1, "run"));
  const auto predict = [&](const std::string& input) {
    return run_trainer(2, fmt::format("predict --model {0}/run --input {1} --output {0}/p.csv --overwrite",
                                      directory_.path().string(), input));
  };
  const std::string one = write("one.csv", "age,education,hours\n30,school,40\n60,phd,50\n");
  expect_parts(succeeded(predict(one)).output,
               {"column 'education': 1 of 2 records have a category that the training data does not"});
  const std::string predictions = read_file(directory_ / "p.csv");
  // Other columns, in another order, packed by another separator: the same records.
  succeeded(predict(write("two.tsv", "hours\tid\teducation\tage\n40\tx\tschool\t30\n50\ty\tphd\t60\n")));
  EXPECT_EQ(read_file(directory_ / "p.csv"), predictions);
  expect_failed(predict(write("three.csv", "age,education,hrs\n30,school,40\n")), kExitData,
                {"three.csv", "no column 'hours'", "age, education, hrs"});
  // The statistics are those of the training data, whatever data.train is now.
  const std::string flags =
      fmt::format("eval --model {}/run --data.test {}", directory_.path().string(), test_);
  const ProcessResult evaluated = run_trainer(1, flags);
  const ProcessResult elsewhere = run_trainer(1, flags + " --data.train " + test_);
  EXPECT_EQ(evaluated.output.substr(evaluated.output.find("test:")),
            elsewhere.output.substr(elsewhere.output.find("test:")));
  // A run that was moved evaluates without the data that it was trained on.
  std::filesystem::rename(directory_ / "run", directory_ / "moved");
  std::filesystem::remove(train_);
  const ProcessResult moved = succeed(2, fmt::format("eval --model {} --data.test {}", path("moved"), test_));
  EXPECT_EQ(moved.output.substr(moved.output.find("test:")),
            evaluated.output.substr(evaluated.output.find("test:")));
  expect_parts(read_file(directory_ / "moved/config.toml"), {"format = \"csv\""});
  expect_failed(
      run_trainer(1, fmt::format("predict --model {0}/moved --input {0}/none.csv --output {0}/p.csv",
                                 directory_.path().string())),
      kExitData, {"--input names", "none.csv", "does not exist"});
}

TEST_F(Table, BadRecordsEndTheRunOrAreSkippedAndListed) {
  write("train.csv",
        header_ + people(1500, 1) + "30,school,4O,>50K\n30,school\n" + people(1500, 3) + "31,masters,38,\n");
  config(fmt::format("[data]\ntrain = \"{}\"\nlabel = \"income\"\nchunk_kib = 4\n", train_));
  for (const int ranks : {1, 3}) {
    const ProcessResult failed = ended_with(train(ranks, "failed"), kExitData);
    EXPECT_EQ(count_of(failed.errors, "error: "), 1) << failed.errors;
    expect_parts(failed.errors, {"train.csv', line 1,502, column 3 ('hours'): found '4O', expected a number",
                                 "data.on_bad_record"});
    EXPECT_FALSE(std::filesystem::exists(directory_ / "failed"));
  }
  for (const int ranks : {1, 3}) {
    const std::string run = fmt::format("run{}", ranks);
    expect_parts(succeeded(train(ranks, run, "--data.on_bad_record skip")).output,
                 {"3 of 3,003 records are bad", "rows ", "model.safetensors, schema.json, rejects.txt"});
    EXPECT_EQ(model(run), model("run1"));
  }
  const std::string rejects = read_file(directory_ / "run3/rejects.txt");
  EXPECT_EQ(rejects, read_file(directory_ / "run1/rejects.txt"));
  EXPECT_EQ(count_of(rejects, "\n"), 3);
  expect_parts(rejects, {"line 1,502, column 3", "line 1,503: found 2 fields, expected 4",
                         "line 3,004, column 4 ('income'): found '', expected a label"});
  expect_failed(train(2, "many", "--data.on_bad_record skip --data.max_bad_share 0.0005"), kExitData,
                {"3 of 3,003 records are bad", "data.max_bad_share", "line 1,502"});
}

TEST_F(Table, APredictionStandsInTheLineOfItsRecord) {
  config(fmt::format("[data]\ntrain = \"{}\"\nlabel = \"income\"\nchunk_kib = 1\n", train_));
  succeeded(train(2, "run"));
  const std::string good = people(700, 5);
  std::vector<std::string> records;
  for (std::size_t begin = 0; begin < good.size(); begin = records.back().size() + begin)
    records.push_back(good.substr(begin, good.find('\n', begin) + 1 - begin));
  std::string clean = header_;
  std::string dirty = header_;
  const auto bad = [](std::size_t i) { return i < 2 || i == 300 || i + 1 == 700; };
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!bad(i)) clean += records[i];
    dirty += bad(i) ? "30,school\n" : records[i];
  }
  const std::string skip = "--data.on_bad_record skip --data.max_bad_share 0.1";
  std::istringstream kept(predict(1, "run", write("clean.csv", clean), "clean_p.csv", skip));
  std::string line;
  std::getline(kept, line);
  std::string expected = line + "\n";
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!bad(i)) std::getline(kept, line);
    expected += fmt::format("{}{}\n", i, bad(i) ? ",,," : line.substr(line.find(',')));
  }
  for (const int ranks : {1, 3}) {
    EXPECT_EQ(predict(ranks, "run", write("dirty.csv", dirty), "dirty_p.csv", skip) == expected, true)
        << ranks;
  }
  const std::string array = predict(2, "run", path("dirty.csv"), "dirty_p.npy", skip);
  ASSERT_EQ(array.size(), 128 + 700 * sizeof(float));
  for (std::size_t i = 0; i < 700; ++i) {
    float value = 0;
    std::memcpy(&value, array.data() + 128 + i * sizeof value, sizeof value);
    EXPECT_EQ(std::isnan(value), bad(i)) << i;
  }
  succeed(fmt::format("export --model {0}/run --format npz --output {0}/m.npz", directory_.path().string()));
  EXPECT_EQ(read_file(directory_ / "m.npz.schema.json"), read_file(directory_ / "run/schema.json"));
}

TEST_F(Table, RecordsMayBeLongerThanWhatIsReadAtOnce) {
  std::string text = "note,x,income\n";
  for (Index row = 0; row < 90; ++row) {
    std::string note;
    for (Index line = 0; line < (row % 30 == 29 ? 3000 : 1); ++line) note.append("a,\n");
    text.append(fmt::format("\"{}\",{},{}\n", note, row, row % 2));
  }
  write("train.csv", text);
  config(fmt::format("[data]\ntrain = \"{}\"\nlabel = \"income\"\nchunk_kib = 1\n", train_));
  const std::string alone = trained(1, "run1");
  EXPECT_EQ(trained(2, "run2"), alone);
  EXPECT_EQ(trained(3, "run3"), alone);
}

TEST_F(Table, RecordsOfAClassThatTrainingLacksCanBeSkipped) {
  std::string known;
  std::string test;
  for (Index row = 0; row < 300; ++row)
    known += fmt::format("{},{}\n", row % 17, row % 2 == 0 ? "red" : "green");
  for (Index row = 0; row < 60; ++row)
    test += fmt::format("{},{}\n", row % 17,
                        std::array{"red", "green", "blue"}[static_cast<std::size_t>(row % 3)]);
  write("test.csv", "income,k\n" + test);
  config(fmt::format("[data]\ntrain = \"{}\"\nlabel = \"k\"\nchunk_kib = 1\n",
                     write("train.csv", "income,k\n" + known)));
  const std::string skip = " --data.on_bad_record skip --data.max_bad_share 0.5";
  for (const int ranks : {1, 2, 3}) {
    for (const char* const set : {"test", "validation"}) {
      SCOPED_TRACE(fmt::format("{}, {} ranks", set, ranks));
      const std::string run = fmt::format("{}{}", set, ranks);
      const std::string flags = fmt::format("--data.{} {}", set, directory_ / "test.csv");
      expect_failed(train(ranks, run + "-refused", flags), kExitData,
                    {"line 4, column 2 ('k'): found 'blue'", "data.on_bad_record = \"skip\""});
      expect_parts(succeeded(train(ranks, run, flags + skip)).output,
                   {"20 of 60 records are bad (33.3 %) and skipped", "(40 samples"});
      EXPECT_EQ(count_of(read_file(directory_ / (run + "/rejects.txt")), "found 'blue'"), 20);
    }
  }
  const ProcessResult eval = succeed(
      fmt::format("eval --model {} --data.test {}{}", directory_ / "test1", directory_ / "test.csv", skip));
  expect_parts(eval.output, {"test: 40 samples"});
}

TEST_F(Table, NamesOfColumnsMayHaveLineBreaks) {
  for (const std::string end : {"\n", "\r\n"}) {
    std::string text = "rooms,\"size" + end + "(m2)\",\"is" + end + "dear\"" + end;
    for (Index row = 0; row < 60; ++row)
      text += fmt::format("{},{},{}{}", row % 5, 50 + row, row % 3 == 0 ? "yes" : "no", end);
    write("house-1.csv", text);
    const std::string house = write("house-2.csv", text);
    const ProcessResult inspected = run_trainer("inspect " + house + " --label 'is\ndear'");
    expect_parts(inspected.output,
                 {"60 records of 3 columns", "size\\x0a(m2)  numeric", "50 to 109, mean 79.5"});
    const std::string first = directory_ / fmt::format("init{}.toml", end.size());
    succeed(fmt::format("init {} --label 'is\ndear' --output {}", house, first));
    const std::string run = directory_ / fmt::format("house{}", end.size());
    succeed(fmt::format("--config {} --run.dir {} --train.epochs 1 --data.train '{}'", first, run,
                        directory_ / "house-*.csv"));
    const std::string other = write("other.csv", "\"size\n(m2)\",rooms\r\n70,3\r\n");
    const ProcessResult predicted =
        succeed(fmt::format("predict --model {} --input {} --output - --keep '\"size\n(m2)\"'", run, other));
    expect_parts(predicted.output, {"row,\"size\n(m2)\",prediction", "\n0,70,"});
  }
}

TEST_F(Table, WhatCannotBeATableIsRefusedOnce) {
  const auto error = [&](const std::string& text) {
    write("train.csv", text);
    config(fmt::format("[data]\ntrain = \"{}\"\nlabel = [\"income\"]\n", train_));
    const ProcessResult result = train(2, "failed");
    EXPECT_GE(result.exit_code, kExitConfig) << text;
    EXPECT_LE(result.exit_code, kExitData) << text;
    EXPECT_EQ(count_of(result.errors, "error: "), 1) << result.errors;
    return result.errors;
  };
  expect_parts(error(""), {"train.csv' is empty"});
  expect_parts(error("\n\n"), {"holds no records"});
  expect_parts(error(header_), {"no records, only a header"});
  expect_parts(error("a,b\n1,2\n"), {"data.label: there is no column 'income'"});
  expect_parts(
      error("a,income\n1,2\n\"3,4\n5,6\n"),
      {"line 3, column 1 ('a'): found a quote that opens a field, expected another one that closes it"});
  expect_parts(error("income\n1\n0\n"), {"no column", "is left as a feature"});
  expect_parts(error(std::string("\xff\xfe"
                                 "a\0,\0",
                                 6)),
               {"there is no column 'income'", "a"});
}

TEST_F(Table, FilesOfAnotherHeaderAreRefused) {
  write("part-1.csv", header_ + people(50, 1));
  write("part-2.csv", "education,age,hours,income\n" + people(50, 2));
  config(fmt::format("[data]\ntrain = \"{}\"\nlabel = \"income\"\n", directory_ / "part-*.csv"));
  expect_failed(train(2, "run"), kExitData,
                {"part-2.csv' has another header than '", "part-1.csv'",
                 "found 'education,age,hours,income', expected the same 4 columns"});
}

TEST_F(Table, SparseFilesTrainToo) {
  std::string text;
  RandomStream random({.seed = 5, .purpose = Purpose::kSynthetic});
  for (int row = 0; row < 600; ++row) {
    const Index place = 1 + random.below(500);
    text += fmt::format("{} {}:1 {}:{:.3f}\n", place > 250 ? 1 : -1, place, 501 + random.below(500),
                        double{random.normal()});
  }
  write("train.libsvm", text);
  const auto data = fmt::format("[data]\ntrain = \"{}\"\nchunk_kib = 1\n", directory_ / "train.libsvm");
  config(data);
  expect_failed(train(2, "refused"), kExitData,
                {"train.libsvm', line ", "found label -1", "label: categorical"});
  config(data + "columns = [\"label: categorical\"]\n");
  for (const int ranks : {1, 3}) {
    expect_parts(succeeded(train(ranks, fmt::format("run{}", ranks))).output,
                 {"features, counted from 1 in the file; at most 2 of them in a record"});
  }
  EXPECT_EQ(model("run1"), model("run3"));
  EXPECT_EQ(count_of(predict(2, "run1", path("train.libsvm"), "p.csv"), "\n"), 601);
}

}  // namespace
}  // namespace lockstep::test::table_test
