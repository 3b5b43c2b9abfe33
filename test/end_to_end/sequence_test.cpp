// Sequences through the real executable: arrays of positions and channels, with lengths and padding.
#include "lockstep/base/random.h"
#include "lockstep/math/kernels.h"
#include "support/numpy_files.h"
#include "support/trainer_runs.h"

namespace lockstep::test::sequence_test {
namespace {

constexpr Index kRecords = 60;
constexpr Index kPositions = 6;
constexpr Index kChannels = 3;

class Sequences : public TrainerRuns {
 protected:
  // Features whose padding is `padding`; their lengths; the class of each record, whether its first channel
  // is above 0 in the mean; and the class of each position, likewise, which `padding_class` follows.
  void write_data(float padding = 0, std::int32_t padding_class = 0) const {
    RandomStream random({.seed = 3, .purpose = Purpose::kSynthetic});
    std::vector<float> features;
    std::vector<std::int32_t> lengths;
    std::vector<std::int32_t> classes;
    std::vector<std::int32_t> of_positions;
    std::vector<float> numbers;
    for (Index record = 0; record < kRecords; ++record) {
      const auto length = 1 + static_cast<Index>(random.below(kPositions));
      double sum = 0;
      for (Index position = 0; position < kPositions; ++position) {
        const bool counts = position < length;
        for (Index channel = 0; channel < kChannels; ++channel) {
          const Scalar value = random.normal();
          if (channel == 0 && counts) sum += static_cast<double>(value);
          if (channel == 0) of_positions.push_back(counts ? (value > 0 ? 1 : 0) : padding_class);
          if (channel == 0) numbers.push_back(counts ? 2 * value - 1 : padding);
          features.push_back(counts ? value : padding);
        }
      }
      lengths.push_back(static_cast<std::int32_t>(length));
      classes.push_back(sum > 0 ? 1 : 0);
    }
    write("x", npy_content("<f4", {kRecords, kPositions, kChannels}, bytes_of(features)));
    write_integers("lengths", {kRecords}, lengths);
    write_integers("y", {kRecords}, classes);
    write_integers("each", {kRecords, kPositions}, of_positions);
    write("numbers", npy_content("<f4", {kRecords, kPositions}, bytes_of(numbers)));
  }
  void write(const std::string& name, const std::string& content) const {
    TrainerRuns::write(name + ".npy", content);
  }
  void write_integers(const std::string& name, const std::vector<Index>& sizes,
                      const std::vector<std::int32_t>& values) const {
    write(name, npy_content("<i4", sizes, bytes_of(values)));
  }
  std::string path(const std::string& name) const { return TrainerRuns::path(name + ".npy"); }

  std::string config(const std::string& layers, const std::string& labels, bool lengths = true) const {
    configure(fmt::format(
        "[run]\nprogress = \"plain\"\n[data]\ntrain = \"{0}\"\ntrain_labels = \"{1}\"\nrecord = "
        "\"sequence\"\n"
        "{2}test = \"{0}\"\ntest_labels = \"{1}\"\n{3}"
        "[model]\nlayers = \"{4}\"\n"
        "[train]\nloss = \"softmax_cross_entropy\"\noptimizer = \"adam\"\nlr = 0.05\nepochs = 4\n"
        "global_batch = 20\nreplicas = 5\n[distribute]\nreduction = \"ordered\"\n",
        path("x"), path(labels), lengths ? fmt::format("train_lengths = \"{}\"\n", path("lengths")) : "",
        lengths ? fmt::format("test_lengths = \"{}\"\n", path("lengths")) : "", layers));
    return directory_ / "run.toml";
  }

  ProcessResult run(int ranks, const std::string& file, const std::string& flags = "") {
    run_ = directory_ / fmt::format("run{}", ++runs_);
    return run_trainer(ranks, fmt::format("--config {} --run.dir {} {}", file, run_, flags));
  }
  std::string model_of(const ProcessResult& result) const {
    succeeded(result);
    return read_file(run_ + "/model.safetensors");
  }

  // A number of 4 bytes of an array file whose numbers begin there.
  template <class Number>
  static Number number(const std::string& bytes, Index begin, Index i) {
    Number value = 0;
    std::copy_n(bytes.data() + begin + i * 4, 4, reinterpret_cast<char*>(&value));
    return value;
  }
  // The same number of each record, or of each position.
  template <class Number>
  std::vector<Number> numbers_of(const std::string& name, Index count) const {
    const std::string bytes = read_file(path(name));
    std::vector<Number> all;
    for (Index i = 0; i < count; ++i) all.push_back(number<Number>(bytes, std::ssize(bytes) - count * 4, i));
    return all;
  }

  std::string predict(const std::string& output, int ranks = 2) const {
    return TrainerRuns::predict(ranks, std::filesystem::path(run_).filename(), path("x"), output,
                                "--lengths " + path("lengths"));
  }
  nlohmann::json evaluate() const { return test::evaluate(2, "--model " + run_).at("test"); }

  // `always`: flags of all runs.
  void expect_same_bits(const std::string& layers, const std::string& labels,
                        const std::string& always = "") {
    write_data();
    const std::string file = config(layers, labels);
    const auto model = [&](int ranks, const std::string& flags = "") {
      return model_of(run(ranks, file, always + " " + flags));
    };
    const std::string expected = model(1);
    for (const auto& [ranks, flags] :
         {std::pair(2, ""), std::pair(3, ""), std::pair(1, "--train.threads 3 --data.prefetch 2"),
          std::pair(3, "--distribute.strategy zero1"), std::pair(2, "--distribute.strategy central_storage"),
          std::pair(3, "--distribute.strategy parameter_server"),
          std::pair(2, "--distribute.stages 2 --distribute.schedule gpipe")}) {
      EXPECT_EQ(model(ranks, flags) == expected, true) << ranks << " ranks " << flags;
    }
    // Numbers that no layer could hide, and classes that there are not.
    write_data(std::nanf(""), 99);
    EXPECT_EQ(model(2) == expected, true);
    // Killed, and gone on with on another number of ranks.
    const std::string killed = directory_ / "killed";
    const std::string arguments =
        fmt::format("--config {} --run.dir {} --checkpoint.every '2 steps' --checkpoint.wait true {}", file,
                    killed, always);
    EXPECT_NE(run_trainer(2, arguments + " --debug.fail_rank 1 --debug.fail_step 5").exit_code, 0);
    succeed(3, arguments);
    EXPECT_EQ(read_file(killed + "/model.safetensors") == expected, true);
  }

  std::string run_;
  int runs_ = 0;
};

TEST_F(Sequences, AClassForEachRecordHasTheSameBitsOnAnyRanksAndWithAnyPadding) {
  expect_same_bits("conv1d(4, 3, padding=causal) batch_norm(mode=sync) relu lstm(4) max_over_time dense(2)",
                   "y");
}

TEST_F(Sequences, AClassForEachPositionHasTheSameBitsOnAnyRanksAndWithAnyPadding) {
  expect_same_bits("gru(4) layer_norm dense(2)", "each");
}

TEST_F(Sequences, BatchesOfSimilarLengthsHaveTheSameBitsOnAnyRanksAndWithAnyPadding) {
  const std::string buckets = "--data.bucket_by_length 2";
  expect_same_bits("conv1d(6, 2, padding=same) relu dense(16) gru(4) dense(2)", "each",
                   buckets + " --data.audit true");
  write_data();
  const std::string file = config("gru(4) dense(2)", "each");
  EXPECT_EQ(model_of(run(1, file)) != model_of(run(1, file, buckets)), true);
  for (const std::string command : {"plan --config ", "--config "}) {
    const ProcessResult result =
        succeed(1, fmt::format("{}{} {} --run.dir {}", command, file, buckets, directory_ / "said"));
    expect_parts(result.output, {"padding up to the longest record of a batch: ",
                                 " % (drawn from the first epoch); ", " % without data.bucket_by_length"});
  }
}

TEST_F(Sequences, ATransformerHasTheSameBitsOnAnyRanksAndWithAnyPadding) {
  expect_same_bits(
      "dense(8) positions(learned) transformer(1, 2, causal=true, dropout=0.1) layer_norm dense(2)", "each");
}

// Records are texts of ids; the output layer has the weight of the embedding, which is in another stage.
TEST_F(Sequences, AGptOfIdsHasTheSameBitsOnAnyRanks) {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> next;
  for (Index record = 0; record < kRecords; ++record) {
    for (Index position = 0; position <= kPositions; ++position) {
      const auto id = static_cast<std::int32_t>((record + position * (1 + record % 3)) % 9);
      if (position < kPositions) ids.push_back(id);
      if (position > 0) next.push_back(id);
    }
  }
  write_integers("x", {kRecords, kPositions}, ids);
  write_integers("next", {kRecords, kPositions}, next);
  const std::string file = config(
      "embedding(9, 8) positions(learned) transformer(2, 2, causal=true) layer_norm dense(9, bias=false, "
      "tie=0)",
      "next", false);
  const std::string expected = model_of(run(1, file));
  for (const auto& [ranks, flags] :
       {std::pair(2, "--train.threads 2"), std::pair(3, "--distribute.strategy zero1"),
        std::pair(2, "--distribute.stages 2"), std::pair(3, "--distribute.stages 3")}) {
    EXPECT_EQ(model_of(run(ranks, file, flags)) == expected, true) << ranks << " ranks " << flags;
  }
  if (bf16_support() != Bf16Support::kNone)
    succeeded(run(2, file, "--train.precision bf16 --debug.emulate_bf16 true --train.epochs 1"));
}

// A position counts once, whatever the length of its record.
TEST_F(Sequences, AnEvaluationIsTheMeanOverThePositionsThatCount) {
  write_data();
  const std::string file = config("dense(3) tanh dense(2)", "each");
  succeeded(run(2, file));
  std::istringstream rows(predict("predicted.csv"));
  std::string line;
  std::getline(rows, line);
  EXPECT_EQ(line, "row,record,position,prediction,p_0,p_1");
  const auto lengths = numbers_of<std::int32_t>("lengths", kRecords);
  const auto classes = numbers_of<std::int32_t>("each", kRecords * kPositions);
  double loss = 0;
  double right = 0;
  Index counted = 0;
  for (; std::getline(rows, line); ++counted) {
    std::istringstream cells(line);
    std::vector<double> values;
    for (std::string cell; std::getline(cells, cell, ',');) values.push_back(std::stod(cell));
    ASSERT_EQ(values.size(), 6U);
    EXPECT_EQ(values[0], counted);
    const auto record = static_cast<Index>(values[1]);
    const auto position = static_cast<Index>(values[2]);
    EXPECT_LT(position, at(lengths, record));
    const int truth = at(classes, record * kPositions + position);
    loss -= std::log(values[4 + static_cast<std::size_t>(truth)]);
    right += values[3] == truth ? 1 : 0;
  }
  EXPECT_EQ(counted, std::accumulate(lengths.begin(), lengths.end(), Index{0}));
  const auto test = evaluate();
  EXPECT_NEAR(test.at("loss").get<double>(), loss / static_cast<double>(counted), 1e-5);
  EXPECT_NEAR(test.at("accuracy").get<double>(), right / static_cast<double>(counted), 1e-6);
}

// All measures are of the positions that count, whatever stands in the padding.
TEST_F(Sequences, ANumberForEachPositionIsMeasuredAndPredictedByPosition) {
  write_data(std::nanf(""));
  const std::string file = config("conv1d(3, 3, padding=same) tanh dense(1)", "numbers");
  const std::string flags = "--train.loss mean_squared_error";
  const std::string expected = model_of(run(1, file, flags));
  EXPECT_EQ(model_of(run(2, file, flags)) == expected, true);
  const std::string array = predict("p.npy");
  expect_parts(array, {"(60, 6, 1)"});
  const Index count = kRecords * kPositions;
  const std::vector<float> truth = numbers_of<float>("numbers", count);
  std::vector<std::pair<double, double>> pairs;
  std::string lines;
  for (Index i = 0; i < count; ++i) {
    const auto predicted = number<float>(array, std::ssize(array) - count * 4, i);
    EXPECT_EQ(std::isnan(predicted), std::isnan(at(truth, i))) << i;
    if (std::isnan(predicted)) continue;
    lines += fmt::format("{{\"row\":{},\"record\":{},\"position\":{},\"prediction\":{}}}\n", pairs.size(),
                         i / kPositions, i % kPositions, predicted);
    pairs.emplace_back(at(truth, i), predicted);
  }
  EXPECT_EQ(predict("p.jsonl", 1), lines);
  double mean = 0;
  for (const auto& [target, _] : pairs) mean += target / static_cast<double>(pairs.size());
  double off = 0;
  double squares = 0;
  double spread = 0;
  for (const auto& [target, predicted] : pairs) {
    off += std::abs(target - predicted);
    squares += (target - predicted) * (target - predicted);
    spread += (target - mean) * (target - mean);
  }
  const auto test = evaluate();
  EXPECT_EQ(test.at("positions"), pairs.size());
  EXPECT_NEAR(test.at("loss").get<double>(), squares / static_cast<double>(pairs.size()), 1e-5);
  EXPECT_NEAR(test.at("mean_absolute_error").get<double>(), off / static_cast<double>(pairs.size()), 1e-5);
  EXPECT_NEAR(test.at("r2").get<double>(), 1 - squares / spread, 1e-5);
  const auto worst = parse_json<nlohmann::json>(read_file(run_ + "/evaluation.json")).at("worst").at(0);
  const auto place = worst.at("record").get<Index>() * kPositions + worst.at("position").get<Index>();
  EXPECT_NEAR(std::stod(worst.at("target").get<std::string>()), at(truth, place), 1e-3);
  expect_failed(run_trainer(1, fmt::format("importance --model {}", run_)), 2,
                {"one number of a sequence says nothing by itself"});
}

// As CrossEntropyLoss(weight=...) of PyTorch, and with the temperature that predict applies, too.
TEST_F(Sequences, APositionWeighsWhatItsClassDoes) {
  write_data(std::nanf(""), 99);
  const std::string file = config("gru(3) dense(2)", "each");
  const std::string flags =
      "--train.class_weights '0: 1,1: 3' --eval.class_weights true --train.calibrate temperature "
      "--data.validation 'share(0.3)' --eval.metrics auc";
  const std::string expected = model_of(run(1, file, flags));
  EXPECT_EQ(model_of(run(3, file, flags)) == expected, true);
  EXPECT_EQ(model_of(run(2, file, flags)) == expected, true);
  const std::string array = predict("p.npy");
  const Index count = kRecords * kPositions;
  const std::vector<std::int32_t> truth = numbers_of<std::int32_t>("each", count);
  double loss = 0;
  double right = 0;
  double weight = 0;
  for (Index i = 0; i < count; ++i) {
    if (at(truth, i) == 99) continue;
    const auto p = number<float>(array, std::ssize(array) - count * 8, 2 * i + at(truth, i));
    const double mine = at(truth, i) == 1 ? 3 : 1;
    loss -= mine * std::log(static_cast<double>(p));
    right += p > 0.5F ? mine : 0;
    weight += mine;
  }
  const auto test = evaluate();
  EXPECT_NEAR(test.at("loss").get<double>(), loss / weight, 1e-5);
  EXPECT_NEAR(test.at("accuracy").get<double>(), right / weight, 1e-6);
}

TEST_F(Sequences, ATrainingSetWithoutAPositionThatCountsIsAnError) {
  write_data();
  write_integers("lengths", {kRecords}, std::vector<std::int32_t>(kRecords, 3));
  write_integers("each", {kRecords, 3}, std::vector<std::int32_t>(kRecords * 3, 1));
  expect_failed(run(2, config("conv1d(4, 4) dense(2)", "each"),
                    "--data.test '' --data.test_labels '' --data.test_lengths ''"),
                3, {"x.npy' (training set): no position of its 60 samples counts", "shorter"});
}

TEST_F(Sequences, EachPositionHasALineInThePredictionsOfCrossValidation) {
  write_data();
  const std::string file = config("dense(3) tanh dense(2)", "each");
  const std::string folds = directory_ / "folds";
  succeed(1, fmt::format("cv --config {} --run.dir {} --folds 3 --data.test '' --data.test_labels '' "
                         "--data.test_lengths ''",
                         file, folds));
  std::ifstream rows(folds + "/predictions.csv");
  std::string line;
  std::getline(rows, line);
  EXPECT_EQ(line, "row,fold,record,position,prediction,p_0,p_1");
  const auto lengths = numbers_of<std::int32_t>("lengths", kRecords);
  Index count = 0;
  Index record = 0;
  Index position = -1;
  for (; std::getline(rows, line); ++count) {
    Index row = -1;
    if (++position == at(lengths, record)) ++record, position = 0;
    Index found_record = -1;
    Index found_position = -1;
    Index prediction = -1;
    double no = -1;
    double yes = -1;
    const int read = std::sscanf(line.c_str(), "%td,%*d,%td,%td,%td,%lf,%lf", &row, &found_record,
                                 &found_position, &prediction, &no, &yes);
    EXPECT_EQ(row, count);
    EXPECT_EQ(found_record, record);
    EXPECT_EQ(found_position, position);
    EXPECT_EQ(read, 6) << line;
    EXPECT_EQ(prediction, yes > no ? 1 : 0);
    EXPECT_NEAR(no + yes, 1, 1e-6);
  }
  EXPECT_EQ(count, std::accumulate(lengths.begin(), lengths.end(), Index{0}));
}

// A model that sees each position alone learns the same where padding is known by its class. One record has
// none.
TEST_F(Sequences, PositionsWithoutALabelDoNotCount) {
  write_data(0, -100);
  const std::string layers = "dense(3) tanh dense(2)";
  succeeded(run(2, config(layers, "each")));
  const nlohmann::json expected = evaluate();
  const std::string file = config(layers, "each", false);
  expect_failed(run(1, file), 3, {"each.npy', record", "found label -100", "train.ignore_label = -100"});
  succeeded(run(2, file, "--train.ignore_label -100"));
  const nlohmann::json found = evaluate();
  for (const char* name : {"loss", "accuracy"})
    EXPECT_NEAR(found.at(name).get<double>(), expected.at(name).get<double>(), 1e-5) << name;
  EXPECT_EQ(found.at("positions"), expected.at("positions"));
  expect_failed(run(1, config("flatten dense(2)", "y", false), "--train.ignore_label -100"), 2,
                {"train.ignore_label without a class at each position"});
}

TEST_F(Sequences, AnIdThatAnEmbeddingLacksIsNamedWithItsRecord) {
  std::vector<std::int32_t> ids(kRecords * kPositions, 4);
  write_integers("y", {kRecords}, std::vector<std::int32_t>(kRecords, 1));
  ids[17 * kPositions + 2] = 5;
  write_integers("x", {kRecords, kPositions}, ids);
  const std::string file = config("embedding(5, 3) gru(2, last=true) dense(2)", "y", false);
  expect_failed(run(2, file), 3, {"x.npy', record 17: found 5 (number 2", "from 0 to 4", "embedding"});
}

TEST_F(Sequences, PredictTakesTheLengthsOfItsInput) {
  write_data();
  const std::string file = config("gru(4, last=true) dense(2)", "y");
  succeeded(run(1, file));
  const std::string expected = predict("predicted.csv", 1);
  const ProcessResult whole = run_trainer(
      1, fmt::format("predict --model {} --input {} --output {}", run_, path("x"), directory_ / "whole.csv"));
  EXPECT_NE(expected, read_file(directory_ / "whole.csv"));
  expect_parts(succeeded(whole).errors,
               {"trained with lengths", "--lengths is not given", "all 6 positions"});
  write_data(7);
  EXPECT_EQ(expected, predict("predicted.csv", 2));
}

// The lengths are those of the file beside, and neither the padding nor its class is seen.
TEST_F(Sequences, InitWritesAConfigThatTrains) {
  write_data(std::nanf(""), 99);
  const std::string file = directory_ / "first.toml";
  for (const auto& [labels, model] : {std::pair("y", "preset = \"gru_classifier\""),
                                      std::pair("each", "gru(64, bidirectional=true) dense(2)")}) {
    const ProcessResult init =
        succeed(1, fmt::format("init {} --label {} --output {} --overwrite", path("x"), path(labels), file));
    expect_parts(init.output, {"60 records, 6 positions of 3 features each", "--lengths " + path("lengths")});
    expect_parts(read_file(file), {"record = \"sequence\"", "lengths.npy", model, "clip_norm"});
    succeeded(run(2, file, "--train.epochs 1"));
  }
  write_data();
  std::remove(path("lengths").c_str());
  const std::string init = fmt::format("init {} --label {} --output - ", path("x"), path("y"));
  expect_parts(run_trainer(1, init).errors, {"6 positions of 3 numbers, give --data.record sequence"});
  expect_parts(run_trainer(1, init + "--data.record sequence").output,
               {"record = \"sequence\"", "preset = \"gru_classifier\""});
}

TEST_F(Sequences, WhatDoesNotFitIsRefused) {
  write_data();
  const auto expect_error = [&](const std::string& file, const std::vector<std::string>& parts) {
    for (const int ranks : {1, 2}) {
      const ProcessResult result = run(ranks, file);
      expect_failed(result, std::clamp(result.exit_code, kExitConfig, kExitData), parts);
    }
  };
  expect_error(config("flatten dense(2)", "y"),
               {"layer 0 'flatten' sees all positions", "lengths", "mean_over_time"});
  expect_error(config("dense(2)", "y"), {"6 positions of 2", "one for each position"});
  expect_error(config("dense(6) attention(4) dense(2)", "each"),
               {"layer 1 'attention(4)'", "4 heads do not divide the 6 channels"});
  expect_error(config("mean_over_time dense(2)", "each"), {"the labels in", "6 columns"});
  expect_error(config("as_sequence(6) mean_over_time dense(2)", "y"), {"it is a sequence already"});
  expect_failed(run(2, config("mean_over_time dense(2)", "y", false), "--data.bucket_by_length 3"), 2,
                {"refused: data.bucket_by_length without data.train_lengths; ",
                 "as for records that are no sequences"});
  expect_failed(run(2, config("mean_over_time dense(2)", "y"), "--data.bucket_by_length=-1"), 2);
  expect_failed(run(2, config("mean_over_time dense(2)", "y"), "--data.test_lengths ''"), 2,
                {"data.train_lengths is set", "x.npy' has no lengths", "or for none"});
  write("pairs", npy_content("<f4", {kRecords, kPositions, 2}, bytes_of(std::vector<float>(720, 1))));
  expect_failed(run(2, config("dense(4)", "pairs"), "--train.loss quantile --train.quantiles 0.1,0.9"), 2,
                {"train.loss 'quantile' cannot leave out targets"});
  std::vector<std::int32_t> lengths(kRecords, 3);
  lengths[7] = 0;
  write_integers("lengths", {kRecords}, lengths);
  expect_error(config("mean_over_time dense(2)", "y"),
               {"lengths.npy', record 7: found length 0, expected a whole number from 1 to 6"});
  lengths[7] = 7;
  write_integers("lengths", {kRecords}, lengths);
  expect_error(config("mean_over_time dense(2)", "y"), {"record 7: found length 7"});
  lengths.pop_back();
  write_integers("lengths", {kRecords - 1}, lengths);
  expect_error(config("mean_over_time dense(2)", "y"), {"60 records", "59 lengths"});
}

}  // namespace
}  // namespace lockstep::test::sequence_test
