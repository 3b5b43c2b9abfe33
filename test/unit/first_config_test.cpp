// The first config that trainer init chooses: its task, files beside a data file, sizes of a run, and flags.
#include "app/init/init.h"
#include "app/setup/catalogs.h"
#include "app/setup/experiment.h"
#include "app/setup/run_config.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/config/command_line.h"
#include "support/error_text.h"
#include "support/numpy_files.h"
#include "support/settings.h"
#include "support/temporary_directory.h"

namespace lockstep::test::first_config_test {

class FirstConfig : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(directory_ / name).parent_path());
    write_file_atomically(directory_ / name, text);
    return directory_ / name;
  }

  // A table of so many records whose label is what `label` gives for each.
  template <class Label>
  std::string table(Index records, const Label& label, const std::string& name = "t.csv") const {
    std::string text = "a,b,y\n";
    for (Index i = 0; i < records; ++i)
      text += fmt::format("{},{},{}\n", (i * 7) % 11, (i * 5) % 13, label(i));
    return write(name, text);
  }

  static InitData read(const std::string& path, const std::string& label = "y") {
    DataOptions options;
    if (!label.empty()) options.table.label = {label};
    return read_init_data(path, options);
  }

  static std::vector<CommentedSetting> settings_for(const std::string& path, const std::string& task = "",
                                                    const std::string& label = "y") {
    const InitData data = read(path, label);
    return choose_settings(data, choose_task(data, task), "t");
  }
  static std::string quoted(const std::string& text) { return fmt::format("\"{}\"", text); }
  TemporaryDirectory directory_;
};

std::string yes_or_no(Index i) {
  return i % 3 == 0 ? "yes" : "no";
}
Index remainder_of_ten(Index i) {
  return i % 10;
}
double third(Index i) {
  return static_cast<double>(i) / 3;
}

TEST_F(FirstConfig, TakesTextsAndFewWholeNumbersForClassesAndOtherNumbersForNumbers) {
  const auto two = settings_for(table(200, yes_or_no));
  EXPECT_EQ(value_of(two, "train.loss"), "\"binary_cross_entropy\"");
  EXPECT_EQ(value_of(two, "train.early_stopping_metric"), "\"auc\"");
  EXPECT_EQ(value_of(two, "train.weight_decay"), "1");
  EXPECT_EQ(value_of(two, "data.columns"), R"(["y: categorical"])");
  EXPECT_TRUE(value_of(two, "model.layers").ends_with("dense(1)\""));
  const auto ten = settings_for(table(200, remainder_of_ten));
  EXPECT_EQ(value_of(ten, "train.loss"), "\"softmax_cross_entropy\"");
  EXPECT_EQ(value_of(ten, "train.weight_decay"), "0.1");
  EXPECT_EQ(value_of(ten, "data.columns"), "") << "0 to 9 are classes as they are";
  EXPECT_TRUE(value_of(ten, "model.layers").ends_with("dense(10)\""));
  const auto numbers = settings_for(table(200, third));
  EXPECT_EQ(value_of(numbers, "train.loss"), "\"mean_squared_error\"");
  EXPECT_EQ(value_of(numbers, "train.weight_decay"), "0.1");
  EXPECT_EQ(value_of(numbers, "data.columns"), R"(["y: standard"])") << "a deviation far from 1";
  EXPECT_EQ(value_of(settings_for(table(30, remainder_of_ten)), "train.loss"), "\"mean_squared_error\"")
      << "ten values in thirty records";
}

// Several labels are yes or no only if each of them is 0 or 1 in every record.
// trainer inspect gives the same answer: by its table, and by the kind that its [data] section declares.
TEST_F(FirstConfig, AndInspectAgreeOnWhatTheLabelIs) {
  struct Label {
    Index records, different, first;
    bool classes;
  };
  for (const auto& [records, different, first, classes] :
       {Label{60, 20, 1, false}, Label{100, 20, 1, true}, Label{99, 20, 0, false}, Label{100, 20, 0, true},
        Label{60, 2, 7, true}, Label{210, 21, 1, false}, Label{15, 3, 1, true}, Label{14, 3, 1, false}}) {
    SCOPED_TRACE(fmt::format("{} of {} from {}", different, records, first));
    const std::string path = table(records, [&](Index i) { return first + i % different; });
    const InitData data = read(path);
    EXPECT_EQ(choose_task(data, "").kind != TaskKind::kNumbers, classes);
    EXPECT_NE(to_text(*data.table).find(classes ? "label, classes" : "label, numeric"), std::string::npos);
    const bool named = data_section(*data.table).find("y: categorical") != std::string::npos;
    EXPECT_EQ(named, classes && first > 0);
    EXPECT_EQ(value_of(settings_for(path), "data.columns").find("y: categorical") != std::string::npos,
              named);
  }
}

TEST_F(FirstConfig, TakesSeveralLabelsForYesOrNoIfTheyAreZeroAndOneAlone) {
  const auto loss = [this](const std::vector<double>& values, const std::string& task = "") {
    std::string text = "a,b,y,z\n";
    const auto count = std::ssize(values);
    for (Index i = 0; i < 200; ++i)
      text += fmt::format("{},{},{},{}\n", (i * 7) % 11, (i * 5) % 13, at(values, i % count),
                          at(values, i / 2 % count));
    DataOptions options;
    options.table.label = {"y", "z"};
    const InitData data = read_init_data(write("several.csv", text), options);
    const auto settings = choose_settings(data, choose_task(data, task), "t");
    EXPECT_TRUE(value_of(settings, "model.layers").ends_with("dense(2)\""));
    return value_of(settings, "train.loss");
  };
  const std::string yes_or_no = "\"binary_cross_entropy\"", numbers = "\"mean_squared_error\"";
  EXPECT_EQ(loss({0, 1}), yes_or_no);
  EXPECT_EQ(loss({0, 1}, "numbers"), numbers);
  EXPECT_EQ(loss({0, 1}, "binary"), yes_or_no);
  EXPECT_EQ(loss({0, 1, 0.5}), numbers) << "shares";
  EXPECT_EQ(loss({0, 1, 0.5}, "binary"), numbers);
  EXPECT_EQ(loss({0, 1, 2}), numbers);
  EXPECT_EQ(loss({-1, 0, 1}), numbers);
  EXPECT_EQ(loss({1, 2}), numbers);
  EXPECT_EQ(loss({0, -1}), numbers);
}

// A value far above the others, or far below them: 6 deviations of a label, 20 of a feature.
TEST_F(FirstConfig, TakesALossAndAScaleForOutliersOnEitherSide) {
  const auto chosen = [this](double of_label, double of_feature) {
    std::string text = "a,b,y\n";
    for (Index i = 0; i < 1000; ++i) {
      const double half = i % 2 == 0 ? 0.5 : -0.5;
      text +=
          fmt::format("{},{},{}\n", i == 500 ? of_feature : half, (i * 5) % 13, i == 500 ? of_label : half);
    }
    const auto settings = settings_for(write("far.csv", text));
    return value_of(settings, "train.loss") + value_of(settings, "data.scale");
  };
  const std::string usual = "\"mean_squared_error\"";
  for (const double sign : {1.0, -1.0}) {
    EXPECT_EQ(chosen(sign * 2.75, 0.5), usual) << sign;                // 5.3 deviations
    EXPECT_EQ(chosen(sign * 3.5, 0.5), "\"huber\"") << sign;           // 6.8
    EXPECT_EQ(chosen(0.25, sign * 10), usual) << sign;                 // 17
    EXPECT_EQ(chosen(0.25, sign * 15), usual + "\"robust\"") << sign;  // 22
  }
}

TEST_F(FirstConfig, ARareClassGetsItsWeight) {
  const auto weights = [this](Index each) {
    return value_of(settings_for(table(1100, [each](Index i) { return i % each == 0 ? "yes" : "no"; })),
                    "train.class_weights");
  };
  EXPECT_EQ(weights(22), "\"balanced\"");
  EXPECT_EQ(weights(12), "\"balanced\"") << "92 of 1,100";
  EXPECT_EQ(weights(11), "") << "10 to 1";
  EXPECT_EQ(weights(2), "");
  EXPECT_EQ(weights(500), "") << "three records say too little";
  EXPECT_EQ(value_of(settings_for(table(1100, third)), "train.class_weights"), "");
}

TEST_F(FirstConfig, TheTaskCanBeChosenWhereTheLabelsSuitIt) {
  const std::string ten = table(200, remainder_of_ten, "ten.csv"), two = table(200, yes_or_no, "two.csv");
  EXPECT_EQ(value_of(settings_for(ten, "numbers"), "train.loss"), "\"mean_squared_error\"");
  EXPECT_TRUE(value_of(settings_for(two, "classes"), "model.layers").ends_with("dense(2)\""));
  const auto error = [&](const std::string& path, const std::string& task) {
    return error_text<ConfigError>([&] { settings_for(path, task); });
  };
  expect_parts(error(ten, "binary"), {"--task binary", "10 classes", "expected two"});
  expect_parts(error(two, "numbers"), {"--task numbers", "no numbers, such as 'no'"});
  expect_parts(error(ten, "number"), {"unknown task 'number'; did you mean 'numbers'?"});
  expect_parts(error(ten, "images"), {"--task images", "height x width x channels"});
}

// Of each loss on data that it is for: the experiment of the first config can be made.
TEST_F(FirstConfig, SuitsEachLossThatTheTaskAllows) {
  std::string two_labels = "a,y,z\n", series = "day,y\n";
  for (Index i = 0; i < 90; ++i) {
    two_labels += fmt::format("{},{},{}\n", i * 7 % 11, 1 + i % 7, 2 + i % 5);
    series += fmt::format("2024-{:02}-{:02},{}\n", 1 + i / 28, 1 + i % 28, 400 + i * 7 % 11);
  }
  const std::string numbers = table(
      200, [](Index i) { return 900 + 7 * (i * 5 % 13); }, "numbers.csv");
  const std::string yes = table(200, yes_or_no, "yes.csv");
  std::map<std::string, std::string> found;  // layers, metrics and scales of loss and data
  const auto add = [&](const LossEntry& loss, const std::string& path, DataOptions options) {
    Config given;
    given.loss = {.loss = loss.name, .quantiles = {0.1, 0.5, 0.9}};
    given.flagged = {"train.loss"};
    if (loss.name == "quantile") given.flagged.insert("train.quantiles");
    const InitData data = read_init_data(path, options);
    const Task task = choose_task(data, "", loss.make(given.loss)->form());
    const auto settings = with_flags(choose_settings(data, task, "t"), given);
    make_experiment(load_training_config({}, {"first.toml", to_toml(settings, {})}, {}), alone());
    found[loss.name + (data.forecast ? " forecast" : "")] =
        fmt::format("{} {} {} {}", value_of(settings, "model.layers"), value_of(settings, "eval.metrics"),
                    value_of(settings, "data.columns"), value_of(settings, "data.window_scale"));
  };
  for (const LossEntry& loss : loss_catalog()) {
    SCOPED_TRACE(loss.name);
    const bool of_numbers = loss.make({.quantiles = {0.5}})->targets() == TargetKind::kValue;
    DataOptions options;
    options.table.label = {"y"};
    if (loss.name == "cosine_distance") options.table.label = {"y", "z"};
    add(loss,
        !of_numbers                      ? yes
        : loss.name == "cosine_distance" ? write("two.csv", two_labels)
                                         : numbers,
        options);
    if (!of_numbers || loss.name == "cosine_distance") continue;
    options.table.windows = {.time = "day", .window = 8, .horizon = 3};
    add(loss, write("series.csv", series), options);
  }
  for (const auto& [name, expected] : std::map<std::string, std::string>{
           {"quantile", "dense(16) relu dense(3) [pinball] [y: standard] "},
           {"poisson", "dense(16) relu dense(1) [mean_absolute_error, r2]  "},
           {"binary_hinge", "dense(16) relu dense(1) [auc, precision, recall] [y: categorical] "},
           {"softmax_focal", "dense(16) relu dense(2)  [y: categorical] "},
           {"quantile forecast", "dense(9, init=zero) [pinball] [y: standard] last"},
           {"gamma forecast", "batch_norm dense(3, init=zero) [mean_absolute_error, r2]  none"}}) {
    std::erase(found[name], '"');
    EXPECT_EQ(found[name], expected) << name;
  }
  const auto error = [&](const std::string& path, const std::string& loss) {
    return error_text<ConfigError>(
        [&] { choose_task(read(path), "", find_entry(loss_catalog(), "loss", loss).make({})->form()); });
  };
  expect_parts(error(yes, "huber"), {"--train.loss is a loss of numbers", "no numbers"});
  expect_parts(error(table(200, remainder_of_ten), "binary_focal"),
               {"--train.loss", "10 classes", "expected two"});
}

TEST_F(FirstConfig, RefusesALabelThatCannotBeLearned) {
  const auto error = [&](const std::string& path) {
    return error_text<DataError>([&] { settings_for(path); });
  };
  expect_parts(error(table(50, [](Index) { return "same"; })), {"label 'y' is 'same' in every record"});
  expect_parts(error(table(90, [](Index i) { return fmt::format("p{}", i); })),
               {"90 different texts", "the column to learn?"});
  expect_parts(error_text<ConfigError>([&] { read(table(9, third), "z"); }),
               {"no column 'z'", "columns: a, b, y"});
  expect_parts(error_text<ConfigError>([&] { read(table(9, third), ""); }),
               {"--label is missing", "a, b, y"});
}

TEST_F(FirstConfig, RefusesFilesThatHoldNoRecords) {
  const auto error = [&](const std::string& path) { return error_text<DataError>([&] { read(path); }); };
  table(9, third);
  expect_parts(error(directory_ / "tt.csv"), {"does not exist; did you mean '", "t.csv'?"});
  write("arrays/x.npy", "");
  expect_parts(error(directory_ / "arrays"), {"is a directory: name one data file", "x.npy"});
  expect_parts(error(write("empty.csv", "")), {"empty.csv' is empty"});
  expect_parts(error(write("head.csv", "a,b,y\n")), {"holds no records"});
  EXPECT_EQ(read(directory_ / "t*.csv").records, 9) << "a pattern";
  write("tables/train/one.csv", "a,y\n1,2\n3,4\n");
  write("tables/train/README", "of another project");
  for (const char* other : {"tables/train/two.csv", "tables/test/one.csv"}) write(other, "a,y\n1,2\n");
  const InitData directory = read(directory_ / "tables/train");
  EXPECT_EQ(directory.records, 3) << "all tables of a directory, and nothing else";
  EXPECT_EQ(directory.test, directory_ / "tables/test") << "the one beside it";
  expect_parts(error_text<DataError>([&] { settings_for(write("alone.csv", "y\n1\n0\n1\n0\n")); }),
               {"no column of '", "is left as a feature"});
}

// Batch, replicas, epochs, patience, rate and first layer with a validation set; what is held back without.
TEST_F(FirstConfig, SizesOfARunFollowTheNumberOfRecords) {
  using Case = std::tuple<Index, std::string, std::string>;
  const auto settings_of = [](Index records, const std::string& preset, bool held_back) {
    InitData data{.records = records, .features = {{9, 9, 1}}};
    data.label.values = {{"0", records}, {"1", records}, {"2", 1}};
    data.label.whole = true;
    data.label.numbers = {
        .count = records, .mean = 0.5, .squares = 0.25 * static_cast<double>(records), .max = 2};
    data.numbers.resize(81, {.count = 1, .squares = 1});
    if (!held_back) data.validation = "v.npy";
    const bool image = preset == "image";
    return choose_settings(data, choose_task(data, image ? "images" : "numbers"), "t", image ? "" : preset);
  };
  for (const auto& [records, preset, expected] :
       std::vector<Case>{{1, "", "1 1 100 34 0.003 flatten dense(16"},
                         {31, "", "8 4 100 34 0.003 flatten dense(16"},
                         {32, "", "16 8 100 34 0.003 flatten dense(16"},
                         {63, "", "16 8 100 34 0.003 flatten dense(16"},
                         {64, "", "32 8 100 34 0.003 flatten dense(16"},
                         {999, "", "32 8 100 34 0.003 flatten dense(16"},
                         {1000, "", "32 8 100 34 0.003 flatten dense(32"},
                         {1999, "", "32 8 80 27 0.003 flatten dense(32"},
                         {2000, "", "64 8 100 34 0.003 flatten dense(32"},
                         {9999, "", "64 8 32 11 0.003 flatten dense(32"},
                         {10'000, "", "64 8 32 11 0.005 flatten dense(64"},
                         {19'999, "", "64 8 16 6 0.005 flatten dense(64"},
                         {20'000, "", "256 8 64 22 0.005 flatten dense(64"},
                         {29'999, "", "256 8 43 15 0.005 flatten dense(64"},
                         {30'000, "", "256 8 43 15 0.005 flatten dense(128"},
                         {199'999, "", "256 8 7 5 0.005 flatten dense(128"},
                         {200'000, "", "512 8 13 5 0.005 flatten dense(128"},
                         {2'000'000, "", "512 8 5 5 0.005 flatten dense(128"},
                         {9999, "image", "32 8 13 5 0.05 conv2d(32, 3, padding=same"},
                         {10'000, "image", "128 8 51 17 0.05 conv2d(32, 3, padding=same"},
                         {2000, "tabular", "64 8 94 47 0.004 "},
                         {100, "tabular", "32 8 150 75 0.004 "},
                         {3000, "tabular_large", "64 8 128 64 0.004 "},
                         {3000, "wide_deep", "64 8 100 34 0.003 "}}) {
    const auto settings = settings_of(records, preset, false);
    std::string found;
    for (const char* key :
         {"train.global_batch", "train.replicas", "train.epochs", "train.early_stopping", "train.lr"})
      found += value_of(settings, key).substr(0, value_of(settings, key).find(" epochs")) + " ";
    std::erase(found, '"');
    const std::string layers = value_of(settings, "model.layers");
    found += layers.substr(std::min<std::size_t>(1, layers.size()), layers.find(')') - 1);
    EXPECT_EQ(found, expected) << records << " " << preset;
  }
  EXPECT_EQ(value_of(settings_for(table(3, third)), "train.early_stopping"), "")
      << "too few to hold any back";
  for (const auto& [records, preset, expected] : std::vector<Case>{{49, "", ""},
                                                                   {50, "", "share(0.2)"},
                                                                   {999, "", "share(0.2)"},
                                                                   {1000, "", "share(0.1)"},
                                                                   {299, "tabular", "share(0.2)"},
                                                                   {300, "tabular_large", "share(0.1)"}})
    EXPECT_EQ(value_of(settings_of(records, preset, true), "data.validation"),
              expected.empty() ? "" : quoted(expected))
        << records << " " << preset;
}

TEST_F(FirstConfig, RecordsWithoutTheirLabelAreSkipped) {
  const auto settings = settings_for(table(200, [](Index i) { return i % 10 == 0 ? "" : yes_or_no(i); }));
  EXPECT_EQ(value_of(settings, "data.on_bad_record"), "\"skip\"");
  EXPECT_EQ(value_of(settings, "data.max_bad_share"), "0.100");
}

TEST_F(FirstConfig, IgnoresTheNumbersOfRows) {
  std::string text = "row,a,y\n";
  for (Index i = 0; i < 150; ++i) text += fmt::format("{},{},{}\n", 10 + i, i * 7 % 149, yes_or_no(i));
  const auto settings = settings_for(write("rows.csv", text));
  EXPECT_EQ(value_of(settings, "data.ignore"), R"(["row"])");
  EXPECT_EQ(value_of(settings, "data.numeric"), R"(["a"])");
}

TEST_F(FirstConfig, FindsTheTestSetBesideByItsName) {
  const std::string train = table(60, yes_or_no, "sales_train.csv");
  EXPECT_EQ(value_of(settings_for(train), "data.test"), "");
  const std::string test = table(20, yes_or_no, "sales_test.csv");
  EXPECT_EQ(value_of(settings_for(train), "data.test"), quoted(test));
  const std::string dev = table(20, yes_or_no, "sales_dev.csv");
  EXPECT_EQ(value_of(settings_for(train), "data.validation"), quoted(dev));
  EXPECT_FALSE(read(table(60, yes_or_no, "a_train.csv")).test);
  write("a_test.csv", "a,b\n1,2\n");
  const InitData contest = read(directory_ / "a_train.csv");
  EXPECT_FALSE(contest.test);
  EXPECT_EQ(contest.input, directory_ / "a_test.csv");
  const std::string array = npy_content("<f4", {1}, bytes_of<float>({1}));
  write_npz(directory_ / "a.npz", {{"x_train", array}, {"y_train", array}, {"lengths_train", array}}, true);
  const std::string archive = directory_ / "a.npz:";
  EXPECT_EQ(find_labels(archive + "x_train"), archive + "y_train");
  EXPECT_EQ(find_lengths(archive + "x_train"), archive + "lengths_train");
  EXPECT_FALSE(find_labels(archive + "x_test") || find_labels(archive + "y_train"));
  table(9, third, "stest.csv");
  EXPECT_FALSE(find_beside(table(9, third, "strain.csv"), kTestWords)) << "'train' is no word of it";
}

// One of the deviation, the mean on either side of 0, or the tail is far from 1.
TEST_F(FirstConfig, ScalesALabelThatIsLearnedSlowlyAsItIs) {
  const auto scale = [this](double mean, double deviation, double most = 0) {
    const auto label = [&](Index i) {
      return mean + (i % 2 == 0 ? deviation : -deviation) + (i == 7 ? most : 0);
    };
    return value_of(
        settings_for(table(
            200,
            [&](Index i) { return fmt::format("{:.6g}", label(i) + 1e-3 * static_cast<double>(i % 9)); })),
        "data.columns");
  };
  const std::string standard = R"(["y: standard"])";
  EXPECT_EQ(scale(0, 1), "");
  for (const double sign : {1.0, -1.0}) {
    EXPECT_EQ(scale(sign * 2.7, 1), "");
    EXPECT_EQ(scale(sign * 3.3, 1), standard);
    EXPECT_EQ(scale(sign * 1000, 1), standard);
  }
  for (const double deviation : {0.25, 3.3}) EXPECT_EQ(scale(0, deviation), standard);
  for (const double deviation : {0.35, 2.7}) EXPECT_EQ(scale(0, deviation), "");
  EXPECT_EQ(scale(1, 1, 1000), R"(["y: log"])") << "a deviation above the mean, and none below 0";
  EXPECT_EQ(scale(0.9, 1, 1000), standard) << "some are below 0";
}

TEST_F(FirstConfig, FindsTheLabelsOfArraysAndScalesTheirFeatures) {
  std::vector<float> x;
  std::vector<std::int64_t> y;
  for (Index i = 0; i < 100; ++i) {
    x.insert(x.end(), {static_cast<float>(i % 7), static_cast<float>(1000 * (i % 5))});
    y.push_back(i % 4);
  }
  write("x_train.npy", npy_content("<f4", {100, 2}, bytes_of(x)));
  write("y_train.npy", npy_content("<i8", {100}, bytes_of(y)));
  const auto settings = settings_for(directory_ / "x_train.npy", "", "");
  EXPECT_EQ(value_of(settings, "data.train_labels"), quoted(directory_ / "y_train.npy"));
  EXPECT_EQ(value_of(settings, "data.mean"), "[2.95, 2000]");
  EXPECT_EQ(value_of(settings, "data.std"), "[2.012, 1414]");
  // One mean for features that differ by less than ten of their deviations, in their means too.
  const auto mean = [](double first, double second, double deviation) {
    InitData data{.records = 100, .features = {{3}}};
    data.label.numbers = {.count = 100, .mean = 1, .squares = 99, .max = 3};
    data.numbers = {{.count = 9, .mean = first, .squares = 9, .min = first, .max = first},
                    {.count = 9, .mean = second, .squares = 9 * deviation * deviation},
                    {.count = 9, .mean = 0}};  // the same number in every record
    return value_of(choose_settings(data, choose_task(data, "numbers"), "t"), "data.mean");
  };
  EXPECT_EQ(mean(99, 0, 1), "[33]");
  EXPECT_EQ(mean(101, 0, 1), "[101, 0, 0]");
  EXPECT_EQ(mean(0, -99, 1), "[-33]");
  EXPECT_EQ(mean(0, -101, 1), "[0, -101, 0]");
  EXPECT_EQ(mean(3, 0, 9), "[1]");
  EXPECT_EQ(mean(3, 0, 11), "[3, 0, 0]");
  EXPECT_TRUE(value_of(settings, "model.layers").ends_with("dense(4)\""));
  expect_parts(error_text<DataError>([&] { read(directory_ / "x_train.npy", "z_train.npy"); }),
               {"--label names 'z_train.npy', which does not exist"});
  std::filesystem::rename(directory_ / "y_train.npy", directory_ / "classes.npy");
  expect_parts(error_text<ConfigError>([&] { read(directory_ / "x_train.npy", ""); }),
               {"--label is missing"});
  EXPECT_EQ(read(directory_ / "x_train.npy", directory_ / "classes.npy").records, 100);
}

TEST_F(FirstConfig, TakesTheFieldsOfRecordsForFeaturesAndLabel) {
  std::string records;
  for (Index i = 0; i < 100; ++i)
    records += bytes_of<float>({static_cast<float>(i % 7)}) + "Oslo" +
               bytes_of<float>({static_cast<float>(i % 5)}) +
               bytes_of<std::int64_t>({static_cast<std::int64_t>(i % 4)});
  write("people.npy",
        npy_start("{'descr': [('age', '<f4'), ('city', '|S4'), ('pay', '<f4'), ('kind', '<i8')], "
                  "'fortran_order': False, 'shape': (100,), }") +
            records);
  const std::string file = directory_ / "people.npy";
  const InitData data = read(file, "kind");
  EXPECT_EQ(data.options.train, file + ":age+pay") << "the city is no number";
  EXPECT_EQ(data.options.train_labels, file + ":kind");
  EXPECT_EQ(data.records, 100);
  EXPECT_EQ(read(file + ":pay", "kind").options.train, file + ":pay") << "as the path says";
  expect_parts(error_text<ConfigError>([&] { read(file, "knd"); }),
               {"has no field of numbers 'knd'; did you mean 'kind'?", "age", "pay"});
  expect_parts(error_text<ConfigError>([&] { read(file, ""); }),
               {"--label is missing: name the field with the labels, one of"});
}

TEST_F(FirstConfig, AnImageGetsConvolutionsUntilItIsSmall) {
  InitData data{.records = 20'000, .features = {{32, 32, 3}}};
  data.label.values = {{"0", 10'000}, {"1", 5000}, {"2", 5000}};
  data.label.whole = true;
  data.label.numbers = {.count = 20'000, .min = 0, .max = 2};
  data.numbers.assign(3072, {.count = 1, .mean = 0.5, .squares = 0.25});
  const Task task = choose_task(data, "");
  EXPECT_TRUE(task.images);
  EXPECT_EQ(
      value_of(choose_settings(data, task, "t"), "model.layers"),
      "\"conv2d(32, 3, padding=same) relu maxpool(2) conv2d(64, 3, padding=same) relu maxpool(2) flatten "
      "dense(128) relu dropout(0.4) dense(3)\"");
  data.features = {{3, 32, 32}};
  EXPECT_FALSE(choose_task(data, "").images) << "channels come last";
}

TEST_F(FirstConfig, AColumnThatAloneGivesTheLabelAwayIsADoubt) {
  const auto told = [](Index i) { return (i * 7) % 11 > 5 ? "high" : "low"; };
  const InitData leaking = read(table(400, told));
  ASSERT_EQ(leaking.doubts.size(), 2U);
  expect_parts(leaking.doubts[0], {"257 of 400 records (64.2 %) are the same as an earlier one"});
  expect_parts(leaking.doubts[1], {"column 'a'", "it alone gives the label 'y' away"});
  const auto untold = [](Index i) { return i % 3 == 0 ? "high" : "low"; };
  EXPECT_EQ(read(table(400, untold)).doubts.size(), 1U) << "of repeated records";
}

TEST_F(FirstConfig, WhatIsSuspiciousIsActedOnOrSaid) {
  std::string text = "a,b,y\n";
  const auto add = [&text](Index i) {
    text += fmt::format("{},{},{}\n", i % 10 == 0 ? -999 : i % 47,
                        i % 50 == 0  ? "oslo"
                        : i % 2 == 0 ? "Oslo"
                                     : "Voss",
                        i % 3 == 0   ? "yes"
                        : i % 3 == 1 ? "no"
                                     : "N");
  };
  for (Index i = 0; i < 300; ++i) add(i);
  for (Index i = 0; i < 5; ++i) add(i);
  const InitData data = read(write("t.csv", text));
  expect_parts(
      fmt::format("{}", fmt::join(data.doubts, "\n")),
      {"column 'a': 31 of 305 numbers are -999", "which are 0 to 46: taken for a missing value",
       "column 'b': 'Oslo', 'oslo' differ in case or blanks only", "yes and no are written in 3 ways",
       "44 of 305 records (14.4 %) are the same as an earlier one"});
  const auto settings = choose_settings(data, choose_task(data, ""), "t");
  EXPECT_EQ(value_of(settings, "data.columns"), R"x(["a: missing(-999)", "y: categorical"])x");
  EXPECT_EQ(value_of(settings, "data.missing_values"), "");
  EXPECT_EQ(data.table->scan.columns[0].numbers.min, 0) << "the numbers that decide on scale and loss";
}

TEST_F(FirstConfig, ABadNumberAmongManyLabelsIsABadRecordWithALine) {
  for (const std::string bad : {"inf", "oops", "1e400"}) {
    const InitData data =
        read(table(300, [&bad](Index i) { return i == 37 ? bad : fmt::format("{:.3f}", third(i)); }));
    expect_parts(fmt::format("{}", fmt::join(data.doubts, "\n")),
                 {"label 'y': 1 record is left out (on_bad_record), the first '",
                  "t.csv', line 39, column 3 ('y')", "found '" + bad + "', expected a number"});
    const auto settings = choose_settings(data, choose_task(data, ""), "t");
    EXPECT_EQ(value_of(settings, "train.loss"), quoted("mean_squared_error"));
    EXPECT_EQ(value_of(settings, "data.on_bad_record"), quoted("skip"));
  }
}

TEST_F(FirstConfig, APresetForTablesBringsItsOwnDataAndTraining) {
  InitData data{.records = 20'000, .features = {{10}}};
  data.label.numbers = {.count = 20'000, .mean = 1e5, .squares = 2e18, .min = 0, .max = 1e8};
  data.table.emplace();
  data.table->columns = {{.name = "y", .kind = ColumnKind::kNumeric, .label = true, .scale = Scale::kNone}};
  data.table->guesses.resize(1);
  data.table->scan.columns.resize(1);
  data.table->scan.columns[0].numbers = data.label.numbers;
  data.options.table.label = {"y"};
  const Task task = choose_task(data, "");
  ASSERT_EQ(task.kind, TaskKind::kNumbers);
  const auto settings = choose_settings(data, task, "t", "tabular");
  EXPECT_EQ(value_of(settings, "data.scale"), quoted("robust bins(48, by=label)"));
  EXPECT_EQ(value_of(settings, "model.preset"), quoted("tabular"));
  EXPECT_EQ(value_of(settings, "model.outputs"), "1");
  EXPECT_EQ(value_of(settings, "model.layers"), "");
  EXPECT_EQ(value_of(settings, "train.optimizer"), quoted("adamw"));
  EXPECT_EQ(value_of(settings, "train.lr_multiplier"), R"(["0.*: 6"])");
  EXPECT_EQ(value_of(settings, "train.loss"), quoted("huber")) << "as without it";
  EXPECT_EQ(value_of(settings, "data.columns"), R"(["y: log"])") << "as without it";
  EXPECT_EQ(value_of(choose_settings(data, task, "t"), "data.scale"), "") << "without a preset";
  EXPECT_EQ(value_of(choose_settings(data, task, "t", "wide_deep"), "data.scale"), "");
  // Near 1 for a perceptron, but dropout would shake its mean.
  data.label.numbers = {.count = 20'000, .mean = 2, .squares = 7000, .min = 0, .max = 4};
  data.table->scan.columns[0].numbers = data.label.numbers;
  EXPECT_EQ(value_of(choose_settings(data, task, "t"), "data.columns"), "");
  EXPECT_EQ(value_of(choose_settings(data, task, "t", "tabular"), "data.columns"), R"(["y: standard"])");
  data.label.columns = 2;
  EXPECT_EQ(value_of(choose_settings(data, task, "t", "tabular"), "data.scale"), quoted("robust bins(48)"))
      << "a tree learns one label";
}

TEST_F(FirstConfig, APresetForTablesHasFewerBinsForManyColumns) {
  const auto scale = [](std::size_t numbers) {
    InitData data{.records = 2000};
    data.label = {.name = "y",
                  .columns = 1,
                  .values = {{"no", 1500}, {"yes", 500}},
                  .texts = 2000,
                  .can_be_named = true};
    data.table.emplace();
    data.table->columns.assign(numbers, {.name = "x", .kind = ColumnKind::kNumeric});
    data.table->columns.push_back({.name = "c", .kind = ColumnKind::kCategorical});
    data.table->columns.push_back({.name = "y", .kind = ColumnKind::kCategorical, .label = true});
    data.table->guesses.resize(numbers + 2);
    data.table->scan.columns.resize(numbers + 2);
    data.options.table.label = {"y"};
    const auto settings = choose_settings(data, choose_task(data, "classes"), "t", "tabular");
    EXPECT_EQ(value_of(settings, "train.early_stopping_metric"), quoted("loss"));
    return value_of(settings, "data.scale");
  };
  EXPECT_EQ(scale(0), quoted("robust bins(48, by=label)"));
  EXPECT_EQ(scale(4), quoted("robust bins(48, by=label)"));
  EXPECT_EQ(scale(16), quoted("robust bins(16, by=label)"));
  EXPECT_EQ(scale(200), quoted("robust bins(8, by=label)"));
}

TEST_F(FirstConfig, APresetForTablesLearnsDaysOfDatesOfSeveralYears) {
  const auto columns = [this](Index days, std::string_view preset) {
    std::string text = "when,a,y\n";
    for (Index i = 0; i < 200; ++i) {
      const std::chrono::sys_days day{std::chrono::days{20'000 + i * days / 200}};
      const std::chrono::year_month_day date{day};
      text += fmt::format("{:04}-{:02}-{:02},{},{}\n", static_cast<int>(date.year()),
                          static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), i * i % 97,
                          i % 3 == 0 ? "yes" : "no");
    }
    const InitData data = read(write("days.csv", text));
    return value_of(choose_settings(data, choose_task(data, ""), "t", preset), "data.columns");
  };
  expect_parts(columns(1000, "tabular"), {"when: date(ymd, day, day_of_year, year, weekday)"});
  expect_parts(columns(700, "tabular"), {"when: date(ymd, day, year, weekday)"});
  expect_parts(columns(1000, ""), {"when: date(ymd, day, year, weekday)"});
}

TEST_F(FirstConfig, FlagsStandForWhatTheyReplace) {
  const std::vector<std::string> arguments{"init",           "t.csv", "--train.steps", "7",
                                           "--model.preset", "mlp",   "--train.lr=0.5"};
  const Config given = load_config(parse_command_line(arguments, known_options()), {}, known_options());
  const auto settings = with_flags(settings_for(table(200, yes_or_no)), given);
  EXPECT_EQ(value_of(settings, "train.steps"), "7");
  EXPECT_EQ(value_of(settings, "train.epochs"), "");
  EXPECT_EQ(value_of(settings, "train.lr"), "0.5");
  EXPECT_EQ(value_of(settings, "model.preset"), "\"mlp\"");
  EXPECT_EQ(value_of(settings, "model.layers"), "");
  const Config read = load_config({}, {"t.toml", to_toml(settings, {"head"})}, known_options());
  EXPECT_EQ(read.train.steps, 7);
  EXPECT_EQ(read.model.preset, "mlp");
}

}  // namespace lockstep::test::first_config_test
