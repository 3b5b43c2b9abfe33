// Prediction: the same rows, in order, on any number of ranks and threads, and what the files hold.
#include "lockstep/train/evaluation/prediction.h"

#include "data/formats/dense_source.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/train/storage/prediction_file.h"
#include "support/error_text.h"
#include "support/loaded.h"
#include "support/numbered_source.h"
#include "support/ranks.h"
#include "support/special_files.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"

namespace lockstep::prediction_test {

using namespace test;

// Record `id` has the features {sin(id), cos(id), id / 100}; packed, it is its id.
class WaveSource final : public ComputedSource {
 public:
  explicit WaveSource(Index rows)
      : ComputedSource({.features = {{3}}, .name = "waves"}, even_chunks(rows, 100'000, false)) {}

 private:
  void compute(Index id, Index row, Matrix& x, Matrix& targets) const override {
    EXPECT_EQ(targets.cols(), 0);
    const auto angle = static_cast<Scalar>(id);
    x(row, 0) = std::sin(angle);
    x(row, 1) = std::cos(angle);
    x(row, 2) = angle / 100;
  }
};

struct Setting {
  explicit Setting(Index row_count) : source(row_count), weights(model.layout().size) {
    initialise({&model.layout(), weights.span()}, 1, 1);
  }

  // What rank 0 gets.
  std::vector<Scalar> predict(Communicator& comm, int threads, Index batch, Scalar temperature = 1) {
    ThreadTeam team(threads);
    Prediction prediction({.comm = comm,
                           .model = model,
                           .form = TargetKind::kClass,
                           .normaliser = normaliser,
                           .team = team,
                           .batch = batch,
                           .temperature = temperature},
                          source);
    std::vector<Scalar> all;
    prediction.run({.weights = weights.span(), .state = {}}, [&](const ConstMatrix& rows) {
      EXPECT_LE(rows.rows(), batch * threads);
      all.insert(all.end(), rows.data(), rows.data() + rows.size());
    });
    return all;
  }
  WaveSource source;
  Model model{{.layers = "dense(5) tanh dense(4)", .init = "xavier"}, {{3}}};
  Normaliser normaliser{{0.5}, {2.0}, {{3}}};
  AlignedBuffer<Scalar> weights;
};

// Labels and probabilities of all rows, one row at a time.
std::vector<Scalar> expected(Setting& setting) {
  Workspace workspace(setting.model, 1, ActivationRetention::kForEvaluation);
  const auto records = load(setting.source, everything(setting.source), {});
  std::vector<Scalar> all;
  for (Index id = 0; id < setting.source.info().rows; ++id) {
    std::vector<Scalar> features(3);
    Matrix x = as_matrix(std::span(features), 1, 3), none(nullptr, 1, 0);
    records->gather({&id, 1}, x, none);
    setting.normaliser.apply(x);
    const ConstMatrix outputs = workspace.forward({.values = {.weights = setting.weights.span(), .state = {}},
                                                   .x = as_matrix(std::span<const Scalar>(features), 1, 3),
                                                   .batch = {}});
    Index best = 0;
    double sum = 0;
    for (Index i = 0; i < 4; ++i) {
      if (outputs(0, i) > outputs(0, best)) best = i;
      sum += std::exp(static_cast<double>(outputs(0, i)));
    }
    all.push_back(static_cast<Scalar>(best));
    for (Index i = 0; i < 4; ++i)
      all.push_back(static_cast<Scalar>(std::exp(static_cast<double>(outputs(0, i))) / sum));
  }
  return all;
}

TEST(Prediction, GivesAllRowsInOrderWithTheSameBitsOnAnyRanksAndThreads) {
  for (const Index rows : {1, 7, 100}) {
    Setting setting(rows);
    const std::vector<Scalar> wanted = expected(setting);
    for (const Index batch : {1, 3, 8}) {
      std::vector<Scalar> alone;
      run_thread_ranks(1, [&](Communicator& comm) { alone = setting.predict(comm, 1, batch); });
      ASSERT_EQ(alone.size(), wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(alone[i], wanted[i], 1e-6) << i;
      test::on_ranks([&](Communicator& comm) {
        for (const int threads : {1, 2})
          EXPECT_EQ(setting.predict(comm, threads, batch), comm.rank() == 0 ? alone : std::vector<Scalar>());
      });
    }
  }
}

TEST(Prediction, DividesTheOutputsByTheTemperature) {
  Setting setting(7);
  std::vector<Scalar> plain;
  run_thread_ranks(1, [&](Communicator& comm) { plain = setting.predict(comm, 1, 3); });
  std::vector<Scalar> calibrated;
  run_thread_ranks(1, [&](Communicator& comm) { calibrated = setting.predict(comm, 1, 3, 2); });
  for (std::size_t i = 0; i < plain.size(); i += 5) {
    EXPECT_EQ(calibrated[i], plain[i]) << "the class stays";
    double sum = 0;
    for (std::size_t j = 1; j < 5; ++j) sum += std::sqrt(double{plain[i + j]});
    for (std::size_t j = 1; j < 5; ++j)
      EXPECT_NEAR(calibrated[i + j], std::sqrt(double{plain[i + j]}) / sum, 1e-6);
  }
}

std::vector<Scalar> predicted(const OutputForm& targets, const std::vector<Scalar>& outputs, Index columns) {
  const auto rows = std::ssize(outputs) / columns;
  const Index width = prediction_columns(targets, columns).size();
  std::vector<Scalar> result(static_cast<std::size_t>(rows * width));
  Matrix predictions = as_matrix(std::span(result), rows, width);
  predict_rows(targets, as_matrix(std::span<const Scalar>(outputs), rows, columns), predictions);
  return result;
}

// The cells of the table, in the units of the labels.
std::vector<double> told(const OutputForm& targets, const std::vector<Scalar>& outputs, Index columns,
                         const std::vector<LabelScale>& scales) {
  const std::vector<Scalar> rows = predicted(targets, outputs, columns);
  PredictionTable table(targets, columns, {}, {}, scales);
  const PredictedRows cells =
      table.convert(as_matrix(std::span<const Scalar>(rows), std::ssize(outputs) / columns, columns));
  return {cells.values().begin(), cells.values().end()};
}

TEST(PredictRows, GivesLabelsAndProbabilitiesOfEachKind) {
  const std::vector<Scalar> classes = predicted(TargetKind::kClass, {0, 1000, 0, 0, 0, 0}, 3);
  EXPECT_EQ(std::vector<Scalar>(classes.begin(), classes.begin() + 4), (std::vector<Scalar>{1, 0, 1, 0}));
  EXPECT_EQ(classes[4], 0);
  for (int i = 5; i < 8; ++i) EXPECT_FLOAT_EQ(at(classes, i), 1.F / 3);
  const std::vector<Scalar> binary = predicted(TargetKind::kBinary, {0, 2, -2, 1000, -1000, 0.5}, 2);
  const Scalar high = 1 / (1 + std::exp(-2.F));
  const std::vector<Scalar> labels_and_values{0, 1, 0.5, high, 0, 1, 1 - high, 1};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(binary[i], labels_and_values[i], 1e-6) << i;
  EXPECT_EQ(binary[10], 0);  // of -1000: not "not a number"
  EXPECT_EQ(predicted(TargetKind::kValue, {1, -2, 3, 4}, 2), (std::vector<Scalar>{1, -2, 3, 4}));
  const Scalar nan = std::numeric_limits<Scalar>::quiet_NaN();
  EXPECT_TRUE(std::isnan(predicted(TargetKind::kClass, {nan, 1}, 2)[2]));
}

TEST(PredictRows, TakesTheInverseOfTheLink) {
  const std::vector<Scalar> means = predicted({TargetKind::kValue, Link::kLog}, {0, 2, -3, 80}, 2);
  for (const auto& [i, output] :
       {std::pair{0, 0.0}, std::pair{1, 2.0}, std::pair{2, -3.0}, std::pair{3, 80.0}})
    EXPECT_NEAR(at(means, i) / std::exp(output), 1, 1e-6) << output;
  EXPECT_EQ(predicted({TargetKind::kBinary, Link::kIdentity}, {2, -3}, 1), (std::vector<Scalar>{1, 2, 0, -3}))
      << "margins";
  EXPECT_EQ(predicted({TargetKind::kClass, Link::kIdentity}, {2, -3, 4}, 3),
            (std::vector<Scalar>{2, 2, -3, 4}))
      << "scores";
}

TEST(PredictRows, GivesValuesInTheUnitsOfTheirLabels) {
  const std::vector<LabelScale> scales{{.shift = 10, .range = 4},
                                       {.shift = 1, .range = 2, .logarithm = true}};
  const std::vector<double> values = told(TargetKind::kValue, {0.5, 0.5, -1, -1}, 2, scales);
  EXPECT_EQ(values[0], 12);
  EXPECT_DOUBLE_EQ(values[1], std::exp(2.0) - 1);
  EXPECT_EQ(values[2], 6);
  EXPECT_DOUBLE_EQ(values[3], 1 - std::exp(1.0));
  OutputForm levels(TargetKind::kValue);
  levels.quantiles = {0.1, 0.9};
  EXPECT_EQ(told(levels, {0, 1, 0, 0}, 4, scales)[1], 14) << "both levels belong to the first target";
  OutputForm direction(TargetKind::kValue);
  direction.direction = true;
  EXPECT_EQ(told(direction, {3, 4}, 2, scales), (std::vector<double>{3, 4}));
}

// Seconds since 1970, a minute apart: single precision has steps of two minutes there.
TEST(PredictRows, LabelsFarFromZeroKeepTheirDigits) {
  const std::vector<LabelScale> scales{{.shift = 1'700'000'123, .range = 60}, {.shift = 100, .range = 60}};
  const std::vector<double> times = told(TargetKind::kValue, {0, 0, 1, 1}, 2, scales);
  EXPECT_EQ(times, (std::vector<double>{1'700'000'123, 100, 1'700'000'183, 160}));
  const PredictionTable table(TargetKind::kValue, 2, {}, {}, scales);
  EXPECT_EQ(table.columns()[0].digits, 17);
  EXPECT_EQ(table.columns()[1].digits, 0) << "as good in single precision";
  EXPECT_EQ((LabelScale{.shift = 2000, .range = 20}.digits()), 11);
  EXPECT_EQ((LabelScale{.shift = 20.7, .range = 1e-7, .logarithm = true}.digits()), 16);
  EXPECT_EQ((LabelScale{.shift = 20.7, .range = 1, .logarithm = true}.digits()), 0);
}

TEST(PredictRows, QuantilesThatCrossAreSortedAndCounted) {
  OutputForm levels(TargetKind::kValue);
  levels.quantiles = {0.1, 0.5, 0.9};
  const Scalar nan = std::numeric_limits<Scalar>::quiet_NaN();
  const std::vector<Scalar> outputs{1, 2, 3, 6, 5, 4, 3, 2, 1, 9, 8, 7, 1, 1, 2, 2, 2, 3, 5, nan, 1, 1, 2, 3};
  EXPECT_EQ(predicted(levels, outputs, 6).at(3), 4);
  EXPECT_EQ(predicted(levels, outputs, 6).at(6), 1) << "those of one target stay together";
  EXPECT_EQ(predicted(levels, outputs, 6).at(18), 5) << "what is not a number has no place in an order";
  std::vector<Scalar> rows = outputs;
  Matrix all = as_matrix(std::span(rows), 4, 6);
  EXPECT_EQ(sort_quantiles(levels, all), 2) << "records, and not targets";
  EXPECT_EQ(sort_quantiles(levels, all), 0);
  EXPECT_EQ(describe_crossed(1), "quantiles of 1 record crossed, and were sorted");
}

const std::shared_ptr<const std::vector<std::string>> kNoYes =
    std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"no, never", "\"yes\""});

class PredictionFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::vector<PredictionColumn>& columns,
                    const std::vector<std::vector<double>>& pieces) {
    const auto width = std::ssize(columns);
    Index rows = 0;
    for (const auto& piece : pieces) rows += std::ssize(piece) / width;
    const auto file =
        choose_prediction_file(name).make({.path = directory_ / name, .rows = rows, .columns = columns});
    for (const std::vector<double>& piece : pieces)
      file->append(PredictedRows(piece.data(), std::ssize(piece) / width, width));
    EXPECT_FALSE(std::filesystem::exists(directory_ / name)) << "half a file can be seen";
    file->finish();
    return read_file(directory_ / name);
  }
  TemporaryDirectory directory_;
};

TEST_F(PredictionFiles, CsvHasALineForEachRowInTheShortestDigits) {
  EXPECT_EQ(
      write("a.csv", {{.name = "prediction", .classes = kNoYes}, {.name = "a"}, {.name = "b"}},
            {{1, 0.25F, 0.75F, 0, 1, 0}, {1, 0.1F, 1e-20F}}),
      "row,prediction,a,b\n0,\"\"\"yes\"\"\",0.25,0.75\n1,\"no, never\",1,0\n2,\"\"\"yes\"\"\",0.1,1e-20\n");
  EXPECT_EQ(write("b.csv", {{.name = "a, b"}, {.name = "row"}, {.name = "x"}, {.name = "x"}}, {{1, 2, 3, 4}}),
            "row,\"a, b\",row.2,x,x.2\n0,1,2,3,4\n")
      << "each name once";
}

TEST_F(PredictionFiles, CsvNumbersAreReadAsTheSameBits) {
  std::vector<Scalar> values;
  for (Scalar value = 2e-38F; value < 1; value = value * 7.3F + 1e-37F) values.push_back(value);
  std::istringstream lines(
      write("a.csv", {{.name = "prediction"}}, {std::vector<double>(values.begin(), values.end())}));
  std::string line;
  std::getline(lines, line);
  for (const Scalar value : values) {
    std::getline(lines, line);
    EXPECT_EQ(std::stof(line.substr(line.find(',') + 1)), value);
  }
}

TEST_F(PredictionFiles, TextHasOneWordForWhatIsNotANumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<double>> values{{nan, -nan, infinity, -infinity}};
  EXPECT_EQ(write("a.csv", {{.name = "x"}}, values), "row,x\n0,nan\n1,nan\n2,inf\n3,-inf\n");
  EXPECT_EQ(
      write("a.jsonl", {{.name = "x"}}, values),
      "{\"row\":0,\"x\":null}\n{\"row\":1,\"x\":null}\n{\"row\":2,\"x\":null}\n{\"row\":3,\"x\":null}\n");
}

TEST_F(PredictionFiles, JsonLinesAreAnObjectForEachRow) {
  std::istringstream lines(write("a.jsonl", {{.name = "prediction", .classes = kNoYes}, {.name = "p \"\n"}},
                                 {{1, 0.25F, 0, 1e-20F}}));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, R"({"row":0,"prediction":"\"yes\"","p \"\n":0.25})");
  std::getline(lines, line);
  const auto json = parse_json<nlohmann::json>(line);
  EXPECT_EQ(json["prediction"], "no, never");
  EXPECT_EQ(json["p \"\n"].get<float>(), 1e-20F);
}

// Rows 1 and 4 were skipped.
TEST_F(PredictionFiles, RowsThatAreNotFiniteAreCountedAndSkippedOnesAreNot) {
  const Scalar nan = std::numeric_limits<Scalar>::quiet_NaN();
  const std::string path = directory_ / "a.csv";
  PredictionTable table(TargetKind::kValue, 2, {});
  const auto file = choose_prediction_file(path).make(
      {.path = path, .rows = 6, .columns = {table.columns().begin(), table.columns().end()}});
  const std::vector<Index> skipped{1, 4};
  PredictionLines lines(table, *file, skipped);
  const std::vector<Scalar> first{1, 2}, others{3, 4, 5, -nan, -1 / Scalar{0}, 6};
  lines.append(as_matrix(std::span(first), 1, 2));
  EXPECT_EQ(lines.bad_rows().count, 0);
  lines.append(as_matrix(std::span(others), 3, 2));
  lines.finish();
  EXPECT_EQ(read_file(path), "row,target0,target1\n0,1,2\n1,,\n2,3,4\n3,5,nan\n4,,\n5,-inf,6\n");
  EXPECT_EQ(lines.bad_rows().count, 2);
  EXPECT_EQ(lines.bad_rows().first, 3);
}

TEST_F(PredictionFiles, AStreamWithoutAnExtensionGetsText) {
  const std::string fifo = directory_ / "fifo";
  make_fifo(fifo);
  for (const std::string& name : {fifo, std::string("-"), std::string("/dev/stdout")})
    EXPECT_EQ(choose_prediction_file(name).name, "csv");
  make_fifo(fifo + ".npy");
  EXPECT_EQ(choose_prediction_file(fifo + ".npy").name, "npy");
}

TEST_F(PredictionFiles, NpyIsAHeaderOf64BytesAndTheProbabilities) {
  const std::string bytes =
      write("a.npy", {{.name = "prediction", .classes = kNoYes}, {.name = "a"}, {.name = "b"}},
            {{1, 0.25F, 0.75F, 0, 1, 0}, {1, 0.1F, 0.9F}});
  const std::string_view dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
  EXPECT_EQ(std::tuple(bytes.substr(0, 8), bytes[8] + 256 * bytes[9], bytes.substr(10, dictionary.size())),
            std::tuple(std::string("\x93NUMPY\x01\x00", 8), 118, dictionary));
  EXPECT_EQ(bytes[127], '\n');
  ASSERT_EQ(bytes.size(), 128U + 6 * sizeof(Scalar));
  std::vector<Scalar> values(6);
  std::memcpy(values.data(), bytes.data() + 128, 6 * sizeof(Scalar));
  EXPECT_EQ(values, (std::vector<Scalar>{0.25F, 0.75F, 1, 0, 0.1F, 0.9F}));
}

TEST_F(PredictionFiles, NumbersHaveTheDigitsOfTheirColumn) {
  const std::vector<PredictionColumn> columns{{.name = "t", .digits = 12}, {.name = "x"}};
  EXPECT_EQ(write("a.csv", columns, {{1700000123.4567, 0.1F}}), "row,t,x\n0,1700000123.46,0.1\n");
  EXPECT_EQ(write("b.csv", {{.name = "t", .digits = 17}}, {{1e9 + 0.1}}), "row,t\n0,1000000000.1\n");
  const std::string bytes = write("a.npy", columns, {{1700000123.4567, 0.25}});
  EXPECT_NE(bytes.find("'<f8'"), std::string::npos);
  double first = 0;
  std::memcpy(&first, bytes.data() + 128, sizeof first);
  EXPECT_EQ(first, 1700000123.4567);
  EXPECT_EQ(bytes.size(), 128U + 2 * sizeof(double));
}

TEST_F(PredictionFiles, AreChosenByTheirExtensionOrByName) {
  for (const PredictionFileEntry& entry : prediction_file_catalog()) {
    EXPECT_EQ(choose_prediction_file("some.where/x" + entry.extension).name, entry.name);
    EXPECT_EQ(choose_prediction_file("x.txt", entry.name).name, entry.name);
    EXPECT_EQ(choose_prediction_file("-", entry.name).name, entry.name);
    EXPECT_FALSE(entry.help.empty());
    EXPECT_THROW(entry.make({.path = directory_ / "no/such/file", .rows = 0, .columns = {}}), DataError);
  }
  EXPECT_EQ(choose_prediction_file("P.CSV").name, "csv");
  expect_parts(error_text<ConfigError>([] { choose_prediction_file("x.txt"); }),
               {"--output 'x.txt'", ".csv or .jsonl or .npy"});
  expect_parts(error_text<ConfigError>([] { choose_prediction_file("x.npy", "csv"); }),
               {"--format csv", "'x.npy'"});
  expect_parts(error_text<ConfigError>([] { choose_prediction_file("x", "cvs"); }), {"did you mean 'csv'?"});
}

}  // namespace lockstep::prediction_test
