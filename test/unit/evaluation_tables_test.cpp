// The tables of an evaluation: classes by name, and bins of probability.
#include "lockstep/report/tables/tables.h"

#include "lockstep/base/json.h"
#include "support/common.h"

namespace lockstep::evaluation_tables_test {

EvalMetrics irises() {
  EvalMetrics metrics;
  metrics.classes = 3;
  metrics.confusion = {8, 0, 0, 0, 6, 2, 0, 0, 0};
  metrics.names = {"setosa", "versicolor", "virginica"};
  metrics.reliability = {{.from = 0, .to = 0.5, .count = 1, .predicted = 0.375, .observed = 1},
                         {.from = 0.5, .to = 1, .count = 1500, .predicted = 0.75, .observed = 0.5}};
  return metrics;
}

TEST(EvaluationTables, NameEachClassAndEachBinThatIsNotEmpty) {
  EXPECT_EQ(evaluation_tables(irises()),
            "class       precision  recall      f1  samples\n"
            "setosa         1.0000  1.0000  1.0000        8\n"
            "versicolor     1.0000  0.7500  0.8571        8\n"
            "virginica      0.0000       -  0.0000        0\n"
            "probability of the predicted class    mean  share that is right  samples\n"
            "0.000 to 0.500                      0.3750               1.0000        1\n"
            "0.500 to 1.000                      0.7500               0.5000    1,500\n");
}

TEST(EvaluationTables, SayYesOfEachOutput) {
  EvalMetrics metrics;
  metrics.answers = {5, 1, 1, 3, 10, 0, 0, 0};
  metrics.reliability = {{.from = 0, .to = 1, .count = 20, .predicted = 0.5, .observed = 0.2}};
  EXPECT_EQ(evaluation_tables(metrics),
            "output  precision  recall      f1  samples\n"
            "0          0.7500  0.7500  0.7500        4\n"
            "1               -       -       -        0\n"
            "probability of yes    mean  share of yes  targets\n"
            "0.000 to 1.000      0.5000        0.2000       20\n");
}

TEST(EvaluationTables, LeaveOutManyClassesAndValues) {
  EvalMetrics metrics;
  EXPECT_EQ(evaluation_tables(metrics), "");
  metrics.classes = 31;
  metrics.confusion.assign(31 * 31, 1);
  EXPECT_EQ(evaluation_tables(metrics), "");
  EXPECT_EQ(json_with_tables(metrics).at("per_class").size(), 31U);
}

TEST(EvaluationTables, AreInTheJson) {
  EvalMetrics metrics = irises();
  metrics.names[0] = "set\xe9";  // no UTF-8
  const nlohmann::json json = parse_json<nlohmann::json>(
      json_with_tables(metrics).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  EXPECT_EQ(json.at("confusion"), parse_json<nlohmann::json>("[[8,0,0],[0,6,2],[0,0,0]]"));
  const nlohmann::json& classes = json.at("per_class");
  EXPECT_EQ(
      classes.at(1),
      parse_json<nlohmann::json>(
          R"({"class":"versicolor","precision":1.0,"recall":0.75,"f1":0.8571428571428571,"samples":8})"));
  EXPECT_TRUE(classes.at(2).at("recall").is_null());
  EXPECT_EQ(
      json.at("reliability").at(1),
      parse_json<nlohmann::json>(R"({"from":0.5,"to":1.0,"samples":1500,"predicted":0.75,"observed":0.5})"));
}

}  // namespace lockstep::evaluation_tables_test
