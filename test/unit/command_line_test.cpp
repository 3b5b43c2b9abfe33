// The command line: its commands, what each mistake is told, and that it wins over the file.
#include "lockstep/config/command_line.h"

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "support/error_text.h"
#include "support/known_names.h"
#include "support/seed.h"
#include "support/temporary_directory.h"

namespace lockstep::command_line_test {

using Arguments = std::vector<std::string>;

CommandLine parse(const Arguments& arguments) {
  return parse_command_line(arguments, test::options());
}

Config load(const Arguments& flags, const std::string& text) {
  Arguments arguments{"--config", "run.toml"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return load_config(parse(arguments), {"run.toml", text}, test::options());
}

std::string error_of(const Arguments& arguments) {
  return test::error_or<ConfigError>("no error", [&] { parse(arguments); });
}

// The command, its operands, its flags with all of their values, and the keys.
std::string told(const std::string& words) {
  std::istringstream stream(words);
  const CommandLine line = parse(Arguments(std::istream_iterator<std::string>(stream), {}));
  std::string text = line.command;
  for (const std::string& operand : line.operands) text += " " + operand;
  for (const auto& [flag, values] : line.flags) text += fmt::format(" --{}={}", flag, fmt::join(values, "+"));
  for (const Setting& setting : line.settings) text += fmt::format(" {}={}", setting.key, setting.value);
  return text;
}

TEST(CommandLine, KnowsItsCommands) {
  for (const auto& [words, expected] : std::vector<std::pair<const char*, const char*>>{
           {"--config a.toml", " --config=a.toml"},
           {"reference", "reference"},
           {"--version", "--version"},
           {"plan --config=a.toml --np 1,2,8 --train.global_batch 64",
            "plan --config=a.toml --np=1,2,8 train.global_batch=64"},
           {"eval --model runs/a --eval.batch 5", "eval --model=runs/a eval.batch=5"},
           {"predict --model a --input b.idx --output c.csv",
            "predict --input=b.idx --model=a --output=c.csv"},
           {"predict --overwrite --model a --input b --output - --allow-nan",
            "predict --allow-nan=true --input=b --model=a --output=- --overwrite=true"},
           {"importance --model a --repeats 3 --metric auc", "importance --metric=auc --model=a --repeats=3"},
           {"inspect a.csv --label income --json b.json", "inspect a.csv --json=b.json data.label=income"},
           {"init a.csv --label y --task classes --output b.toml",
            "init a.csv --output=b.toml --task=classes data.label=y"},
           {"compare runs/a --sort train.lr runs/b --csv -", "compare runs/a runs/b --csv=- --sort=train.lr"},
           {"report runs/a --output b.html runs/b", "report runs/a runs/b --output=b.html"},
           {"report a --json -", "report a --json=-"},
           {"watch runs/a --once", "watch runs/a --once=true"},
           {"trace runs/a --output a.json.gz", "trace runs/a --output=a.json.gz"},
           {"export --model=a --format=npz --output=b", "export --format=npz --model=a --output=b"}})
    EXPECT_EQ(told(words), expected);
  EXPECT_EQ(error_of({"inspect"}), "the file is missing; usage: trainer inspect DATA --label NAME");
  EXPECT_EQ(error_of({"inspect", "a", "b"}),
            "unexpected argument 'b'; usage: trainer inspect DATA --label NAME");
  EXPECT_EQ(error_of({"compare"}), "the directory of a run is missing; usage: trainer compare RUN ...");
  EXPECT_EQ(error_of({"status"}), "the directory of a run is missing; usage: trainer status RUN ...");
  EXPECT_EQ(
      error_of({"--config", "a", "--overwrite"}),
      "--overwrite belongs to 'trainer sweep', 'trainer cv', 'trainer plan', 'trainer bench', 'trainer "
      "eval', "
      "'trainer predict', 'trainer generate', 'trainer importance', 'trainer export', "
      "'trainer inspect', 'trainer init', 'trainer compare', 'trainer report', 'trainer "
      "export-metrics', 'trainer status', 'trainer watch', 'trainer trace'; a run is never overwritten: name "
      "another "
      "directory with --run.dir");
  EXPECT_EQ(error_of({"--overwrit"}), "--overwrit: unknown option; did you mean '--overwrite'?");
}

TEST(CommandLine, HelpWinsOverEveryMistakeButAMissingValue) {
  EXPECT_EQ(parse({"-h"}).command, "--help");
  EXPECT_EQ(parse({"plan", "--help"}).command, "--help");
  EXPECT_EQ(parse({"plan", "--help"}).operands, Arguments{"plan"});
  EXPECT_EQ(parse({"pln", "--help"}).operands, Arguments());
  EXPECT_EQ(parse({"--train.lr", "x", "--help", "--foo"}).command, "--help");
  EXPECT_EQ(parse({"--help-all"}).command, "--help-all");
  EXPECT_EQ(parse({"help"}).command, "help");
  EXPECT_EQ(parse({"help", "tables"}).operands, Arguments{"tables"});
  EXPECT_EQ(parse({"help", "early", "stopping"}).operands, (Arguments{"early", "stopping"}));
}

const std::string kKnown =
    "sweep, cv, plan, bench, eval, predict, generate, importance, export, inspect, init, compare, report, "
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
  EXPECT_EQ(error_of({"plan", "more"}),
            "unexpected argument 'more'; usage: trainer plan --config FILE --np 1,2,4,8");
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
  test::expect_parts(error_of({"evaluate", "a", "--batch", "3"}), {"unknown command 'evaluate'"});
  EXPECT_EQ(error_of({"run.dir=a"}), "unexpected 'run.dir=a'; did you mean --run.dir=a?");
}

TEST(CommandLine, RefusesKeysThatACommandDoesNotUse) {
  const auto error = [](const std::string& words) {
    return test::error_or<ConfigError>("no error", [&] { told(words); });
  };
  EXPECT_EQ(error("eval a --init b"),
            "--init starts a training, and 'trainer eval' takes the weights of the run: leave it out");
  for (const std::string words :
       {"export a --format npz --output b --init c", "predict a --input b --init c",
        "predict a --input b --data.decimal ,", "predict a --input b --data.train_labels c",
        "eval a --run.dir b", "eval a --eval.every 1", "importance a --train.lr 1",
        "generate a --data.train b", "status a --model.layers b", "trace a --run.dir b",
        "report a --output b --eval.batch 3", "inspect a --train.lr 1", "help a --train.lr 1"})
    test::expect_parts(error(words),
                       {"--", "'trainer " + words.substr(0, words.find(' ')) + "' ", "leave it out"});
  for (const std::string words :
       {"eval a --data.test b --eval.batch 3 --run.seed 4", "predict a --input b --data.encoding utf-8",
        "importance a --eval.metrics auc", "init a --train.lr 1 --run.dir b", "inspect a --data.decimal ,",
        "plan --config a --run.dir b", "generate a --prompt="})
    EXPECT_EQ(error(words), "no error") << words;
  for (const std::string words :
       {"predict a --input b --format=", "--config=", "export a --format npz --output="})
    test::expect_parts(error(words), {": its value is empty"});
}

TEST(CommandLine, RefusesAListThatIsGivenTwice) {
  EXPECT_EQ(error_of({"--config", "a", "--label", "x", "--label", "y"}),
            "--data.label is given twice, as 'x' and 'y'; give one list: --data.label x,y");
  EXPECT_EQ(error_of({"--config", "a", "--data.label", "x", "--label", "y,z"}),
            "--data.label is given twice, as 'x' and 'y,z'; give one list: --data.label x,y,z");
  EXPECT_EQ(error_of({"--config", "a", "--data.mean", "1", "--data.mean", "2"}),
            "--data.mean is given twice, as '1' and '2'; give one list: --data.mean 1,2");
  EXPECT_EQ(error_of({"--config", "a", "--label", "x", "--label", "x"}), "no error");
  EXPECT_EQ(error_of({"--config", "a", "--label", "x,y,x"}), "--data.label: 'x' stands twice: name it once");
  for (const char* text : {"--data.positive=x,x", "--data.mean=1,1", "--train.milestones=1 epochs,1 epochs"})
    EXPECT_EQ(error_of({"--config", "a", text}), "no error") << text;
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

// The last of several values counts. A count may not be the end of its range, a number may.
TEST(CommandLine, NumbersOfFlagsAreInTheirRanges) {
  CommandLine line;
  line.flags = {{"given", {"3", "7"}}, {"half", {"0.5"}}, {"text", {"x"}}, {"none", {"nan"}}};
  EXPECT_EQ(line.count("given", {7, 8}, 1), 7);
  EXPECT_EQ(line.count("other", {7, 8}, 1), 1);
  for (const auto& [flag, range] :
       {std::pair{"given", Range{8, 9}}, {"given", {1, 7}}, {"half", {0, 9}}, {"text", {-1, 9}}})
    EXPECT_THROW(line.count(flag, range, 1), ConfigError) << flag;
  EXPECT_EQ(line.number("given", {7, 9}, 1), 7);
  EXPECT_EQ(line.number("given", {1, 7}, 1), 7);
  EXPECT_EQ(line.number("half", {0, 1}, 1), 0.5);
  EXPECT_EQ(line.number("other", {7, 8}, 0.25), 0.25);
  for (const auto& [flag, range] :
       {std::pair{"given", Range{8, 9}}, {"given", {1, 6}}, {"text", {0, 9}}, {"none", {0, 9}}})
    EXPECT_THROW(line.number(flag, range, 1), ConfigError) << flag;
}

TEST(CommandLine, SaysWhatACommandNeeds) {
  EXPECT_EQ(error_of({}),
            "--config is missing; usage: mpirun -np N trainer --config FILE\n"
            "configs/ has examples, and 'trainer --help' shows the options");
  EXPECT_EQ(error_of({"plan", "--np", "2"}),
            "--config is missing; usage: trainer plan --config FILE --np 1,2,4,8\n"
            "configs/ has examples, and 'trainer --help' shows the options");
  EXPECT_EQ(error_of({"eval"}),
            "the run is missing; usage: trainer eval RUN, where RUN is the directory of a run");
  EXPECT_EQ(error_of({"predict", "--model", "a"}),
            "--input is missing; usage: trainer predict RUN --input DATA");
  EXPECT_EQ(error_of({"export", "a", "--output", "b"}),
            "--format is missing; usage: trainer export RUN --format npz --output FILE");
  EXPECT_EQ(error_of({"--config", "a", "--np", "2"}),
            "--np belongs to 'trainer plan'; mpirun -np sets the number of ranks of a run");
  EXPECT_EQ(error_of({"plan", "--config", "a", "--nodes", "2"}),
            "--nodes: unknown option; plan predicts no times on other machines: the guide performance "
            "estimates them from what bench and plan say");
  EXPECT_EQ(error_of({"--config", "a", "--model", "mlp"}),
            "--model belongs to 'trainer eval', 'trainer predict', 'trainer generate', 'trainer importance', "
            "'trainer export'; "
            "layers are set with --model.layers");
  EXPECT_EQ(error_of({"eval", "--model", "a", "--input", "b"}),
            "'trainer eval' has no --input: records to evaluate are given with --data.test FILE");
  EXPECT_EQ(error_of({"eval", "a", "--output", "b"}),
            "'trainer eval' has no --output: the figures are written with --json FILE");
}

TEST(CommandLine, TakesTheRunAsItsFirstWord) {
  const std::vector<Arguments> commands{{"eval"},
                                        {"predict", "--input", "b"},
                                        {"importance"},
                                        {"export", "--format", "npz", "--output", "c"},
                                        {"generate"}};
  for (Arguments words : commands) {
    const std::string command = words.front();
    Arguments before = words;
    words.insert(words.begin() + 1, "runs/a@best");
    const CommandLine line = parse(words);
    EXPECT_EQ(line.text("model"), "runs/a@best") << command;
    EXPECT_TRUE(line.operands.empty()) << command;
    before.insert(before.end(), {"--model", "runs/a@best"});
    EXPECT_EQ(parse(before).flags, line.flags) << command;
    before.push_back("runs/b");
    EXPECT_EQ(error_of(before),
              "the run is given twice, as 'runs/b' and by --model 'runs/a@best': leave one of them out");
    words.insert(words.begin() + 2, "runs/b");
    test::expect_parts(error_of(words), {"unexpected argument 'runs/b'; usage: trainer " + command + " RUN"});
  }
  EXPECT_EQ(parse({"predict", "a", "--input", "b"}).text("output"), "-");
  EXPECT_EQ(parse({"predict", "a", "--input", "b", "--output", "c"}).text("output"), "c");
}

TEST(CommandLine, UnderstandsShortAndNearFlags) {
  for (const Arguments& words : {Arguments{"-c", "a.toml"}, {"--conf", "a.toml"}, {"--conf=a.toml"}})
    EXPECT_EQ(parse(words).text("config"), "a.toml");
  EXPECT_EQ(error_of({"predict", "a", "--data", "b"}),
            "--data: unknown option; Lockstep calls it '--input DATA'");
  EXPECT_EQ(error_of({"generate", "a", "--max_new_tokens", "9"}),
            "--max_new_tokens: unknown option; Lockstep calls it '--length N'");
  EXPECT_EQ(error_of({"generate", "a", "-p", "In"}), "-p: unknown option; Lockstep calls it '--prompt TEXT'");
  EXPECT_EQ(error_of({"generate", "a", "--temp", "1"}),
            "--temp: unknown option; Lockstep calls it '--temperature T'");
  EXPECT_EQ(error_of({"generate", "a", "--n", "3"}),
            "--n: unknown option; --length N says how many tokens, --samples N how many texts");
  EXPECT_EQ(error_of({"predict", "a", "-o", "b"}), "-o: unknown option; Lockstep calls it '--output FILE'");
  EXPECT_EQ(
      error_of({"generate", "a", "-o", "b"}),
      "-o: unknown option; 'trainer generate' has no --output: the text goes to standard output; > FILE "
      "keeps it");
  test::expect_parts(error_of({"-n", "2"}), {"mpirun -np sets the number of ranks"});
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
      load_config(parse(arguments), {}, test::options());
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
  const Config loaded = load({"--train.lr", "0.5", "--data.validation=", "--data.mean", "1,2"},
                             "[train]\nlr = 0.1\nsteps = 9\n[data]\nvalidation = 'v'\nmean = [3]\n");
  EXPECT_EQ(std::tuple(loaded.schedule.lr, loaded.train.steps, loaded.data.validation),
            std::tuple(0.5, 9, ""));
  EXPECT_EQ(loaded.data.mean, (std::vector<double>{1, 2}));
  EXPECT_EQ(loaded.optimizer.beta1, Config{}.optimizer.beta1);
  const std::set<std::string> given{"train.lr", "train.steps", "data.validation", "data.mean"};
  EXPECT_EQ(loaded.given, given);
  const std::set<std::string> flagged{"train.lr", "data.validation", "data.mean"};
  EXPECT_EQ(loaded.flagged, flagged);
}

TEST(LoadConfig, LetsAFlagStandForWhatMeansTheSame) {
  const std::string file = "[train]\nepochs = 2\nlr = 0.1\n[data]\nvalidation = 'w'\n";
  const auto given = [&](const Arguments& flags) { return load(flags, file).given; };
  using Keys = std::set<std::string>;
  EXPECT_EQ(given({}), (Keys{"train.epochs", "train.lr", "data.validation"}));
  EXPECT_EQ(given({"--train.steps", "5"}), (Keys{"train.steps", "train.lr", "data.validation"}));
  EXPECT_EQ(given({"--train.lr", "5"}), (Keys{"train.epochs", "train.lr", "data.validation"}));
  EXPECT_EQ(load({"--data.validation", "v"}, file).data.validation, "v");
}

TEST(LoadConfig, KnowsTheSecondNameOfAFlag) {
  const Config loaded = load({"--init", "w.safetensors"}, "[train]\ninit = 'old'\n");
  EXPECT_EQ(loaded.train.init, "w.safetensors");
  EXPECT_EQ(loaded.given, std::set<std::string>{"train.init"});
  EXPECT_THROW(load({}, "init = 'old'\n"), ConfigError);
}

TEST(LoadConfig, TakesTheLastOfSeveralFlags) {
  EXPECT_EQ(load({"--train.lr", "0.5", "--train.lr", "0.25"}, "").schedule.lr, 0.25);
  EXPECT_EQ(load({"--train.lr", "x", "--train.lr=", "--train.lr", "0.25"}, "").schedule.lr, 0.25)
      << "whatever the others are";
  EXPECT_THROW(load({"--train.lr", "0.25", "--train.lr", "x"}, ""), ConfigError);
}

TEST(LoadConfig, TakesAFlagAndAKeyAsTheSameText) {
  for (const std::string text : {"dense(10)", "[1,2]", "{}", "%%", "a,b", " a ", "\\n"}) {
    EXPECT_EQ(load({"--model.layers", text}, "").model.layers, text);
    EXPECT_EQ(load({}, "model.layers = '" + text + "'").model.layers, text);
  }
}

TEST(LoadConfig, ChecksAKeyEvenWhereAFlagOverridesIt) {
  EXPECT_THROW(load({"--train.lr", "0.5"}, "[train]\nlr = 'x'"), ConfigError);
}

}  // namespace lockstep::command_line_test
