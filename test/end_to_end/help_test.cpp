// trainer help: every guide, key, section and command has a page, and other words are told the nearest topic.
#include "support/trainer_runs.h"

namespace lockstep::test::help_test {
namespace {

ProcessResult help(const std::string& topic) {
  return run_trainer("help " + topic);
}

TEST(Help, PrintsEveryGuideOfTheProject) {
  const ProcessResult topics = succeeded(help(""));
  for (const auto& file : std::filesystem::directory_iterator(LOCKSTEP_SOURCE_DIR "/configs/guides")) {
    const std::string name = file.path().stem();
    expect_parts(topics.output, {"\n  " + name + " "});
    const ProcessResult guide = succeeded(help(name));
    const std::string text = read_file(file.path());
    EXPECT_EQ(guide.output.substr(0, guide.output.find('\n')), text.substr(0, text.find('\n')));
    EXPECT_EQ(guide.output.find("<!--"), std::string::npos) << "marks for the check of its commands";
    EXPECT_GT(guide.output.size(), text.size() / 2) << name;
  }
}

TEST(Help, TellsOfAKeyWhatItMeansAndWhereItIsUsed) {
  expect_parts(succeeded(help("data.label")).output,
               {"data.label\n", "Columns of a table to learn", "label in section [data]", "--data.label",
                "default:", "trainer help ", "tables"});
  expect_parts(help("data.augment").output, {"example:      [data]  augment = \"crop(4)"});
  EXPECT_EQ(help("global_batch").output, help("train.global_batch").output);
  expect_parts(help("dir").output, {"run.dir\n", "checkpoint.dir\n"});
  expect_parts(help("optimizer").output, {"train.optimizer", "one of 'sgd', 'adam'"});
  expect_parts(help("checkpoint").output, {"[checkpoint]", "--checkpoint.every", "--checkpoint.keep"});
}

TEST(Help, HasAPageForEachCommand) {
  for (const std::string command :
       {"plan", "bench", "eval", "predict", "importance", "export", "inspect", "init", "compare", "report",
        "export-metrics", "status", "watch", "trace", "sweep", "cv", "reference", "help"}) {
    const ProcessResult page = succeed(command + " --help");
    EXPECT_EQ(page.output, command == "help" ? page.output : help(command).output);
    expect_parts(page.output, {"Usage\n", "trainer " + command, "Example\n", "Read on: trainer help "});
  }
  expect_parts(help("export").output, {"--format NAME", "npz | onnx"});
  EXPECT_NE(run_trainer("--help").output, run_trainer("plan --help").output);
}

// What users ask for, and the heading of the part of the guides that answers.
TEST(Help, AnswersQueries) {
  const std::vector<std::pair<std::string, std::string>> queries{
      {"overfitting", "## Which weights are the model?"},
      {"leak", "### What does inspect call suspicious?"},
      {"slurm", "## How do I run under Slurm?"},
      {"srun", "## How do I run under Slurm?"},
      {"allreduce", "## Which strategy should I choose?"},
      {"ring", "## Exchange algorithms"},
      {"async", "## Parameter servers"},
      {"stale", "## Parameter servers"},
      {"parameter_server", "## Parameter servers"},
      {"zero", "## What does a strategy hold and send?"},
      {"'global batch'", "## Is the batch global or of each worker?"},
      {"MirroredStrategy", "## Their word, ours"},
      {"DDP", "## How does a PyTorch DDP script become a config?"},
      {"auc", "## Which metrics are measured?"},
      {"threshold", "### From which probability on is it yes?"},
      {"onnx", "## How do I use the model in other programs?"},
      {"group", "## How do I hold records back for validation?"},
      {"time", "## How do I hold records back for validation?"},
      {"early stopping", "## Which weights are the model?"},
      {"checkpoint", "## When does a run save itself?"},
      {"resume", "## How do I resume a run?"},
      {"nan", "## What if the loss is not finite?"},
      {"diverged", "## What if the loss is not finite?"},
      {"bf16", "## When does bfloat16 pay?"},
      {"threads", "## How do I place ranks and threads?"},
      {"binding", "## How do I place ranks and threads?"},
      {"forecast", "## From a file to a forecast"},
      {"image folder", "## Which formats are read?"},
      {"positive class", "### Which of two classes is yes?"},
      {"units", "## What do I give as label and loss?"},
      {"hang", "## What if a rank does not come?"},
      {"deadlock", "## What if a rank does not come?"},
      {"stuck", "## What if a rank does not come?"},
      {"log", "## What does a run say?"},
      {"accuracy", "## Which metrics are measured?"},
      {"'rare class'", "## Some classes are rare: what now?"},
      {"imbalance", "## Some classes are rare: what now?"},
      {"hyperparameter", "## How do I try several values of a key?"},
      {"'grid search'", "## How do I try several values of a key?"},
      {"optuna", "## How do I search at random?"},
      {"'exit code'", "## How do I read an error?"},
      {"docker", "### Can it run in a container?"},
      {"oom", "## Does it fit into memory?"},
      {"'out of memory'", "## Does it fit into memory?"},
      {"segfault", "## When to report it"},
      {"hostfile", "## How do I place ranks and threads?"},
      {"reproducible", "## How do I get the same result again?"},
      {"regularization", "## What keeps a model from learning its records by heart?"},
      {"'tensor parallel'", "### One wide layer in several ranks"},
      {"speedup", "## How far will it scale?"},
      {"amdahl", "## How far will it scale?"},
      {"requeue", "## How do I run under Slurm?"},
      {"nohup", "## How does a run stop, and go on?"},
      {"stdin", "### Which columns and which file?"},
      {"outliers", "## What becomes of a number, a category, a missing value?"},
      {"llm", "## From a file to a model"},
      {"bom", "## What may the file look like?"},
      {"Backtesting", "## Words of other programs"},
      {"'prediction intervals'", "## Words of other programs"},
      {"'daylight saving time'", "## Words of other programs"},
      {"'custom losses'", "### A custom loss"},
      {"HuggingFace", "## From Hugging Face"},
      {"tokenizer.json", "## From Hugging Face"},
      // Words that no comment names: of a heading, and of a text alone.
      {"backup workers", "### What do backup workers drop?"},
      {"preemption", "## How do I run under Slurm?"}};
  for (const auto& [query, heading] : queries) {
    const ProcessResult answer = succeeded(help(query));
    EXPECT_NE(("\n" + answer.output).find("\n" + heading + "\n"), std::string::npos)
        << query << ":\n"
        << answer.output.substr(0, 300);
  }
}

TEST(Help, KnowsWhatAConfigCanName) {
  expect_parts(help("transformer").output, {"Layers (`model.layers`): `transformer", "meaning: "});
  expect_parts(help("gpt").output, {"Presets (`model.preset`): `gpt`", "embed"});
  expect_parts(help("huber").output, {"Losses (`train.loss`): `huber`", "train.huber_delta"});
  expect_parts(help("adamw").output, {"Optimizers (`train.optimizer`): `adamw`"});
  expect_parts(help("auc").output, {"Metrics (`eval.metrics`): `auc`"});
  expect_parts(help("bce").output, {"Losses (`train.loss`): `binary_cross_entropy`"});
  expect_parts(help("learning-rate").output, {"train.lr\n", "--train.lr"});
}

TEST(Help, KnowsNoOtherTopicsAndNamesTheNearest) {
  expect_failed(help("tabels"), kExitConfig,
                {"no help on 'tabels'", "did you mean 'tables'?", "'trainer help' lists"});
  expect_parts(help("train.learning_rate").errors, {"'train.lr'"});
  expect_parts(help("tables data").errors, {"no help on 'tables data'"});
}

}  // namespace
}  // namespace lockstep::test::help_test
