// The declarations themselves: every default fits its own option, every option says what it is for, and the
// help and the reference hold all of them.
#include "lockstep/base/embedded_text.h"
#include "lockstep/config/help.h"
#include "lockstep/config/option.h"
#include "support/common.h"
#include "support/known_names.h"

namespace lockstep::options_test {

class Options : public testing::Test {
 protected:
  const Option& option(std::string_view key) const {
    const Option* found = find_option(options, key);
    if (found == nullptr) throw std::runtime_error("no option " + std::string(key));
    return *found;
  }
  Config config;
  std::span<const Option> options = test::options();
};

TEST_F(Options, EveryOneIsDescribedAndDeclaredOnce) {
  std::set<std::string> keys;
  for (const Option& each : options) {
    EXPECT_TRUE(keys.insert(each.key).second) << each.key;
    EXPECT_EQ(std::count(each.key.begin(), each.key.end(), '.'), 1) << each.key;
    EXPECT_GT(each.help.size(), 10u) << each.key;
    EXPECT_NE(each.help.back(), '.') << each.key;
    EXPECT_FALSE(each.expected.empty()) << each.key;
    EXPECT_EQ(each.help.find('|'), std::string::npos) << each.key << " breaks the table of the reference";
  }
}

// A misspelt key or field would be left out of the help without a word.
TEST_F(Options, TheirTextsHoldNothingElse) {
  const std::set<std::string> fields{"help", "not given", "expected",    "read with", "example", "words",
                                     "hint", "alias",     "counterpart", "on resume", "marks"};
  const std::set<std::string> rules{"", "may change", "must stay", "if alike"};
  const std::set<std::string> marks{"most-used", "exchange", "rate", "numbers", "table", "repeats"};
  std::set<std::string> names;
  for (const TextEntry& entry : embedded_entries("texts/options.txt")) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name << " stands there twice";
    for (const auto& [field, text] : entry.fields) EXPECT_TRUE(fields.contains(field)) << field;
    EXPECT_TRUE(rules.contains(entry.get("on resume"))) << entry.name;
    for (const std::string& mark : entry.get_words("marks")) EXPECT_TRUE(marks.contains(mark)) << entry.name;
  }
  for (const Option& each : options) {
    EXPECT_EQ(names.erase(each.key), 1u) << each.key;
    names.erase(std::string(each.section()));
    const bool by_catalogs =
        each.read_if.find("batch_norm") != std::string::npos || each.key.starts_with("distribute.");
    EXPECT_TRUE(each.read_if.empty() == !each.is_read || by_catalogs) << each.key;
  }
  EXPECT_EQ(names, std::set<std::string>{"-"});
}

TEST_F(Options, ARefusalShowsWhatATextLooksLike) {
  EXPECT_EQ(describe_refusal(option("train.warmup"), "200", "200"),
            "expected text such as \"5 epochs\", found 200");
  EXPECT_EQ(describe_refusal(option("train.lr"), "high", "'high'").find("such as"), std::string::npos);
}

TEST_F(Options, SectionsStayTogether) {
  std::vector<std::string> sections;
  for (const Option& each : options) {
    if (sections.empty() || sections.back() != each.section()) sections.emplace_back(each.section());
  }
  const std::vector<std::string> expected{"run",        "data",   "model",      "train", "eval",
                                          "checkpoint", "report", "distribute", "comm",  "debug"};
  EXPECT_EQ(sections, expected);
}

TEST_F(Options, EveryDefaultIsAcceptedUnlessItStandsForNotGiven) {
  for (const Option& each : options) {
    EXPECT_TRUE(each.is_default(config)) << each.key;
    if (each.has_value(config)) {
      EXPECT_TRUE(each.accepts(each.text(config))) << each.key << " = " << each.text(config);
    }
  }
}

TEST(TextList, IsReadBackAndMayBeEmpty) {
  using Type = ValueType<std::vector<std::string>>;
  EXPECT_EQ(Type::parse("age,hours per week").value(), (std::vector<std::string>{"age", "hours per week"}));
  EXPECT_EQ(Type::parse("a,,b").value(), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_TRUE(Type::parse("").value().empty());
  EXPECT_FALSE(Type::parse("\xff").has_value());
  EXPECT_EQ(Type::text({"a", "b"}), "a,b");
  EXPECT_EQ(Type::parse("a,").value(), (std::vector<std::string>{"a", ""}));
}

// As in a CSV file.
TEST(TextList, TextsWithCommasStandInQuotes) {
  using Type = ValueType<std::vector<std::string>>;
  const std::vector<std::string> texts{"a,b", "c", "\"d\", e", "5\" pipe", ""};
  EXPECT_EQ(Type::text(texts), "\"a,b\",c,\"\"\"d\"\", e\",5\" pipe,");
  EXPECT_EQ(Type::parse(Type::text(texts)).value(), texts);
  EXPECT_FALSE(Type::parse("\"a").has_value());
  EXPECT_FALSE(Type::parse("\"a\"b").has_value());
}

TEST_F(Options, AssignReachesTheFieldAndIsReadBack) {
  option("train.lr").assign(config, "0.1");
  option("data.mode").assign(config, "full");
  option("data.mean").assign(config, "0.1,-2,3e-5");
  option("train.nesterov").assign(config, "true");
  option("train.global_batch").assign(config, "128");
  option("train.optimizer").assign(config, "adam");
  EXPECT_EQ(config.schedule.lr, 0.1);
  EXPECT_EQ(config.data.mode, DataMode::kFull);
  EXPECT_EQ(config.data.mean, (std::vector<double>{0.1, -2, 3e-5}));
  EXPECT_TRUE(config.optimizer.nesterov);
  EXPECT_EQ(config.train.global_batch, 128);
  EXPECT_EQ(config.optimizer.optimizer, "adam");
  EXPECT_EQ(option("data.mean").text(config), "0.1,-2.0,3e-05");
  EXPECT_EQ(option("data.mode").text(config), "full");
  EXPECT_FALSE(option("train.lr").is_default(config));
  EXPECT_TRUE(option("train.global_batch").has_value(config));
  EXPECT_FALSE(option("train.per_replica_batch").has_value(config));
}

TEST_F(Options, RefuseWhatIsNoValue) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> refused{
      {"train.lr",
       {"", "0", "-1", "abc", "1 ", " 1", "0x10", "1,2", "nan", "inf", "1e999", "--train.epochs"}},
      {"train.steps", {"", "0", "1.5", "1e3", "9223372036854775808"}},
      {"train.momentum", {"1", "-0.1"}},
      {"train.warmup_from", {"1.01", "-0.01"}},
      {"train.nesterov", {"", "yes", "1", "True"}},
      {"data.mean", {"", "1,", ",1", "1,,2", "[1,2]", "a"}},
      {"data.std", {"0", "1,0"}},
      {"data.mode", {"", "Shard", "both"}},
      {"train.optimizer", {"", "adm"}},
      {"run.dir",
       {std::string("a\0b", 3), "\xff", "\xc3", "\xed\xa0\x80", "\xe0\x80\x80", "\xf4\x90\x80\x80"}},
  };
  for (const auto& [key, texts] : refused)
    for (const std::string& text : texts) EXPECT_FALSE(option(key).accepts(text)) << key << " = " << text;
}

TEST_F(Options, AcceptTheBordersOfTheirLimits) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> accepted{
      {"train.lr", {"1e-30", "5", "1e6"}},
      {"train.steps", {"1", "1000000000000"}},
      {"train.momentum", {"0", "0.999"}},
      {"train.warmup_from", {"0", "1"}},
      {"train.nesterov", {"true", "false"}},
      {"data.mean", {"0", "0.1,0.2"}},
      {"run.dir", {"", "a b", "\xc3\xa9", "\xf0\x9f\x98\x80", "tab\t", "\"\\"}},
  };
  for (const auto& [key, texts] : accepted)
    for (const std::string& text : texts) EXPECT_TRUE(option(key).accepts(text)) << key << " = " << text;
}

TEST_F(Options, RefusalsSayWhatWasExpectedAndWhatIsNear) {
  EXPECT_EQ(describe_refusal(option("train.lr"), "-1", "-1"),
            "expected a number above 0 and at most 1000000, found -1");
  EXPECT_EQ(describe_refusal(option("train.steps"), "0", "0"),
            "expected a whole number from 1 to 1000000000000, found 0");
  EXPECT_EQ(describe_refusal(option("train.optimizer"), "adm", "'adm'"),
            "expected one of 'sgd', 'adam', found 'adm'; did you mean 'adam'?");
  EXPECT_EQ(option("train.warmup_from").expected, "a number from 0 to 1");
  EXPECT_EQ(option("train.momentum").expected, "a number of at least 0 and below 1");
}

TEST_F(Options, NearestKeyKnowsTyposAndWrongSections) {
  EXPECT_EQ(nearest_key("train.lrr", options), "train.lr");
  EXPECT_EQ(nearest_key("lr", options), "train.lr");
  EXPECT_EQ(nearest_key("model.optimizer", options), "train.optimizer");
  EXPECT_EQ(nearest_key("epcohs", options), "train.epochs");
  EXPECT_EQ(nearest_key("distribute.reducton", options), "distribute.reduction");
  EXPECT_EQ(nearest_key("train.colour_of_the_sky", options), "");
}

TEST_F(Options, ShortHelpFitsAScreen) {
  std::istringstream help(short_help(options));
  int lines = 0;
  for (std::string line; std::getline(help, line); ++lines) EXPECT_LE(line.size(), 110u) << line;
  EXPECT_LE(lines, 49);
}

TEST_F(Options, FullHelpAndReferenceHoldEveryOption) {
  const std::string help = full_help(options);
  for (const std::string flag : {"--np", "--json", "--output", "--overwrite", "--allow-nan"})
    EXPECT_NE(help.find("\n  " + flag + " "), std::string::npos) << flag;
  const std::string reference = reference_catalog().front().write(options, test::known_names());
  for (const Option& each : options) {
    EXPECT_NE(help.find("\n  --" + each.key + " "), std::string::npos) << each.key;
    EXPECT_NE(reference.find("\n| `" + each.key + "` | " + each.expected + " | "), std::string::npos)
        << each.key;
    EXPECT_NE(reference.find(each.help), std::string::npos) << each.key;
    EXPECT_EQ(reference.find("## [" + std::string(each.section()) + "] \n"), std::string::npos)
        << "the section has no title: " << each.section();
  }
  EXPECT_NE(help.find("(sgd | adam; default \"sgd\")"), std::string::npos);
  EXPECT_NE(reference.find("| `train.lr` | a number above 0 and at most 1000000 | `0.01` | Learning rate"),
            std::string::npos);
  EXPECT_TRUE(reference.starts_with("<!-- Written by the program: trainer reference > configs/REFERENCE.md"));
}

}  // namespace lockstep::options_test
