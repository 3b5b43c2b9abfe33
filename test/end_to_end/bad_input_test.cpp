// Everything that a user can get wrong: one clear error, the documented exit code, no hang, and nothing left
// behind.
#include <regex>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/math/kernels.h"
#include "lockstep/nn/model.h"
#include "lockstep/train/storage/model_file.h"
#include "support/special_files.h"
#include "support/trainer_runs.h"

namespace lockstep::test::bad_input_test {
namespace {

class BadInput : public SmallRuns {
 protected:
  // The error comes once, with the exit code, and says what it should. The first of each test is that of two
  // ranks; what a text or a file is refused for does not depend on their number, so one has the others.
  void expect_error(const std::string& arguments, int exit_code, const std::vector<std::string>& parts) {
    expect_failed(run_trainer(std::exchange(ranks_, 1), arguments + " --run.dir " + experiment_.fresh_run()),
                  exit_code, parts);
  }
  void expect_config_error(const std::string& extra_toml, const std::vector<std::string>& parts) {
    expect_error("--config " + experiment_.config(extra_toml), kExitConfig, parts);
  }
  void expect_flag_error(const std::string& flags, const std::vector<std::string>& parts,
                         int exit_code = kExitConfig) {
    expect_error("--config " + experiment_.config() + " " + flags, exit_code, parts);
  }
  void expect_data_error(const std::vector<std::string>& parts) {
    expect_error("--config " + experiment_.config(), kExitData, parts);
  }

  // The step of the last line of metrics.jsonl.
  static Index last_step(const std::string& run) {
    return metric_lines(run + "/metrics.jsonl").back()["step"].get<Index>();
  }

 private:
  int ranks_ = 2;
};

TEST_F(BadInput, UnknownKeyInTheFileAndOnTheCommandLine) {
  expect_config_error("learnrate = 1\n", {"run.toml:14", "train.learnrate"});
  expect_config_error("nestrov = true\n", {"did you mean 'train.nesterov'"});
  expect_flag_error("--train.lrr 0.1", {"--train.lrr", "did you mean '--train.lr'"});
}

TEST_F(BadInput, TextsThatAreDeeperThanTheStack) {
  std::string key = "a";
  for (int i = 1; i < 100'000; ++i) key += ".a";
  expect_config_error(key + " = 1\n", {"run.toml:14: a key of more than 1,000 parts"});
  const std::string header = "{\"0.weight\":{\"dtype\":\"F32\",\"data_offsets\":[0,4],\"shape\":[" +
                             std::string(300'000, '[') + std::string(300'000, ']') + "]}}";
  const std::uint64_t length = header.size();
  const std::string model = std::string(reinterpret_cast<const char*>(&length), 8) + header + "1234";
  const std::string file = experiment_.fresh_run() + ".safetensors";
  write_file_atomically(file, model);
  expect_flag_error("--init " + file, {"its JSON is nested 300,003 deep", "expected at most 100"}, kExitData);
}

TEST_F(BadInput, AModelThatIsLargerThanMemory) {
  expect_flag_error("--model.layers \"dense(900000) relu dense(900000) dense(4)\"",
                    {"the model is too large: a rank needs", "810,0", "but can have"});
}

TEST_F(BadInput, WrongTypeAndOutOfRange) {
  expect_config_error("momentum = \"much\"\n", {"run.toml:14", "train.momentum", "number", "much"});
  expect_config_error("momentum = 2.5\n", {"run.toml:14", "train.momentum", "2.5"});
  expect_flag_error("--train.threads 0", {"train.threads", "0"});
  expect_flag_error("--train.lr fast", {"train.lr", "number", "fast"});
}

TEST_F(BadInput, MissingConfig) {
  expect_error("--config /nowhere/run.toml", kExitConfig, {"/nowhere/run.toml", "No such file"});
  expect_error("", kExitConfig, {"--config"});
}

// Without an answer all ranks would wait for somebody to write into it.
TEST_F(BadInput, AFifoIsRefusedAtOnce) {
  const std::string fifo = experiment_.directory() / "fifo";
  make_fifo(fifo);
  expect_error("--config " + fifo, kExitConfig, {fifo, "is a FIFO (named pipe), expected a regular file"});
  expect_flag_error("--init " + fifo, {fifo, "is a FIFO"}, kExitData);
  std::filesystem::remove(experiment_.train().images);
  make_fifo(experiment_.train().images);
  expect_data_error({experiment_.train().images, "is a FIFO"});
}

TEST_F(BadInput, BatchKeys) {
  expect_config_error("per_replica_batch = 3\n",
                      {"train.global_batch", "train.per_replica_batch", "exactly one"});
  expect_flag_error("--train.global_batch 7", {"a global batch of 7", "8 replicas"});
}

TEST_F(BadInput, OptionsThatTheChoiceDoesNotRead) {
  expect_flag_error("--train.optimizer adam --train.momentum 0.9", {"train.momentum", "adam"});
}

TEST_F(BadInput, RanksWithoutWork) {
  expect_flag_error("--train.replicas 1", {"2 ranks but 1 replica:"});
}

TEST_F(BadInput, LayersThatDoNotFit) {
  expect_flag_error("--model.layers \"dense(3) rleu dense(4)\"", {"unknown layer 'rleu'", "'relu'"});
  expect_flag_error("--train.loss mean_squared_error",
                    {"layer 2 'dense(4)'", "puts out 4", "4 targets", "has 1"});
  expect_flag_error("--model.layers \"dense(1)\"", {"puts out 1 number", "always 0", "binary_cross_entropy"});
}

TEST_F(BadInput, WordsAndWeightsOfOtherPrograms) {
  expect_config_error("learning_rate = 1\n", {"run.toml:14", "Lockstep calls it 'train.lr'"});
  const std::string weights = experiment_.fresh_run() + ".pt";
  write_file_atomically(weights,
                        std::string("\x80\x02\x8a\nl\xfc\x9c\x46\xf9", 9) + " and what torch.save writes");
  expect_flag_error("--init " + weights, {weights, "a pickle", "safetensors.torch.save_file"}, kExitData);
}

TEST_F(BadInput, BatchNormThatCannotDoWhatIsAsked) {
  const std::string layers = "--model.layers \"dense(3) batch_norm dense(4)\" ";
  expect_flag_error("--model.batch_norm sync", {"model.batch_norm has no effect without a batch_norm layer"});
  expect_flag_error(layers + "--model.batch_norm global", {"model.batch_norm", "group(G)", "'global'"});
  expect_flag_error(layers + "--model.batch_norm \"group(9)\"", {"found group(9) with 8 replicas"});
  expect_flag_error(layers + "--train.accumulate 3", {"batch norm of single values in each step",
                                                      "found layer 1 'batch_norm'", "local", "sync"});
  const std::string single = "found layer 1 'batch_norm'";
  expect_flag_error(layers + "--model.batch_norm \"group(2)\" --train.replicas 3 --train.global_batch 3",
                    {single});
  expect_flag_error(
      layers + "--model.batch_norm sync --train.replicas 2 --train.global_batch 3 --train.accumulate 2",
      {single});
  expect_flag_error(layers + "--model.preset mlp", {"exactly one of model.layers, model.preset"});
}

TEST_F(BadInput, MissingData) {
  std::filesystem::remove(experiment_.train().images);
  expect_data_error({experiment_.train().images, "data.train", "does not exist"});
}

TEST_F(BadInput, BadMagic) {
  write_idx(experiment_.train().images, "this is not an IDX file, whatever its name says");
  expect_data_error({experiment_.train().images, "is not an IDX file", "74 68 69 73"});
}

TEST_F(BadInput, TruncatedGzip) {
  const std::string whole = read_file(experiment_.train().images);
  write_file_atomically(experiment_.train().images, whole.substr(0, whole.size() / 2));
  expect_data_error({experiment_.train().images, "truncated"});
}

TEST_F(BadInput, LabelsAndImagesOfDifferentCounts) {
  std::filesystem::copy_file(experiment_.test().labels, experiment_.train().labels,
                             std::filesystem::copy_options::overwrite_existing);
  expect_data_error({experiment_.train().images, "203", experiment_.train().labels, "57"});
}

TEST_F(BadInput, LabelOutOfRange) {
  expect_error("--config " + experiment_.config() + " --model.layers 'dense(3)'", kExitData,
               {experiment_.train().labels, "record", "3"});
}

TEST_F(BadInput, ALossThatIsNotANumberKeepsTheLastGoodWeights) {
  const std::string run = experiment_.fresh_run();
  const std::string arguments = "--config " + experiment_.config() +
                                " --train.lr 1e6 --run.log_every 1 --model.layers 'dense(16) dense(4)' "
                                "--run.dir ";
  const ProcessResult result = ended_with(run_trainer(2, arguments + run), kExitTraining);
  EXPECT_EQ(count_of(result.errors, "error: "), 1) << result.errors;
  const Index good = last_step(run);
  ASSERT_TRUE(std::regex_search(
      result.errors,
      std::regex(fmt::format("step {}: the loss is .*layer \\d.* after {} good step", good + 1, good))))
      << result.errors;
  // The weights that the same run ends with when it stops there by itself.
  const std::string shorter = experiment_.fresh_run();
  succeed(2, fmt::format("{}{} --train.steps {}", arguments, shorter, good));
  EXPECT_TRUE(read_file(run + "/model.safetensors") == read_file(shorter + "/model.safetensors"));
}

// The replica that met the bad number stands still: neither its weights nor its running moments take it in.
TEST_F(BadInput, ABadNumberThatAReplicaMeetsAloneLeavesAModelOfNumbers) {
  const std::string layers = "dense(16) dense(16) dense(16) batch_norm relu dense(4)";
  const std::string run = experiment_.fresh_run();
  const ProcessResult result =
      ended_with(run_trainer(2, fmt::format("--config {} --run.dir {} --train.lr 1e6 --model.layers '{}' "
                                            "--distribute.strategy local_sgd --distribute.average_every 12",
                                            experiment_.config(), run, layers)),
                 kExitTraining);
  EXPECT_EQ(count_of(result.errors, "error: "), 1) << result.errors;
  EXPECT_TRUE(
      std::regex_search(result.errors, std::regex("step ([1-9]|1[01]): replica \\d: the loss is not")))
      << result.errors;
  const Model model({.layers = layers}, {{12}});
  AlignedBuffer<Scalar> stored(model.stored_layout().size);
  ModelFile(run + "/model.safetensors").load(model.stored_layout(), {&model.stored_layout(), stored.span()});
  EXPECT_TRUE(all_finite(stored.span()));
}

TEST_F(BadInput, OneRankAloneWithABadCommandLineEndsTheJob) {
  for (const std::string bad : {"--bogus 1", "--train.lr fast", "--run.dir ''"}) {
    const std::string same =
        trainer_path() + " --config " + experiment_.config() + " --run.dir " + experiment_.fresh_run();
    expect_failed(run_command("timeout 30 " + mpiexec_of({same, same + " " + bad})), kExitConfig);
  }
}

TEST_F(BadInput, LengthsAndSizesBeyondReason) {
  expect_flag_error("--train.tail drop --train.global_batch 300",
                    {"tail = drop leaves no step", "203", "300"});
  expect_flag_error("--train.epochs 1e300", {"train.epochs", "at most 1000000"});
  expect_flag_error("--train.global_batch 9223372036854775807", {"train.global_batch", "from 1 to"});
  expect_flag_error("--train.steps 1000000000000 --train.global_batch 1000000000",
                    {"samples, expected at most"});
  expect_flag_error("--model.layers 'dense(9223372036854775807) relu dense(4)'",
                    {"layer 0", "has more than"});
  expect_flag_error("--train.end_lr 0.5 --train.schedule cosine",
                    {"train.end_lr is 0.5, above the peak of 0.05"});
  expect_flag_error("--data.train " + std::string(300, 'x') + "-ubyte", {"xxx"}, kExitData);
}

TEST_F(BadInput, ABatchPerReplicaWithoutReplicas) {
  expect_error("--config " LOCKSTEP_TEST_DATA
               "/end_to_end/synthetic.toml --data.synthetic_rows 100 --train.per_replica_batch 3",
               kExitConfig, {"train.per_replica_batch without train.replicas"});
}

TEST_F(BadInput, TargetsThatAreNoYesOrNo) {
  expect_error(
      "--config " + experiment_.config() + " --model.layers 'dense(1)' --train.loss binary_cross_entropy",
      kExitData, {experiment_.train().labels, "record", "a number from 0 to 1"});
}

TEST_F(BadInput, AFailedStartLeavesNoRunBehind) {
  expect_refused(2, "--model.layers 'dense(3)'", {}, kExitData);
}

TEST_F(BadInput, ARunIsNeverOverwritten) {
  const std::string run = trained(2);
  const std::string model = read_file(run + "/model.safetensors");
  expect_failed(run_trainer(2, words(run, "--run.seed 5 --run.resume never")), kExitConfig,
                {"never overwritten"});
  EXPECT_TRUE(read_file(run + "/model.safetensors") == model);
}

TEST_F(BadInput, EvaluatingWhatIsNoRunOrDoesNotFit) {
  expect_failed(run_trainer(2, "eval --model /nowhere"), kExitConfig, {"/nowhere", "there is no run"});
  const std::string run = trained(1);
  expect_failed(run_trainer(2, "eval --model " + run + " --model.layers 'dense(5) relu dense(4)'"), kExitData,
                {"0.weight: the model has 5x12, the file 16x12"});
}

}  // namespace
}  // namespace lockstep::test::bad_input_test
