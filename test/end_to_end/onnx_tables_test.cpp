// Models of tables answer in onnxruntime, from the columns as they come, what `trainer predict` answers: with
// texts that training has not seen, and with missing cells. Skips where onnxruntime is missing.
#include "lockstep/base/hash.h"
#include "lockstep/data/table/values/notation.h"
#include "support/numpy_files.h"
#include "support/trainer_runs.h"

namespace lockstep::test::onnx_tables_test {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kTrained = 120;
constexpr int kPredicted = 40;
constexpr int kBuckets = 5;

// What a model predicts, and how it is trained.
struct Case {
  std::string name;
  std::string labels;  // data.label, as TOML
  std::string layers;
  std::string loss;
  std::string columns = "";                          // more of data.columns, as TOML
  std::vector<std::vector<std::string>> names = {};  // of all classes, or of no and yes for each output
};

void PrintTo(const Case& tested, std::ostream* out) {
  *out << tested.name;
}

const std::vector<std::string> kKinds{"many", "one", "two"};

constexpr const char* kEntropy = "softmax_cross_entropy";
constexpr const char* kYesOrNo = "binary_cross_entropy";
constexpr const char* kSquares = "mean_squared_error";
constexpr const char* kScaled = ", 'price: log', 'size: standard'";

const std::vector<Case> kAll{
    {"classes", "['kind']", "dense(8) relu dense(3)", kEntropy, "", {kKinds}},
    {"embedding",
     "['kind']",
     "concat(slice(0, 20) | slice(20, 1) embedding(9, 3) | slice(21, 10)) dense(3)",
     kEntropy,
     ", 'city: index'",
     {kKinds}},
    {"scores", "['kind']", "dense(3)", "multiclass_hinge", "", {kKinds}},
    {"yes_or_no", "['late']", "dense(8) tanh dense(1)", kYesOrNo, "", {{"no", "yes"}}},
    {"several_answers",
     "['late', 'rich']",
     "dense(8) tanh dense(2)",
     kYesOrNo,
     "",
     {{"0", "1"}, {"no", "yes"}}},
    {"numbers", "['price', 'size']", "dense(8) tanh dense(2)", kSquares, kScaled},
    {"quantiles", "['price']", "dense(8) tanh dense(3)", "quantile", ", 'price: minmax'"},
    {"counts", "['size']", "dense(1)", "poisson"},
    {"ensemble_of_classes",
     "['kind']",
     "scale tabm(4) tabm_dense(8) relu tabm_heads(3)",
     kEntropy,
     ", 'age: bins(5)', 'debt: robust bins(4)', 'ratio: robust'",
     {kKinds}},
    {"ensemble_of_yes_or_no",
     "['late']",
     "tabm(3) tabm_dense(8) tanh tabm_dense(4) tabm_heads(1)",
     kYesOrNo,
     ", 'income: log bins(3, by=label, leaf=5)'",
     {{"no", "yes"}}},
    {"ensemble_of_numbers", "['price', 'size']", "periodic(3, frequencies=4) tabm(3) tabm_heads(2)", kSquares,
     kScaled},
    {"ensemble_of_counts", "['size']", "tabm(3) tabm_heads(1)", "poisson"}};

// A cell of each column for record `i`; nothing for a missing one. Every fifth record of a file to predict
// has texts that training has not seen.
struct Cells {
  std::optional<double> age, income, debt, ratio, share;
  std::optional<std::string> colour, city, token, code, when, at;
};

template <class T>
std::optional<T> unless_missing(bool missing, T value) {
  return missing ? std::nullopt : std::optional<T>(std::move(value));
}

Cells cells_of(int i, bool strange) {
  const char* const colours[] = {"red", "dark green", "blue"};
  const char* const cities[] = {"Oslo", "Köln", "Roma", "Lima", "a,b"};
  Cells cells;
  cells.age = unless_missing(i % 7 == 3, 20.0 + i % 41);
  cells.income = unless_missing(i % 11 == 5, 1000.0 * (i % 13) - 2500);
  cells.debt = unless_missing(i % 9 == 4, 0.125 * (i % 17));
  cells.ratio = 0.25 * (i % 5);
  cells.share = unless_missing(i % 8 == 1, 2.0 * (i % 10));
  cells.colour = unless_missing(i % 6 == 2, std::string(strange ? "pink" : colours[i % 3]));
  cells.city = unless_missing(i % 10 == 7, std::string(strange ? "Atlantis" : cities[i % 5]));
  cells.token = strange ? "new" : fmt::format("t{}", i % 19);
  cells.code = fmt::format("{:03}", strange ? 999 : i % 4);
  cells.when = unless_missing(
      i % 12 == 6, fmt::format("20{:02}-{:02}-{:02} {:02}:30", i % 30, i % 12 + 1, i % 28 + 1, i % 24));
  cells.at = fmt::format("{:02}:{:02}", i % 24, i % 60);
  return cells;
}

constexpr const char* kFeatures = "age,income,debt,ratio,share,colour,city,token,code,when,at";

std::string number_cell(const std::optional<double>& value, const char* unit = "") {
  return value ? fmt::format("{}{}", *value, unit) : "NA";
}

std::string text_cell(const std::optional<std::string>& value) {
  return value ? '"' + *value + '"' : "";
}

std::string record(const Cells& cells) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{}", number_cell(cells.age), number_cell(cells.income),
                     number_cell(cells.debt), number_cell(cells.ratio), number_cell(cells.share, " %"),
                     text_cell(cells.colour), text_cell(cells.city), text_cell(cells.token),
                     text_cell(cells.code), text_cell(cells.when), text_cell(cells.at));
}

// The same cells as the inputs of a graph.
class Inputs {
 public:
  void add(const Cells& cells) {
    for (const auto& [name, value] : {std::pair("age", cells.age),
                                      {"income", cells.income},
                                      {"debt", cells.debt},
                                      {"ratio", cells.ratio},
                                      {"share", cells.share}})
      put(name, "float32", value ? Json(*value) : Json());
    for (const auto& [name, value] :
         {std::pair("colour", cells.colour), {"city", cells.city}, {"code", cells.code}})
      put(name, "string", value.value_or(""));
    put("token", "int64", hash_text(cells.token.value_or("")) % kBuckets);
    day("when", cells.when, DateForm::kYmd);
    day("at", cells.at, DateForm::kTime);
  }
  std::string json() const { return json_.dump(); }

 private:
  void put(const char* name, const char* type, const Json& value) {
    json_[name]["type"] = type;
    json_[name]["values"].push_back(value);
  }
  void day(const char* name, const std::optional<std::string>& value, DateForm form) {
    put(name, "float64", value ? Json(*parse_date(*value, form)) : Json());
  }

  Json json_;
};

class OnnxTables : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (run_command(LOCKSTEP_PYTHON " -c 'import onnxruntime'").exit_code != 0) {
      GTEST_SKIP() << "onnxruntime is not in " << LOCKSTEP_PYTHON << ": see scripts/peers/python";
    }
  }

  void train(const Case& tested) {
    std::ofstream table(file("train.csv"));
    table << kFeatures << ",kind,late,rich,price,size\n";
    for (int i = 0; i < kTrained; ++i) {
      table << record(cells_of(i, false))
            << fmt::format(",{},{},{},{},{}\n",
                           i % 3 == 0   ? "one"
                           : i % 3 == 1 ? "two"
                                        : "many",
                           i % 4 < 2 ? "yes" : "no", i % 5 < 2 ? 1 : 0, 100.0 * (i % 23) + 1, i % 7);
    }
    table.close();
    write_file_atomically(
        file("run.toml"),
        fmt::format("[data]\ntrain = \"{}\"\nlabel = {}\nignore = {}\ncolumns = ['income: log', 'debt: "
                    "minmax', 'ratio: none', 'age: constant(30)', 'token: categorical hash({})',\n  'share: "
                    "number(suffix=\"%\")', 'when: date(ymd, day, day_of_year, year, month, weekday, hour)', "
                    "'at: date(time, hour)'{}]\n"
                    "[model]\nlayers = \"{}\"\n"
                    "[train]\nloss = \"{}\"\noptimizer = \"adam\"\nlr = 0.02\nepochs = 4\nglobal_batch = "
                    "20\nreplicas = 2\n{}\n",
                    file("train.csv"), tested.labels, unused(tested), kBuckets, tested.columns, tested.layers,
                    tested.loss, tested.loss == "quantile" ? "quantiles = [0.1, 0.5, 0.9]" : ""));
    run(fmt::format("--config {} --run.dir {}", file("run.toml"), file("run")));
  }

  void run(const std::string& command) { succeed(command); }

  std::string file(const std::string& name) const { return directory_ / name; }

 private:
  // The columns of labels that are not asked for.
  static std::string unused(const Case& tested) {
    std::string names;
    for (const char* label : {"kind", "late", "rich", "price", "size"}) {
      if (tested.labels.find(fmt::format("'{}'", label)) == std::string::npos)
        names += fmt::format("'{}', ", label);
    }
    return "[" + names + "]";
  }

  TemporaryDirectory directory_;
};

// The names that follow from what a prediction says of the outputs: probabilities, or scores of classes.
std::vector<std::string> labels_of(const std::vector<float>& predicted,
                                   const std::vector<std::vector<std::string>>& names) {
  std::vector<std::string> labels;
  if (names.size() == 1 && names[0].size() > 2) {
    const auto count = std::ssize(names[0]);
    for (auto row = predicted.begin(); row != predicted.end(); row += count)
      labels.push_back(names[0].at(static_cast<std::size_t>(std::max_element(row, row + count) - row)));
    return labels;
  }
  for (std::size_t i = 0; i < predicted.size(); ++i)
    labels.push_back(names.at(i % names.size()).at(predicted[i] > 0.5F ? 1 : 0));
  return labels;
}

// Of no and yes the probabilities of yes, which is what a file of numbers has.
std::vector<float> every_second(const std::vector<float>& values) {
  std::vector<float> kept;
  for (std::size_t i = 1; i < values.size(); i += 2) kept.push_back(values[i]);
  return kept;
}

TEST_P(OnnxTables, AnswerWhatPredictDoes) {
  ASSERT_NO_FATAL_FAILURE(train(GetParam()));
  std::ofstream table(file("new.csv"));
  table << kFeatures << "\n";
  Inputs inputs;
  for (int i = 0; i < kPredicted; ++i) {
    const Cells cells = cells_of(3 * i + 1, i % 5 == 0);
    table << record(cells) << "\n";
    inputs.add(cells);
  }
  table.close();
  write_file_atomically(file("inputs.json"), inputs.json());
  ASSERT_NO_FATAL_FAILURE(run(fmt::format("predict --model {} --input {} --output {}", file("run"),
                                          file("new.csv"), file("predictions.npy"))));
  ASSERT_NO_FATAL_FAILURE(
      run(fmt::format("export --model {} --format onnx --output {}", file("run"), file("m.onnx"))));
  succeeded(run_command(fmt::format("{} {}/end_to_end/run_onnx_table.py {} {} {}", LOCKSTEP_PYTHON,
                                    LOCKSTEP_TEST_DATA, file("m.onnx"), file("inputs.json"),
                                    file("answers.json"))));

  const auto answers = parse_json<nlohmann::json>(read_file(file("answers.json")));
  const std::vector<float> predicted = floats_in_npy(read_file(file("predictions.npy")));
  const char* const name = answers.contains("probabilities") ? "probabilities"
                           : answers.contains("predictions") ? "predictions"
                                                             : "outputs";
  auto found = answers[name].get<std::vector<float>>();
  if (GetParam().name.ends_with("yes_or_no")) found = every_second(found);
  ASSERT_EQ(found.size(), predicted.size());
  // What is small among large numbers has their rounding.
  float scale = 1;
  for (const float value : predicted) scale = std::max(scale, std::abs(value));
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], predicted[i], 1e-5F * scale) << "number " << i;
  ASSERT_EQ(answers.contains("label"), !GetParam().names.empty());
  if (!answers.contains("label")) return;
  EXPECT_EQ(answers["label"].get<std::vector<std::string>>(), labels_of(predicted, GetParam().names));
}

INSTANTIATE_TEST_SUITE_P(All, OnnxTables, testing::ValuesIn(kAll),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lockstep::test::onnx_tables_test
