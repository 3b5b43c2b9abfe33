// The trials of a sweep and the folds of a cross-validation side by side: their order, what is computed.
#include "app/sweep/trial_rows.h"

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/train/storage/run_record.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep::test::sweep_table_test {

using Json = nlohmann::ordered_json;

const Measure kLoss("loss", {}, true);
const Measure kAccuracy("accuracy", {}, true);

TrialRow trial(Index number, TrialState state, std::optional<double> value = std::nullopt) {
  TrialRow row{.number = number, .settings = {{"train.lr", fmt::format("0.{}", number)}}, .state = state};
  if (value) row.score = TrialScore{.value = *value, .step = 10 * number, .epoch = 1.5};
  if (state == TrialState::kDone) {
    row.steps = 1000 * number;
    row.seconds = 30.0 * static_cast<double>(number);
  }
  return row;
}

std::vector<Index> order(const Json& json) {
  std::vector<Index> numbers;
  for (const Json& row : json["trials"]) numbers.push_back(row["trial"]);
  return numbers;
}

// The best first, those without a value by their numbers, and last what was dropped on the way.
TEST(SweepTable, HasTheBestFirst) {
  std::vector<TrialRow> rows{trial(1, TrialState::kDone, 0.5),   trial(2, TrialState::kDropped, 0.125),
                             trial(3, TrialState::kDone, 0.25),  trial(4, TrialState::kFailed),
                             trial(5, TrialState::kDone, 0.25),  trial(6, TrialState::kDropped, 0.0625),
                             trial(7, TrialState::kPaused, 0.75)};
  rows[3].exit_code = 4;
  rows[3].reason = "the loss is not finite";
  rows[2].test = {{"loss", 0.375}, {"accuracy", 0.875}};
  const SweepDirectory directory{.root = "runs/s"};
  EXPECT_EQ(order(sweep_json(rows, kLoss, directory)), (std::vector<Index>{3, 5, 1, 7, 4, 6, 2}));
  EXPECT_EQ(order(sweep_json(rows, kAccuracy, directory)), (std::vector<Index>{7, 1, 3, 5, 4, 2, 6}));
  EXPECT_EQ(sweep_json(rows, kLoss, directory)["best"], "trial-0003");
  EXPECT_EQ(sweep_json(rows, kAccuracy, directory)["best"], "trial-0001") << "a paused one has no model";
  const std::string text = sweep_table(rows, kLoss, directory);
  expect_parts(
      text,
      {"trial-0003       0.3           0.2500   1.50     0.3750         0.8750  3,000  1 m 30 s     done\n"
       "trial-0005       0.5           0.2500   1.50                            5,000  2 m 30 s     done\n"
       "trial-0001       0.1           0.5000   1.50                            1,000    30.0 s     done\n"
       "trial-0007       0.7           0.7500   1.50                                              paused\n"
       "trial-0004       0.4                                                                      failed\n"
       "trial-0006       0.6           0.0625   1.50                                             dropped\n",
       "trial-0004 failed with exit code 4: the loss is not finite\n", "the same command tries 1 trial again",
       "best: trial-0003, validation loss 0.25 after epoch 1.50; use it: trainer predict "
       "runs/s/trial-0003 "});
}

TEST(SweepTable, NamesNoBestWithoutAValue) {
  const std::vector<TrialRow> rows{trial(1, TrialState::kDone), trial(2, TrialState::kFailed)};
  EXPECT_FALSE(sweep_json(rows, kLoss, {}).contains("best"));
  expect_parts(sweep_table(rows, kLoss, {}), {"no trial is the best"});
  const std::vector<TrialRow> failed{trial(1, TrialState::kFailed)};
  EXPECT_EQ(sweep_table(failed, kLoss, {}).find("best"), std::string::npos);
}

TrialRow fold(Index number, double loss, std::optional<double> auc, Index samples) {
  TrialRow row = trial(number, TrialState::kDone, loss);
  row.score->evaluation = {{"samples", samples}, {"loss", loss}};
  if (auc) row.score->evaluation["auc"] = *auc;
  return row;
}

// Means of 1, 2 and 6, and their deviation as of a sample: sqrt((4 + 1 + 9) / 2).
TEST(FoldsTable, HasTheMeanAndTheDeviationOfASample) {
  const SweepDirectory directory{.root = "runs/cv", .word = "fold"};
  std::vector<TrialRow> rows{fold(1, 1, 0.5, 1034), fold(2, 2, 0.5, 33), fold(3, 6, 0.875, 33)};
  Json json = folds_json(rows, kLoss, directory);
  EXPECT_DOUBLE_EQ(json["mean"]["loss"], 3);
  EXPECT_DOUBLE_EQ(json["standard_deviation"]["loss"], std::sqrt(7));
  EXPECT_DOUBLE_EQ(json["mean"]["auc"], 0.625);
  EXPECT_FALSE(json["mean"].contains("samples"));
  EXPECT_EQ(order(json), (std::vector<Index>{1, 2, 3})) << "by their numbers";
  EXPECT_EQ(folds_table(rows, kLoss, directory),
            "run                 records  validation loss  validation auc  epoch  state\n"
            "fold-0001             1,034           1.0000          0.5000   1.50   done\n"
            "fold-0002                33           2.0000          0.5000   1.50   done\n"
            "fold-0003                33           6.0000          0.8750   1.50   done\n"
            "mean                                  3.0000          0.6250\n"
            "standard deviation                    2.6458          0.2165");
  // A measure that one fold lacks has the mean of the others; a fold that failed is left out.
  rows.push_back(fold(4, 3, std::nullopt, 33));
  rows.push_back(trial(5, TrialState::kFailed));
  json = folds_json(rows, kLoss, directory);
  EXPECT_DOUBLE_EQ(json["mean"]["loss"], 3);
  EXPECT_DOUBLE_EQ(json["mean"]["auc"], 0.625);
  EXPECT_EQ(json["folds"], (Json{{"loss", 4}, {"auc", 3}}));
  EXPECT_DOUBLE_EQ(json["standard_deviation"]["loss"], std::sqrt(14.0 / 3));
  // Nor does the training on all records count.
  rows.push_back(fold(6, 100, 1, 100));
  EXPECT_DOUBLE_EQ(folds_json(rows, kLoss, {.root = "runs/cv", .word = "fold", .refit = 6})["mean"]["loss"],
                   3);
  const std::vector<TrialRow> one{fold(1, 2, 0.5, 10)};
  EXPECT_TRUE(folds_json(one, kLoss, directory)["standard_deviation"]["loss"].is_null()) << "one has none";
}

// Two of three folds have no positive record: the AUC alone is undefined, also if it chooses the weights.
TEST(FoldsTable, ShowsWhatIsUndefinedInItsOwnCells) {
  const SweepDirectory directory{.root = "runs/cv", .word = "fold"};
  const Measure auc("auc", {"auc"}, true);
  std::vector<TrialRow> rows{fold(1, 1, NAN, 100), fold(2, 2, NAN, 100), fold(3, 6, 0.375, 100)};
  for (TrialRow& row : rows) {
    row.score->evaluation["auc"] = row.number == 3 ? Json(0.375) : Json();
    row.score->value = row.number == 3 ? 0.375 : NAN;
    row = parse_row(to_json(row, "auc"));
    EXPECT_EQ(row.is_measured(), row.number == 3);
  }
  EXPECT_EQ(folds_table(rows, auc, directory),
            "run                 records         validation auc  validation loss  epoch  state\n"
            "fold-0001               100              undefined           1.0000   1.50   done\n"
            "fold-0002               100              undefined           2.0000   1.50   done\n"
            "fold-0003               100                 0.3750           6.0000   1.50   done\n"
            "mean                         0.3750 (1 of 3 folds)           3.0000\n"
            "standard deviation                               -           2.6458");
  const Json json = folds_json(rows, auc, directory);
  EXPECT_EQ(json["mean"]["auc"], 0.375);
  EXPECT_TRUE(json["standard_deviation"]["auc"].is_null());
  EXPECT_EQ(json["folds"], (Json{{"auc", 1}, {"loss", 3}}));
  rows.pop_back();
  expect_parts(folds_table(rows, auc, directory),
               {"mean                              undefined", "deviation                        -"});
  EXPECT_TRUE(folds_json(rows, auc, directory)["mean"]["auc"].is_null());
  std::ranges::reverse(rows);
  EXPECT_EQ(order(sweep_json(rows, auc, directory)), (std::vector<Index>{1, 2}));
  EXPECT_FALSE(sweep_json(rows, auc, directory).contains("best"));
  expect_parts(sweep_table(rows, auc, directory), {"undefined", "validation auc is undefined in all"});
}

TEST(TrialRow, MayPassIfItsFailureIsOfTheMachine) {
  for (const auto& [exit_code, passes] : {std::pair{kExitConfig, false}, std::pair{kExitData, true},
                                          std::pair{kExitComm, true}, std::pair{kExitTraining, false}}) {
    TrialRow row = trial(1, TrialState::kFailed);
    row.exit_code = exit_code;
    EXPECT_EQ(row.may_pass(), passes) << exit_code;
    const std::string text = sweep_table(std::vector{row}, kLoss, {.root = "runs/s"});
    expect_parts(text, {passes ? "the same command tries 1 trial again"
                               : "a failed trial is tried again when its row is removed: rm "
                                 "runs/s/rows/trial-NUMBER.json"});
    EXPECT_EQ(text.find(passes ? "its row is removed" : "the same command"), std::string::npos) << text;
    row.was_held = true;
    EXPECT_TRUE(parse_row(to_json(row, "loss")).may_pass()) << "another process had its directory";
  }
}

TEST(TrialRow, IsReadAsItWasWritten) {
  TrialRow row = fold(3, 0.25, 0.5, 40);
  row.at_rungs = {0.5, NAN, 0.25};
  row.test = {{"loss", 0.125}};
  row.reason = "why";
  row.exit_code = 3;
  const TrialRow read = parse_row(to_json(row, "loss"));
  EXPECT_EQ(to_json(read, "loss"), to_json(row, "loss"));
  EXPECT_EQ(read.rung(), 2);
  EXPECT_TRUE(std::isnan(read.at_rungs[1]));
  EXPECT_EQ(read.score->step, 30);
  EXPECT_EQ(read.settings[0].value, "0.3");
  EXPECT_TRUE(read.is_over());
  EXPECT_FALSE(read.may_pass()) << "it has not failed";
  EXPECT_FALSE(trial(1, TrialState::kDropped).is_over());
}

// The best value of the validation set, the first of equals; or the last, if the model has the last weights.
TEST(TrialScore, IsThatOfTheWeightsThatAreKept) {
  const TemporaryDirectory directory;
  const RunDirectory run{directory.path()};
  EXPECT_FALSE(read_score(run, kLoss, true)) << "no lines yet";
  std::string lines = "{\"kind\":\"train\",\"step\":1,\"epoch\":0.1,\"samples_seen\":9,\"loss\":0.001}\n";
  Index step = 0;
  for (const char* loss : {"0.5", "0.25", "null", "0.25", "0.375"}) {
    ++step;
    lines += fmt::format(
        "{{\"kind\":\"evaluation\",\"split\":\"validation\",\"step\":{},\"epoch\":{},\"samples_seen\":9,"
        "\"samples\":9,\"loss\":{"
        "},"
        "\"accuracy\":0.5,\"seconds\":1}}\n",
        step, 0.5 * static_cast<double>(step), loss);
  }
  lines +=
      "{\"kind\":\"evaluation\",\"split\":\"test\",\"step\":9,\"epoch\":9,\"samples_seen\":9,\"loss\":0.01}"
      "\n{\"cut";
  write_file_atomically(run.metrics(), lines);
  const std::optional<TrialScore> best = read_score(run, kLoss, true);
  ASSERT_TRUE(best);
  EXPECT_EQ(std::tuple(best->value, best->step, best->epoch), std::tuple(0.25, 2, 1));
  EXPECT_EQ(best->evaluation, (Json{{"samples", 9}, {"loss", 0.25}, {"accuracy", 0.5}}));
  EXPECT_EQ(read_score(run, kLoss, false)->step, 5);
  EXPECT_EQ(read_score(run, kAccuracy, true)->step, 1);
  TrialRow row{.score = best};
  RunRecord record{.state = RunState::kDone, .progress = {.steps = 5}, .seconds = 2.5};
  record.figures["validation"] = {.step = 2, .values = {{"loss", 0.125}, {"accuracy", 0.5}}};
  write_file_atomically(run.record(), to_json(record));
  add_result(row, run, kLoss);
  EXPECT_EQ(row.score->value, 0.125) << "with the temperature";
  EXPECT_EQ(row.score->evaluation, (Json{{"samples", 9}, {"loss", 0.125}, {"accuracy", 0.5}}));
  EXPECT_EQ(row.steps, 5);
  EXPECT_EQ(row.seconds, 2.5);
  EXPECT_EQ(row.test, (Json{{"loss", 0.01}}));
  write_file_atomically(run.metrics(), "");
  TrialRow other;
  add_result(other, run, kLoss);
  EXPECT_TRUE(other.test.is_null());
}

}  // namespace lockstep::test::sweep_table_test
