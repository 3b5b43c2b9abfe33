// Models and predictions that leave Lockstep, and weights that come in.
#include "support/trainer_runs.h"

namespace lockstep::test::exchange_test {
namespace {

class Exchange : public SmallRuns {
 protected:
  // A new run; gives its directory.
  std::string train(int ranks, const std::string& flags) {
    std::string run = experiment_.fresh_run();
    output_ = succeed(ranks, words(run, flags)).output;
    return run;
  }

  std::string predict(int ranks, const std::string& run, const std::string& output,
                      const std::string& flags) {
    const ProcessResult result = succeed(ranks, fmt::format("predict --model {} --input {} --output {} {}",
                                                            run, experiment_.test().images, output, flags));
    output_ = result.output;
    return read_file(output);
  }
};

TEST_F(Exchange, ARunCanStartFromTheWeightsOfAnother) {
  const std::string first = train(1, "");
  // A learning rate so small that the weights stay: whoever starts from them on any rank has their bits.
  const std::string tiny = " --train.lr 1e-30 --distribute.reduction ordered";
  for (const int ranks : {1, 3}) {
    const std::string again = train(ranks, "--init " + first + "/model.safetensors" + tiny);
    expect_parts(output_, {"loaded 4 of 4 tensors from " + first + "/model.safetensors"});
    EXPECT_TRUE(model_of(again) == model_of(first));
  }
  EXPECT_FALSE(read_file(train(1, tiny) + "/model.safetensors") == model_of(first));
}

TEST_F(Exchange, WeightsThatDoNotFitAreListedAndRefused) {
  const std::string first = train(1, "");
  const std::string run = experiment_.fresh_run();
  const std::string other = words(run, "--model.layers 'dense(16) dense(4) dense(3)' ");
  expect_failed(run_trainer(2, other + "--init " + first + "/model.safetensors"), kExitData,
                {"train.init", "1.weight: missing", "1.bias: missing",
                 "2.weight: the model has 3x4, the file 4x16", "--train.init_partial true"});
  EXPECT_FALSE(std::filesystem::exists(run)) << "a refused run left a directory";
  expect_failed(run_trainer(2, other + "--init /nowhere.safetensors"), kExitData,
                {"/nowhere.safetensors", "No such file"});
  expect_failed(run_trainer(1, other + "--init " + experiment_.test().images), kExitData,
                {"not a whole safetensors file"});
  expect_failed(run_trainer(1, other + "--train.init_partial true"), kExitConfig, {"without train.init"});
}

TEST_F(Exchange, TensorsOfOtherNamesAreTakenByATableOfTheirs) {
  const std::string weights = read_file(train(1, "") + "/model.safetensors");
  std::string theirs = weights;  // in.weight, in.bias, head.weight, ..., in a header of the same length
  const std::size_t end = theirs.find("}}");
  ASSERT_NE(end, std::string::npos);
  for (const auto& [ours, name] : {std::pair("\"0.", "\"in."), std::pair("\"2.", "\"head.")}) {
    for (std::size_t at = theirs.find(ours); at < end; at = theirs.find(ours, at + 1)) {
      theirs.replace(at, 3, name);
      theirs.erase(theirs.find("  ", end), std::string(name).size() - 3);
    }
  }
  const std::string file = experiment_.directory() / "theirs.safetensors";
  write_file_atomically(file, theirs);
  const std::string init = "--train.lr 1e-30 --distribute.reduction ordered --init " + file + " ";
  const std::string table = init + "--train.init_rename 0=in,2=head ";
  for (const std::string ranks : {"", "--distribute.stages 2 "}) {
    const std::string run = train(2, table + ranks);
    expect_parts(output_, {"loaded 4 of 4 tensors from " + file});
    EXPECT_TRUE(model_of(run) == weights);
  }
  const std::string run = train(3, table);
  EXPECT_TRUE(model_of(run) == weights);
  expect_parts(read_file(run + "/config.toml"), {"init_rename = [\"0=in\", \"2=head\"]"});

  const std::string refused = words(experiment_.fresh_run(), "--init " + file + " ");
  expect_failed(run_trainer(2, refused), kExitData,
                {"0.weight: missing", "head.weight: in the file", "train.init_rename"});
  expect_failed(run_trainer(2, refused + "--train.init_rename 0=in,1=head"), kExitConfig,
                {"'1' renames no tensor of the model, which has 0.weight"});
  expect_failed(run_trainer(2, refused + "--train.init_rename 0=in,2=haed"), kExitData,
                {file, "has no tensor 'haed.bias', but head.bias", "did you mean 'head.bias'?"});
}

TEST_F(Exchange, TheTensorsThatFitAreTakenWhenAsked) {
  const std::string first = train(1, "");
  const std::string init =
      "--train.lr 1e-30 --init " + first + "/model.safetensors --train.init_partial true ";
  EXPECT_TRUE(read_file(train(2, init) + "/model.safetensors") == model_of(first));
  train(2, init + "--model.layers 'dense(16) relu dense(3) relu dense(4)'");
  expect_parts(output_,
               {"loaded 2 of 6 tensors", "not loaded:\n  2.weight: the model has 3x16, the file 4x16"});
}

TEST_F(Exchange, PredictionsAreTheSameBytesOnAnyNumberOfRanks) {
  const std::string run = train(2, "--data.mean 0.4 --data.std 0.3");
  const auto file = [&](const std::string& name) { return experiment_.directory() / name; };
  for (const std::string kind : {"csv", "npy"}) {
    const std::string alone = predict(1, run, file("alone." + kind), "--eval.batch 5");
    expect_parts(output_, {"predicted 57 rows"});
    for (const auto& [ranks, threads] : {std::pair(2, 1), {3, 2}}) {
      const std::string flags = fmt::format("--overwrite --eval.batch 5 --train.threads {}", threads);
      EXPECT_TRUE(predict(ranks, run, file("many." + kind), flags) == alone) << ranks << " ranks";
    }
  }
  EXPECT_EQ(read_file(file("alone.npy")).size(), 128 + 57 * 4 * sizeof(float));
}

TEST_F(Exchange, PredictionsAgreeWithTheEvaluation) {
  const std::string run = train(1, "--train.epochs 20");
  std::istringstream lines(predict(2, run, experiment_.directory() / "p.csv", ""));
  const std::string labels = read_file(experiment_.test().labels);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "row,prediction,p_0,p_1,p_2,p_3");
  std::vector<Index> predicted(4);
  for (Index row = 0; row < 57; ++row) {
    Index number = 0;
    Index label = 0;
    char comma = 0;
    double sum = 0;
    ASSERT_TRUE(std::getline(lines, line));
    std::istringstream fields(line);
    fields >> number >> comma >> label;
    EXPECT_EQ(number, row);
    for (double p = 0; fields >> comma >> p;) sum += p;
    EXPECT_NEAR(sum, 1, 1e-5);
    ++at(predicted, label);
  }
  EXPECT_FALSE(std::getline(lines, line));
  // The columns of the confusion matrix count what was predicted.
  std::vector<Index> counted(4);
  const nlohmann::json evaluated = evaluate(1, "--model " + run);
  for (const nlohmann::json& row : evaluated["test"]["confusion"]) {
    for (std::size_t column = 0; column < 4; ++column) counted[column] += row[column].get<Index>();
  }
  EXPECT_EQ(predicted, counted);
}

TEST_F(Exchange, NeitherPredictionNorExportNeedsTheDataOfTheRun) {
  const std::string run = train(1, "");
  for (const std::string& path :
       {experiment_.train().images, experiment_.train().labels, experiment_.test().labels})
    std::filesystem::remove(path);
  predict(1, run, experiment_.directory() / "p.csv", "");
  const std::string exported = experiment_.directory() / "m.safetensors";
  expect_parts(succeed("export --model " + run + " --format safetensors --output " + exported).output,
               {"exported 276 numbers in 4 tensors"});
  EXPECT_TRUE(read_file(exported) == model_of(run));
}

TEST_F(Exchange, AnOnnxFileGoesFromRecordsToProbabilities) {
  const std::string run = train(1, "--data.mean 0.4");
  const std::string exported = experiment_.directory() / "m.onnx";
  succeed("export --model " + run + " --format onnx --output " + exported);
  expect_parts(read_file(exported), {"normalisation.mean", "0.weight", "Softmax", "probabilities"});
}

TEST_F(Exchange, AnOutputIsReplacedOnlyIfAskedAndStandardOutputHoldsNothingElse) {
  const std::string run = train(1, "");
  const std::string csv = experiment_.directory() / "p.csv";
  const std::string words =
      fmt::format("predict --model {} --input {} --output ", run, experiment_.test().images);
  const std::string predictions = predict(2, run, csv, "");
  expect_failed(run_trainer(2, words + csv), kExitConfig, {csv, "exists already", "--overwrite"});
  const ProcessResult printed = succeed(2, words + "-");
  EXPECT_EQ(printed.output, predictions);
  expect_parts(printed.errors, {"predicted 57 rows", "standard output"});

  const std::string model = run + "/model.safetensors";
  const std::string weights = read_file(model);
  const std::string exporting = "export --model " + run + " --format safetensors --output ";
  EXPECT_TRUE(run_trainer(exporting + "-").output == weights);
  expect_failed(run_trainer(exporting + model + " --overwrite"), kExitConfig, {"which is read"});
  EXPECT_TRUE(read_file(model) == weights);
}

TEST_F(Exchange, PredictionsThatAreNoNumbersEndWithTheCodeForData) {
  const std::string run = train(1, "");
  const std::string csv = experiment_.directory() / "p.csv";
  std::string weights = model_of(run);
  std::fill(weights.end() - 276 * 4, weights.end(), '\x7f');  // the largest floats: their sums are infinite
  write_file_atomically(run + "/model.safetensors", weights);
  const std::string words =
      fmt::format("predict --model {} --input {} --overwrite --output ", run, experiment_.test().images);
  expect_failed(run_trainer(2, words + csv), kExitData, {"57 of 57 rows", "row 0", csv, "--allow-nan"});
  expect_parts(read_file(csv), {",nan,nan,nan,nan\n56,"});
  expect_no_parts(read_file(csv), {"-nan"});
  expect_parts(succeed(1, words + csv + " --allow-nan").errors, {"warning: 57 of 57 rows"});
}

TEST_F(Exchange, BadPredictionsAndExportsAreRefused) {
  const std::string run = train(1, "");
  const std::string images = experiment_.test().images;
  const std::string csv = experiment_.directory() / "p.csv";
  const auto predict_from = [&](const std::string& input, const std::string& output) {
    return fmt::format("predict --model {} --input {} --output {}", run, input, output);
  };
  expect_failed(run_trainer(2, predict_from(images, "p.txt")), kExitConfig,
                {"p.txt", ".csv or .jsonl or .npy"});
  const std::string pickle = experiment_.directory() / "p.pt";
  std::ofstream(pickle) << "weights";
  expect_failed(run_trainer(2, predict_from(pickle, csv)), kExitConfig,
                {"--input names", "p.pt'", "a pickle"});
  // Where the end of a name tells nothing, the input is of the format that the run found.
  expect_failed(run_trainer(2, predict_from("p.zip", csv)), kExitData,
                {"--input names 'p.zip'", "does not exist"});
  expect_failed(run_trainer(2, predict_from("none-ubyte", csv)), kExitData,
                {"--input", "none-ubyte", "does not exist"});
  expect_failed(run_trainer(2, predict_from(experiment_.test().labels, csv)), kExitData, {"1 dimension"});
  const IdxPair wide =
      write_idx_pair(experiment_.directory() / "wide", {.rows = 5, .shape = {{4, 4}}, .classes = 4});
  expect_failed(run_trainer(2, predict_from(wide.images, csv)), kExitData, {"the shape 4x4", "takes 4x3"});
  expect_failed(run_trainer(2, predict_from(images, "/no/such/p.csv")), kExitData, {"/no/such/p.csv"});
  expect_failed(run_trainer(1, "predict --model /nowhere --input a-ubyte --output " + csv), kExitConfig,
                {"/nowhere"});
  EXPECT_FALSE(std::filesystem::exists(csv));

  const std::string output = experiment_.directory() / "m";
  const auto export_as = [&](const std::string& format) {
    return run_trainer(fmt::format("export --model {} --format {} --output {}", run, format, output));
  };
  expect_failed(export_as("np"), kExitConfig,
                {"unknown export format 'np'", "did you mean 'npz'", "safetensors"});
  EXPECT_FALSE(std::filesystem::exists(output));
}

}  // namespace
}  // namespace lockstep::test::exchange_test
