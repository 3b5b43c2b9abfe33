// The command line: its commands, what each mistake is told, and that it wins over the file.
#include "lockstep/config/command_line.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "support/known_names.h"
#include "support/seed.h"
#include "support/temporary_directory.h"

namespace lockstep {
namespace {

using Arguments = std::vector<std::string>;

CommandLine parse(const Arguments& arguments) {
  return parse_command_line(arguments, test::known_names());
}

LoadedConfig load(const Arguments& flags, const std::string& text) {
  Arguments arguments{"--config", "run.toml"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return load_config(parse(arguments), {"run.toml", text}, test::known_names());
}

std::string error_of(const Arguments& arguments) {
  try {
    parse(arguments);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(CommandLine, SaysWhatOfAPredictionIsWanted) {
  const auto words = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"predict", "--model", "a", "--input", "-", "--output", "c.csv"});
    return more;
  };
  const PredictRequest none = parse(words({})).predict;
  EXPECT_FALSE(none.keep || none.probabilities || none.top > 0 || none.threshold);
  const PredictRequest some = parse(words({"--keep", "id,name", "--threshold", "0.25"})).predict;
  EXPECT_EQ(some.keep, "id,name");
  EXPECT_EQ(some.threshold, 0.25);
  EXPECT_EQ(parse(words({"--top", "3", "--format", "jsonl"})).predict.top, 3);
  EXPECT_TRUE(parse(words({"--proba"})).predict.probabilities);
  for (const char* bad : {"1.5", "x", "nan"}) {
    EXPECT_EQ(error_of(words({"--threshold", bad})),
              fmt::format("--threshold: expected a probability from 0 to 1, found '{}'", bad));
  }
  EXPECT_EQ(error_of(words({"--top", "0"})), "--top: expected a number of classes, 1 or more, found '0'");
  EXPECT_NE(error_of(words({"--top", "2", "--proba"})).find("give one of them"), std::string::npos);
  EXPECT_NE(error_of(words({"--top", "2", "--threshold", "0.5"})).find("give one of them"),
            std::string::npos);
}

TEST(CommandLine, KnowsItsCommands) {
  EXPECT_EQ(parse({"--config", "a.toml"}).command, "");
  EXPECT_EQ(parse({"--config", "a.toml"}).config_file, "a.toml");
  EXPECT_EQ(parse({"reference"}).command, "reference");
  EXPECT_EQ(parse({"--version"}).command, "--version");
  const CommandLine plan = parse({"plan", "--config=a.toml", "--np", "1,2,8", "--train.global_batch", "64"});
  EXPECT_EQ(plan.command, "plan");
  EXPECT_EQ(plan.config_file, "a.toml");
  EXPECT_EQ(plan.plan_np, (std::vector<Index>{1, 2, 8}));
  EXPECT_EQ(parse({"--config", "a.toml", "plan"}).plan_np, std::vector<Index>{1});
  const CommandLine eval = parse({"eval", "--model", "runs/a", "--eval.batch", "5"});
  EXPECT_EQ(eval.command, "eval");
  EXPECT_EQ(eval.model, "runs/a");
  const CommandLine predict = parse({"predict", "--model", "a", "--input", "b.idx", "--output", "c.csv"});
  EXPECT_EQ(predict.command, "predict");
  EXPECT_EQ(predict.model + predict.input + predict.output, "ab.idxc.csv");
  EXPECT_FALSE(predict.overwrite || predict.allow_nan);
  const CommandLine again =
      parse({"predict", "--overwrite", "--model", "a", "--input", "b", "--output", "-", "--allow-nan"});
  EXPECT_TRUE(again.overwrite && again.allow_nan);
  EXPECT_EQ(again.model + again.input + again.output, "ab-");
  const CommandLine importance = parse({"importance", "--model", "a", "--repeats", "3", "--metric", "auc"});
  EXPECT_EQ(importance.command, "importance");
  EXPECT_EQ(importance.metric, "auc");
  EXPECT_EQ(importance.repeats, 3);
  EXPECT_EQ(parse({"importance", "--model", "a", "--partial", "age"}).points, 20);
  EXPECT_EQ(error_of({"importance", "--model", "a", "--repeats", "0"}),
            "--repeats: expected a whole number from 1 to 1000, found '0'");
  EXPECT_EQ(error_of({"importance", "--model", "a", "--points", "9"}),
            "--points belongs to --partial COLUMN: name the column, or leave it out");
  EXPECT_EQ(error_of({"importance", "--model", "a", "--partial", "age", "--metric", "auc"}),
            "--metric has no effect with --partial: leave out one");
  EXPECT_EQ(
      error_of({"--config", "a", "--overwrite"}),
      "--overwrite belongs to 'trainer plan', 'trainer bench', 'trainer eval', 'trainer predict', 'trainer "
      "importance', 'trainer export', "
      "'trainer inspect', 'trainer init', 'trainer compare', 'trainer report', 'trainer "
      "export-metrics', 'trainer status', 'trainer watch', 'trainer trace'; a run is never overwritten: name "
      "another "
      "directory with --run.dir");
  EXPECT_EQ(error_of({"--overwrit"}), "--overwrit: unknown option; did you mean '--overwrite'?");
  const CommandLine inspect = parse({"inspect", "a.csv", "--label", "income", "--json", "b.json"});
  EXPECT_EQ(inspect.command, "inspect");
  EXPECT_EQ(inspect.data + inspect.json, "a.csvb.json");
  EXPECT_EQ(error_of({"inspect"}), "the file is missing; usage: trainer inspect DATA --label NAME");
  EXPECT_EQ(error_of({"inspect", "a", "b"}), "unexpected argument 'b'; 'trainer --help' shows the usage");
  const CommandLine init =
      parse({"init", "a.csv", "--label", "y", "--task", "classes", "--output", "b.toml"});
  EXPECT_EQ(init.data + init.task + init.output, "a.csvclassesb.toml");
  const CommandLine compare = parse({"compare", "runs/a", "--sort", "train.lr", "runs/b", "--csv", "-"});
  EXPECT_EQ(compare.runs, (std::vector<std::string>{"runs/a", "runs/b"}));
  EXPECT_EQ(compare.sort + compare.csv, "train.lr-");
  EXPECT_EQ(error_of({"compare"}), "the directory of a run is missing; usage: trainer compare RUN ...");
  const CommandLine report = parse({"report", "runs/a", "--output", "b.html", "runs/b"});
  EXPECT_EQ(report.command, "report");
  EXPECT_EQ(report.runs, (std::vector<std::string>{"runs/a", "runs/b"}));
  EXPECT_EQ(report.output, "b.html");
  EXPECT_EQ(error_of({"status"}), "the directory of a run is missing; usage: trainer status RUN ...");
  EXPECT_TRUE(parse({"watch", "runs/a", "--once"}).once);
  EXPECT_EQ(parse({"trace", "runs/a", "--output", "a.json.gz"}).output, "a.json.gz");
  EXPECT_EQ(parse({"report", "a", "--json", "-"}).json, "-");
  const CommandLine exported = parse({"export", "--model=a", "--format=npz", "--output=b"});
  EXPECT_EQ(exported.command, "export");
  EXPECT_EQ(exported.model + exported.format + exported.output, "anpzb");
}

TEST(CommandLine, HelpWinsOverEveryMistakeButAMissingValue) {
  EXPECT_EQ(parse({"-h"}).command, "--help");
  EXPECT_EQ(parse({"plan", "--help"}).command, "--help");
  EXPECT_EQ(parse({"plan", "--help"}).topic, "plan");
  EXPECT_EQ(parse({"pln", "--help"}).topic, "");
  EXPECT_EQ(parse({"--train.lr", "x", "--help", "--foo"}).command, "--help");
  EXPECT_EQ(parse({"--help-all"}).command, "--help-all");
  EXPECT_EQ(parse({"help"}).command, "help");
  EXPECT_EQ(parse({"help", "tables"}).topic, "tables");
  EXPECT_EQ(error_of({"help", "a", "b"}), "unexpected argument 'b'; 'trainer --help' shows the usage");
}

const std::string kKnown =
    "sweep, cv, plan, bench, eval, predict, importance, export, inspect, init, compare, report, "
    "export-metrics, status, watch, trace, reference, help";

TEST(CommandLine, NamesTheNearestOptionOrCommand) {
  EXPECT_EQ(error_of({"--train.lrr", "1"}), "--train.lrr: unknown option; did you mean '--train.lr'?");
  EXPECT_EQ(error_of({"--train.lrr=1"}), "--train.lrr: unknown option; did you mean '--train.lr'?");
  EXPECT_EQ(error_of({"--eval.bach", "1"}), "--eval.bach: unknown option; did you mean '--eval.batch'?");
  EXPECT_EQ(error_of({"--lr", "1"}), "--lr: unknown option; did you mean '--train.lr'?");
  EXPECT_EQ(error_of({"-lr", "1"}), "-lr: unknown option; did you mean '--train.lr'?");
  EXPECT_EQ(error_of({"--confg", "a.toml"}), "--confg: unknown option; did you mean '--config'?");
  EXPECT_EQ(error_of({"--colour_of_the_sky"}),
            "--colour_of_the_sky: unknown option; 'trainer --help-all' lists them");
  EXPECT_EQ(error_of({"pln"}),
            "unknown command 'pln'; did you mean 'plan'? (known: " + kKnown + "; to train, give no command)");
  EXPECT_EQ(error_of({"--int", "a"}), "--int: unknown option; did you mean '--init'?");
  EXPECT_EQ(error_of({""}), "unknown command '' (known: " + kKnown + "; to train, give no command)");
  EXPECT_EQ(error_of({"a.toml"}), "unexpected 'a.toml'; did you mean --config a.toml?");
  EXPECT_EQ(error_of({"--train.lrr", "1", "plan"}),
            "--train.lrr: unknown option; did you mean '--train.lr'?");
  EXPECT_EQ(error_of({"plan", "more"}), "unexpected argument 'more'; 'trainer --help' shows the usage");
}

TEST(CommandLine, KnowsWordsOfOtherPrograms) {
  EXPECT_EQ(error_of({"--train.learning_rate", "1"}),
            "--train.learning_rate: unknown option; Lockstep calls it '--train.lr'");
  EXPECT_EQ(error_of({"--learning-rate=1"}),
            "--learning-rate: unknown option; Lockstep calls it '--train.lr'");
  EXPECT_EQ(error_of({"--batch-size", "64"}),
            "--batch-size: unknown option; Lockstep has train.global_batch (samples per update over all "
            "replicas) and train.per_replica_batch (of each replica)");
  EXPECT_EQ(error_of({"--target", "income"}), "--target: unknown option; Lockstep calls it '--data.label'");
  EXPECT_EQ(error_of({"--no-cuda"}), "--no-cuda: unknown option; Lockstep trains on CPUs only: leave it out");
  EXPECT_EQ(error_of({"--train.optimizer", "Adam"}),
            "--train.optimizer: expected one of 'sgd', 'adam', found 'Adam'; did you mean 'adam'?");
  EXPECT_EQ(
      error_of({"--train.optimizer", "momentum"}),
      "--train.optimizer: expected one of 'sgd', 'adam', found 'momentum'; Lockstep calls it 'sgd', with "
      "train.momentum");
  EXPECT_EQ(error_of({"--distribute.strategy", "ddp"}),
            "--distribute.strategy: expected one of 'auto', 'allreduce', found 'ddp'; Lockstep calls it "
            "'allreduce'");
  EXPECT_EQ(error_of({"evaluate", "--model", "a"}),
            "unknown command 'evaluate'; Lockstep calls it 'eval' (known: " + kKnown +
                "; to train, give no command)");
  EXPECT_EQ(error_of({"run.dir=a"}), "unexpected 'run.dir=a'; did you mean --run.dir=a?");
}

TEST(CommandLine, RefusesAListThatIsGivenTwice) {
  EXPECT_EQ(error_of({"--config", "a", "--label", "x", "--label", "y"}),
            "--data.label is given twice, as 'x' and 'y'; give one list: --data.label x,y");
  EXPECT_EQ(error_of({"--config", "a", "--data.label", "x", "--label", "y,z"}),
            "--data.label is given twice, as 'x' and 'y,z'; give one list: --data.label x,y,z");
  EXPECT_EQ(error_of({"--config", "a", "--data.mean", "1", "--data.mean", "2"}),
            "--data.mean is given twice, as '1' and '2'; give one list: --data.mean 1,2");
  EXPECT_EQ(error_of({"--config", "a", "--label", "x", "--label", "x"}), "no error");
}

TEST(CommandLine, ChecksValuesBeforeAnyFileIsRead) {
  EXPECT_EQ(error_of({"--train.lr", "abc"}),
            "--train.lr: expected a number above 0 and at most 1000000, found 'abc'");
  EXPECT_EQ(error_of({"--train.lr", "-1"}),
            "--train.lr: expected a number above 0 and at most 1000000, found '-1'");
  EXPECT_EQ(error_of({"--train.lr", "--train.epochs", "1"}),
            "--train.lr: expected a number above 0 and at most 1000000, found '--train.epochs'");
  EXPECT_EQ(error_of({"--train.lr="}), "--train.lr: expected a number above 0 and at most 1000000, found ''");
  EXPECT_EQ(error_of({"--train.lr"}),
            "--train.lr: a value is missing after it: expected a number above 0 and at most 1000000");
  EXPECT_EQ(error_of({"--config"}), "--config: a value is missing after it");
  EXPECT_EQ(error_of({"--train.optimizer", "adm"}),
            "--train.optimizer: expected one of 'sgd', 'adam', found 'adm'; did you mean 'adam'?");
}

TEST(CommandLine, SaysWhatACommandNeeds) {
  EXPECT_EQ(error_of({}),
            "--config is missing; usage: mpirun -np N trainer --config FILE\n"
            "configs/ has examples, and 'trainer --help' shows the options");
  EXPECT_EQ(error_of({"plan", "--np", "2"}),
            "--config is missing; usage: trainer plan --config FILE --np 1,2,4,8\n"
            "configs/ has examples, and 'trainer --help' shows the options");
  EXPECT_EQ(error_of({"eval"}),
            "--model is missing; usage: trainer eval --model RUN, where RUN is the directory of a run");
  EXPECT_EQ(error_of({"predict", "--model", "a", "--input", "b"}),
            "--output is missing; usage: trainer predict --model RUN --input DATA --output FILE");
  EXPECT_EQ(error_of({"export", "--model", "a", "--output", "b"}),
            "--format is missing; usage: trainer export --model RUN --format npz --output FILE");
  EXPECT_EQ(error_of({"--config", "a", "--np", "2"}),
            "--np belongs to 'trainer plan'; mpirun -np sets the number of ranks of a run");
  EXPECT_EQ(error_of({"--config", "a", "--model", "mlp"}),
            "--model belongs to 'trainer eval', 'trainer predict', 'trainer importance', 'trainer export'; "
            "layers are set with --model.layers");
  EXPECT_EQ(error_of({"eval", "--model", "a", "--input", "b"}),
            "--input belongs to 'trainer predict'; the data of a run is set with --data.train, "
            "--data.validation and --data.test");
}

TEST(CommandLine, KnowsTheNodesOfPlan) {
  const PlannedNodes planned =
      parse({"plan", "--config", "a", "--nodes", "64", "--ranks-per-node", "32", "--cores-per-node", "48",
             "--latency", "2us", "--bandwidth", "25Gbit", "--from", "b.json"})
          .planned;
  EXPECT_EQ(planned.nodes, 64);
  EXPECT_EQ(planned.ranks_per_node, 32);
  EXPECT_EQ(planned.cores, 48);
  EXPECT_DOUBLE_EQ(planned.latency, 2e-6);
  EXPECT_DOUBLE_EQ(planned.bandwidth, 25e9 / 8);
  EXPECT_EQ(planned.bench, "b.json");
  EXPECT_EQ(parse({"plan", "--config", "a"}).planned.nodes, 0);
  EXPECT_EQ(parse({"plan", "--config", "a", "--nodes", "1", "--from", "b"}).planned.ranks_per_node, 1);
}

TEST(CommandLine, ChecksTheNodesOfPlan) {
  const auto error = [](const Arguments& flags) {
    Arguments arguments{"plan", "--config", "a", "--from", "b"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return error_of(arguments);
  };
  EXPECT_EQ(error({"--nodes", "0"}), "--nodes: expected a whole number from 1 to 1048576, found '0'");
  EXPECT_EQ(error({"--nodes", "2", "--ranks-per-node", "x"}),
            "--ranks-per-node: expected a whole number from 1 to 1048576, found 'x'");
  EXPECT_EQ(error({"--nodes", "65536", "--ranks-per-node", "32"}),
            "--nodes 65536 --ranks-per-node 32: expected at most 1048576 ranks in all");
  EXPECT_EQ(error({"--nodes", "2", "--bandwidth", "1Gbit"}),
            "--latency is missing: with several --nodes, expected a time such as 500ns, 2us or 0.1ms");
  EXPECT_EQ(error({"--nodes", "2", "--bandwidth", "1Gbit", "--latency", "2"}),
            "--latency: expected a time such as 500ns, 2us or 0.1ms, found '2'");
  EXPECT_EQ(error({"--nodes", "2", "--latency", "2us", "--bandwidth", "25"}),
            "--bandwidth: expected bits or bytes per second such as 25Gbit, 100Mbit or 3GB, found '25'");
  EXPECT_EQ(error({"--nodes", "2", "--np", "2"}), "--np and --nodes: give one of them");
  EXPECT_EQ(error({}), "--from of plan describes machines: add --nodes");
  EXPECT_EQ(
      error_of({"plan", "--config", "a", "--nodes", "1"}),
      "--from is missing: how fast ranks compute is measured, not told; run 'mpirun -np 2 trainer bench "
      "--config a --json bench.json' first and add --from bench.json");
  EXPECT_EQ(error_of({"--config", "a", "--nodes", "2"}),
            "--nodes belongs to 'trainer plan'; mpirun and its hosts decide where a run is");
}

TEST(CommandLine, ChecksTheWorldSizesOfPlan) {
  for (const std::string np : {"x", "1,", ",1", "1,,2", "0", "-1", "1.5", "1 2"}) {
    EXPECT_EQ(error_of({"plan", "--config", "a", "--np", np}),
              "--np: expected numbers of ranks from 1 to 1048576, such as 1,2,4,8, found '" + np + "'");
  }
}

TEST(CommandLine, AnyArgumentsParseOrAreAConfigError) {
  std::mt19937_64 random(test::seed());
  const Arguments words{"--config",   "a.toml",       "plan",        "eval",       "--np",
                        "1,2",        "--model",      "--",          "-",          "",
                        "=",          "--=",          "-h",          "-hx",        "-h=1",
                        "--help=no",  "--version",    "--version=2", "-1",         "---",
                        "--train.lr", "--train.lr=1", "-c",          "--train",    "--eval.x",
                        "[a,b]",      "{}",           "%%",          "@",          "--data.mean=[1,2]",
                        "/h",         "++",           "plan.x",      "--plan.x=1", "\xff",
                        "reference"};
  int parsed = 0;
  for (int round = 0; round < 3000; ++round) {
    Arguments arguments(1 + random() % 5);
    for (std::string& argument : arguments) argument = words[random() % words.size()];
    try {
      load_config(parse(arguments), {}, test::known_names());
      ++parsed;
    } catch (const ConfigError&) {
    } catch (const std::exception& error) {
      FAIL() << error.what() << "\nfrom " << testing::PrintToString(arguments);
    }
  }
  EXPECT_GT(parsed, 0);
  EXPECT_LT(parsed, 3000);
}

TEST(ReadConfigFile, SaysWhyItCannot) {
  const test::TemporaryDirectory directory;
  const std::string file = (directory.path() / "fashion_mlp.toml").string();
  const auto error_for = [](const std::string& name) -> std::string {
    try {
      return read_config_file(name).text;
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(error_for(file),
            "--config: cannot open '" + file + "': No such file or directory; configs/ has examples");
  write_file_atomically(file, "[run]\n");
  EXPECT_EQ(error_for(file), "[run]\n");
  const std::string typo = (directory.path() / "fashion_mpl.toml").string();
  EXPECT_EQ(error_for(typo),
            "--config: cannot open '" + typo + "': No such file or directory; did you mean '" + file + "'?");
}

TEST(LoadConfig, TakesFlagsOverFileOverDefaults) {
  const LoadedConfig loaded = load({"--train.lr", "0.5", "--data.validation=", "--data.mean", "1,2"},
                                   "[train]\nlr = 0.1\nsteps = 9\n[data]\nvalidation = 'v'\nmean = [3]\n");
  EXPECT_EQ(loaded.config.schedule.lr, 0.5);
  EXPECT_EQ(loaded.config.train.steps, 9);
  EXPECT_EQ(loaded.config.data.validation, "");
  EXPECT_EQ(loaded.config.data.mean, (std::vector<double>{1, 2}));
  EXPECT_EQ(loaded.config.optimizer.beta1, Config{}.optimizer.beta1);
  const std::set<std::string> given{"train.lr", "train.steps", "data.validation", "data.mean"};
  EXPECT_EQ(loaded.given, given);
  const std::set<std::string> flagged{"train.lr", "data.validation", "data.mean"};
  EXPECT_EQ(loaded.flagged, flagged);
}

TEST(LoadConfig, KnowsTheSecondNameOfAFlag) {
  const LoadedConfig loaded = load({"--init", "w.safetensors"}, "[train]\ninit = 'old'\n");
  EXPECT_EQ(loaded.config.train.init, "w.safetensors");
  EXPECT_EQ(loaded.given, std::set<std::string>{"train.init"});
  EXPECT_THROW(load({}, "init = 'old'\n"), ConfigError);
}

TEST(LoadConfig, TakesTheLastOfSeveralFlags) {
  EXPECT_EQ(load({"--train.lr", "0.5", "--train.lr", "0.25"}, "").config.schedule.lr, 0.25);
}

TEST(LoadConfig, TakesAFlagAndAKeyAsTheSameText) {
  for (const std::string text : {"dense(10)", "[1,2]", "{}", "%%", "a,b", " a ", "\\n"}) {
    EXPECT_EQ(load({"--model.layers", text}, "").config.model.layers, text);
    EXPECT_EQ(load({}, "model.layers = '" + text + "'").config.model.layers, text);
  }
}

TEST(LoadConfig, ChecksAKeyEvenWhereAFlagOverridesIt) {
  EXPECT_THROW(load({"--train.lr", "0.5"}, "[train]\nlr = 'x'"), ConfigError);
}

}  // namespace
}  // namespace lockstep
