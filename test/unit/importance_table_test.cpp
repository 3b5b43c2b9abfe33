// The findings of trainer importance as they are printed and written.
#include "lockstep/report/tables/tables.h"

#include "lockstep/base/json.h"
#include "support/error_text.h"

namespace lockstep::importance_table_test {

ImportanceResult result(const std::string& measure) {
  return {.model = "runs/a",
          .set = "validation",
          .measure = measure,
          .importance = {.samples = 1234,
                         .baseline = 0.5,
                         .columns = {{.name = "size, in m", .losses = {0.5, 0.25, 0.75}},
                                     {.name = "colour", .losses = {0.125, -0.125, 0}}}}};
}

TEST(ImportanceTable, HasMeanAndDeviationOfTheRepeats) {
  EXPECT_EQ(to_text(result("accuracy")),
            "validation: 1,234 samples, accuracy 0.500000\n"
            "importance of a column: by how much the accuracy falls when its values are shuffled (mean of 3 "
            "repeats)\n"
            "column      importance  deviation\n"
            "size, in m    0.500000   0.204124\n"
            "colour        0.000000   0.102062\n");
  test::expect_parts(to_text(result("log_loss")), {"the log_loss rises when its values are shuffled"});
  const std::string csv = to_csv(result("accuracy"));
  EXPECT_TRUE(
      csv.starts_with("column,importance,deviation,repeat_1,repeat_2,repeat_3\n\"size, in m\",0.5,0.2041"))
      << csv;
  EXPECT_TRUE(csv.ends_with(",0.125,-0.125,0\n")) << csv;
  const auto json = parse_json<nlohmann::json>(to_json(result("log_loss")));
  EXPECT_EQ(json["samples"], 1234);
  EXPECT_EQ(json["baseline"], 0.5);
  EXPECT_EQ(json["smaller_is_better"], true);
  EXPECT_EQ(parse_json<nlohmann::json>(to_json(result("accuracy")))["smaller_is_better"], false);
  EXPECT_EQ(json["columns"][0]["importance"], 0.5);
  EXPECT_EQ(json["columns"][1]["repeats"][1], -0.125);
}

TEST(DependenceTable, HasAMeanForEachValueAndOutput) {
  DependenceResult result{.model = "runs/a",
                          .set = "test",
                          .samples = 5000,
                          .column = "size",
                          .outputs = {"probability of a,b", "probability of c"},
                          .grid = {{.text = "0.5", .features = {0}}, {.text = "red\nblue", .features = {1}}},
                          .means = {{0.25, 0.75}, {1.0 / 3, 2.0 / 3}}};
  EXPECT_EQ(to_csv(result),
            "size,\"probability of a,b\",probability of c\n"
            "0.5,0.25,0.75\n"
            "\"red\nblue\",0.3333333333333333,0.6666666666666666\n");
  test::expect_parts(to_text(result), {"test: 5,000 samples; mean prediction", "size  ", "0.333333", "0.25"});
  const auto json = parse_json<nlohmann::json>(to_json(result));
  EXPECT_EQ(json["samples"], 5000);
  EXPECT_EQ(json["points"][1]["value"], "red\nblue");
  EXPECT_EQ(json["points"][0]["means"], (std::vector<double>{0.25, 0.75}));
  // A terminal shows ten outputs.
  for (const std::size_t outputs : {10U, 11U}) {
    result.outputs.assign(outputs, "output");
    result.means.assign(2, std::vector<double>(outputs, 0.5));
    EXPECT_EQ(to_text(result).find("1 more output: --csv and --json have them") != std::string::npos,
              outputs == 11);
  }
}

}  // namespace lockstep::importance_table_test
