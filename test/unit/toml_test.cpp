// Reading a config file: what each mistake is told, and that nothing but ConfigError comes of any text.
// Writing it: read again, it is the same Config.
#include "lockstep/config/toml.h"

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/config/command_line.h"
#include "support/config_text.h"
#include "support/error_text.h"
#include "support/known_names.h"
#include "support/seed.h"

namespace lockstep::test::toml_test {

std::string to_toml(const Config& config, const std::set<std::string>& without_effect = {}) {
  return lockstep::to_toml(config, options(), without_effect);
}

std::uint64_t config_hash(const Config& config) {
  return lockstep::config_hash(config, options());
}

constexpr const char* kValid = R"toml([run]
dir = "runs/fashion_mlp"   # a comment
seed = 7
[data]
format = "idx"
train = "/usr/share/datasets/train-images-idx3-ubyte.gz"
mode = "full"
mean = 0.5
std = [0.25, 1]
[eval]
metrics = ["auc", "recall"]
threshold = 0.25   # or a word
[model]
layers = "dense(256) relu dense(10)"
[train]
optimizer = "sgd"
momentum = 0.9
nesterov = true
lr = 1
epochs = 10
global_batch = 128
[distribute]
reduction = "ordered"
)toml";

TEST(TomlReader, ReadsEveryType) {
  const Config config = load(kValid);
  EXPECT_EQ(std::tuple(config.run.dir, config.run.seed, config.data.mode),
            std::tuple("runs/fashion_mlp", 7, DataMode::kFull));
  EXPECT_EQ(config.data.mean, std::vector<double>{0.5});
  EXPECT_EQ(config.data.std, (std::vector<double>{0.25, 1.0}));
  EXPECT_EQ(config.eval.metrics, (std::vector<std::string>{"auc", "recall"}));
  EXPECT_EQ(config.eval.threshold, "0.25");
  EXPECT_TRUE(config.optimizer.nesterov);
  EXPECT_EQ(std::tuple(config.schedule.lr, config.train.epochs, config.distribute.reduction),
            std::tuple(1.0, 10.0, Reduction::kOrdered));
}

TEST(TomlReader, TakesOtherSpellingsOfTheSameKeys) {
  EXPECT_EQ(load("train.lr = 0.5").schedule.lr, 0.5);
  EXPECT_EQ(load("train = { lr = 0.5 }").schedule.lr, 0.5);
  EXPECT_EQ(load("eval.metrics = 'auc'").eval.metrics, std::vector<std::string>{"auc"});
  EXPECT_EQ(load("").schedule.lr, Config{}.schedule.lr);
  EXPECT_EQ(load("[train]\nsteps = 1_000").train.steps, 1000);
}

TEST(TomlReader, ReadsNumbersThatMayBeWords) {
  const auto stages = [](const std::string& value) {
    return load("[distribute]\nstages = " + value).distribute.stages;
  };
  EXPECT_EQ(stages("4"), 4);
  EXPECT_EQ(stages("\"auto\""), kAutoStages);
  expect_parts(to_toml(load("[distribute]\nstages = \"auto\"")), {"\nstages = \"auto\"\n"});
  expect_parts(to_toml(load("[distribute]\nstages = 4")), {"\nstages = 4\n"});
  const std::string expected =
      "run.toml:2: distribute.stages: expected auto, or a whole number from 1 to 1000000, found ";
  EXPECT_EQ(error_of("[distribute]\nstages = 0"), expected + "0");
  EXPECT_EQ(error_of("[distribute]\nstages = 2.5"), expected + "2.5");
  EXPECT_EQ(error_of("[distribute]\nstages = \"all\""), expected + "the string \"all\"");
  EXPECT_EQ(load("[distribute]\ncut = [3, 7]").distribute.cut, (std::vector<std::string>{"3", "7"}));
  EXPECT_EQ(load("[distribute]\ncut = 3").distribute.cut, std::vector<std::string>{"3"});
}

TEST(TomlReader, ReadsTablesOfTexts) {
  const std::vector<std::string> pairs{"0=encoder.lstm", "2.weight=head.w"};
  for (const char* text : {"init_rename = {\"0\" = \"encoder.lstm\", \"2.weight\" = \"head.w\"}",
                           "init_rename = {0 = \"encoder.lstm\", 2.weight = \"head.w\"}",
                           "[train.init_rename]\n0 = \"encoder.lstm\"\n2.weight = \"head.w\"",
                           "init_rename = [\"0=encoder.lstm\", \"2.weight=head.w\"]"}) {
    const Config config = load(std::string("[train]\n") + text);
    EXPECT_EQ(config.train.init_rename, pairs) << text;
    EXPECT_EQ(load(to_toml(config)).train.init_rename, pairs);
  }
  EXPECT_EQ(load("[train]\ninit_rename = {\"0\" = \"a,b\"}").train.init_rename,
            std::vector<std::string>{"0=a,b"});
  EXPECT_TRUE(load("[train]\ninit_rename = {}").train.init_rename.empty());
  EXPECT_EQ(
      error_of("[train]\ninit_rename = {0 = \"a\", 2 = 3}"),
      "run.toml:2: train.init_rename: expected a table such as {\"0\" = \"encoder.lstm\"}, or a list of "
      "texts such as \"0=encoder.lstm\", found a section");
  expect_parts(error_of("[train]\nlr_multiplier = {0 = \"a\"}"), {"found a section"});
}

TEST(TomlReader, NamesTheNearestKey) {
  EXPECT_EQ(error_of("[train]\n\nlrr = 1"), "run.toml:3: unknown key 'train.lrr'; did you mean 'train.lr'?");
  EXPECT_EQ(error_of("lr = 1"), "run.toml:1: unknown key 'lr'; did you mean 'train.lr'?");
  EXPECT_EQ(error_of("[model]\nloss = 'x'"),
            "run.toml:2: unknown key 'model.loss'; did you mean 'train.loss'?");
  EXPECT_EQ(error_of("[train]\ncolour_of_the_sky = 1"),
            "run.toml:2: unknown key 'train.colour_of_the_sky'; 'trainer --help-all' lists every key");
}

TEST(TomlReader, NamesTheNearestSection) {
  EXPECT_EQ(
      error_of("\n[trian]\nlr = 1"),
      "run.toml:2: unknown section [trian]; did you mean 'train'? (known: run, data, model, train, eval, "
      "checkpoint, report, distribute, comm, debug)");
  EXPECT_EQ(error_of("[[train]]\nlr = 1"), "run.toml:1: expected a section, [train], found a list of 1");
  EXPECT_EQ(error_of("train = 3"), "run.toml:1: expected a section, [train], found 3");
  EXPECT_EQ(error_of("[train.lr]\nx = 1"),
            "run.toml:1: train.lr: expected a number above 0 and at most 1000000, found a section");
}

TEST(TomlReader, RefusesWrongTypesAndValuesOutOfRange) {
  const std::string number = "expected a number above 0 and at most 1000000, found ";
  const std::string whole = "expected a whole number from 1 to 1000000000000, found ";
  const std::string numbers = "expected a number or a list of numbers";
  for (const auto& [key, value, refusal] : std::vector<std::array<std::string, 3>>{
           {"train.epochs", "\"ten\"", number + "the string \"ten\""},
           {"train.epochs", "'10'", number + "the string \"10\""},
           {"train.steps", "10.0", whole + "10.0"},
           {"train.lr", "true", number + "true"},
           {"train.lr", "[]", number + "an empty list"},
           {"train.lr", "[1, 2]", number + "a list of 2"},
           {"train.lr", "2020-01-01", number + "a date"},
           {"train.lr", "10:00:00", number + "a time of day"},
           {"train.lr", "-1", number + "-1"},
           {"train.lr", "nan", number + "nan"},
           {"train.lr", "inf", number + "inf"},
           {"train.nesterov", "1", "expected true or false, found 1"},
           {"train.nesterov", "'true'", "expected true or false, found the string \"true\""},
           {"train.warmup", "5", "expected text such as \"5 epochs\", found 5"},
           {"train.optimizer", "'adm'",
            "expected one of 'sgd', 'adam', found the string \"adm\"; did you mean 'adam'?"},
           {"data.mean", "[0.1, 'a']", numbers + ", found a list of 2"},
           {"data.mean", "[]", numbers + ", found an empty list"},
           {"data.std", "[1, 0]", numbers + " above 0, found a list of 2"}}) {
    const std::size_t dot = key.find('.');
    EXPECT_EQ(error_of("[" + key.substr(0, dot) + "]\n" + key.substr(dot + 1) + " = " + value),
              "run.toml:2: " + key + ": " + refusal);
  }
}

TEST(TomlReader, RefusesListsWithAnUnknownName) {
  const auto refusal = [](const std::string& list) { return error_of("[eval]\nmetrics = " + list); };
  const std::string expected = "run.toml:2: eval.metrics: expected one or several of 'auc', 'recall', found ";
  EXPECT_EQ(refusal("['auc', 'recal']"), expected + "a list of 2; did you mean 'recall'?");
  EXPECT_EQ(refusal("['auc,recall']"), expected + "a list of 1; did you mean 'auc'?");
  EXPECT_EQ(refusal("['auc', 1]"), expected + "a list of 2");
  EXPECT_EQ(refusal("[]"), expected + "an empty list");
  EXPECT_EQ(refusal("''"), expected + "the string \"\"");
}

TEST(TomlReader, ReportsEveryMistakeInTheOrderOfLines) {
  EXPECT_EQ(error_of("[train]\nsteps = 0\nlr = 'x'\n[data]\nfoo_bar_baz = 1"),
            "run.toml:2: train.steps: expected a whole number from 1 to 1000000000000, found 0\n"
            "run.toml:3: train.lr: expected a number above 0 and at most 1000000, found the string \"x\"\n"
            "run.toml:5: unknown key 'data.foo_bar_baz'; 'trainer --help-all' lists every key");
}

TEST(TomlReader, SaysWhereTheSyntaxIsWrong) {
  const std::string twice = error_of("[train]\nlr = 1\nlr = 2\n");
  EXPECT_TRUE(twice.starts_with("run.toml:3:6: not valid TOML: ")) << twice;
  EXPECT_TRUE(twice.ends_with("\n  lr = 2")) << twice;
  const std::vector<std::pair<std::string, std::string>> broken{
      {"[train]\nlr = ", "run.toml:2"},      {"[train\nlr = 1", "run.toml:1"},
      {"[train]\n[train]", "run.toml:2"},    {"[train]\nsteps = 99999999999999999999", "run.toml:2"},
      {"[run]\ndir = '\xff'", "run.toml:2"}, {"[run]\ndir = \"open", "run.toml:2"},
  };
  for (const auto& [text, place] : broken) {
    const std::string error = error_of(text);
    EXPECT_TRUE(error.starts_with(place + ":")) << error;
    expect_parts(error, {": not valid TOML: "});
    EXPECT_TRUE(is_text(error)) << "a terminal should not get raw bytes: " << error;
  }
}

TEST(TomlReader, AnyTextLoadsOrIsAConfigError) {
  std::mt19937_64 random(test::seed());
  const std::string valid = kValid;
  const std::string bytes = std::string(1, '\0') + "\"'[]{}=.,#\n\t 0919eEnaitrufls-+_\\u\x7f\xc3\xff:";
  const auto below = [&random](std::size_t end) { return random() % end; };
  int loaded = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string text = valid;
    for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
      const std::size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text[at] = bytes[below(bytes.size())];
          break;
        case 1:
          text.insert(at, 1, bytes[below(bytes.size())]);
          break;
        case 2:
          text.erase(at, 1 + below(12));
          break;
        default:
          text.insert(at, valid.substr(below(valid.size()), below(40)));
          break;
      }
    }
    try {
      load(text);
      ++loaded;
    } catch (const ConfigError& error) {
      EXPECT_TRUE(std::string_view(error.what()).starts_with("run.toml:")) << error.what();
    } catch (const std::exception& error) {
      FAIL() << error.what() << "\nfrom the text\n" << text;
    }
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, 5000);
}

// Every field that is not at its default, chosen to be awkward.
Config awkward_config() {
  Config config;
  config.run.dir = "a \"quoted\" \\ path\n\twith é and \x01\x7f";
  config.run.seed = std::numeric_limits<Index>::max();
  config.run.progress = ProgressStyle::kPlain;
  config.data.format = "synthetic";
  config.data.mode = DataMode::kFull;
  config.data.mean = {0.1, -1.0 / 3.0, 1e300};
  config.data.std = {std::numeric_limits<double>::denorm_min()};
  config.optimizer.nesterov = true;
  config.optimizer.epsilon = std::nextafter(1.0, 2.0);
  config.schedule.lr = 1e-22;
  config.train.epochs = 2.5;
  config.train.tail = Tail::kDrop;
  config.train.per_replica_batch = 3;
  config.distribute.reduction = Reduction::kOrdered;
  config.debug.fail_rank = 0;
  return config;
}

TEST(TomlWriter, ReadAgainIsTheSameConfig) {
  for (const Config& config : {Config{}, awkward_config(), load(kValid)}) {
    const std::string toml = to_toml(config);
    EXPECT_EQ(to_toml(load(toml)), toml);
  }
  const Config again = load(to_toml(awkward_config())), expected = awkward_config();
  EXPECT_EQ(std::tuple(again.run.dir, again.run.seed, again.data.mean, again.data.std),
            std::tuple(expected.run.dir, expected.run.seed, expected.data.mean, expected.data.std));
  EXPECT_EQ(std::tuple(again.optimizer.epsilon, again.schedule.lr, again.train.epochs),
            std::tuple(expected.optimizer.epsilon, expected.schedule.lr, expected.train.epochs));
  EXPECT_EQ(again.train.tail, expected.train.tail);
  EXPECT_EQ(again.debug.fail_rank, expected.debug.fail_rank);
}

TEST(TomlWriter, EveryOptionSurvivesAChange) {
  for (const Option& option : options()) {
    Config config;
    for (const char* text : {"3", "0.75", "true", "text", "0.5,0.25"}) {
      if (option.choices.empty() && option.accepts(text)) option.assign(config, text);
    }
    if (!option.choices.empty()) option.assign(config, option.choices.back());
    EXPECT_FALSE(option.is_default(config) && option.choices.size() > 1) << option.key;
    EXPECT_EQ(to_toml(load(to_toml(config))), to_toml(config)) << option.key;
    if (!option.is_default(config)) {
      EXPECT_NE(config_hash(config), config_hash({})) << option.key;
    }
  }
}

TEST(TomlWriter, SaysWhatIsNotGivenAndWhatHasNoEffect) {
  const std::string toml = to_toml({}, {"train.beta1"});
  expect_parts(toml, {"\n[train]\nloss = \"softmax_cross_entropy\"\n",
                      "\n# replicas is not given: one per worker rank and thread\n",
                      "\n# beta1 = 0.9: without effect here\n", "\nmean = [0.0]\n"});
  expect_no_parts(toml, {"\nbeta1"});
}

TEST(ConfigHash, IsAFunctionOfTheValues) {
  EXPECT_EQ(config_hash(load(kValid)), config_hash(load(std::string("# more\n") + kValid)));
}

}  // namespace lockstep::test::toml_test
