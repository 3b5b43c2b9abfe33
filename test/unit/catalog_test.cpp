// Looking names up, and what a misspelt one is told.
#include "lockstep/base/catalog.h"

#include "lockstep/base/errors.h"
#include "support/error_text.h"

namespace lockstep::catalog_test {

const std::vector<std::string> kNames{"sgd", "adam", "adamw", "adagrad", "rmsprop", "lamb"};

TEST(NearestName, FindsTypos) {
  EXPECT_EQ(nearest_name("adm", kNames), "adam");
  EXPECT_EQ(nearest_name("adagard", kNames), "adagrad");
  EXPECT_EQ(nearest_name("rmspropp", kNames), "rmsprop");
  EXPECT_EQ(nearest_name("rms_porp", kNames), "rmsprop");
  EXPECT_EQ(nearest_name("lamp", kNames), "lamb");
  EXPECT_EQ(nearest_name("dsg", kNames), "");
  EXPECT_EQ(nearest_name("sdg", kNames), "sgd");
}

TEST(NearestName, CaseAndUnderscoresDoNotMatter) {
  EXPECT_EQ(nearest_name("RMSprop", kNames), "rmsprop");
  EXPECT_EQ(nearest_name("Ada_Grad", kNames), "adagrad");
  EXPECT_EQ(nearest_name("AdamW", kNames), "adamw");
  EXPECT_EQ(nearest_name("SGD", kNames), "sgd");
}

TEST(NearestName, PrefersTheNearer) {
  EXPECT_EQ(nearest_name("adamw", kNames), "adamw");
  EXPECT_EQ(nearest_name("adamww", kNames), "adamw");
}

TEST(NearestName, SuggestsNothingFarAway) {
  EXPECT_EQ(nearest_name("", kNames), "");
  EXPECT_EQ(nearest_name("lr", std::vector<std::string>{"np", "ab"}), "");
  EXPECT_EQ(nearest_name("something else", kNames), "");
  EXPECT_EQ(nearest_name("sgd", std::vector<std::string>{}), "");
}

TEST(Suggestion, KnowsWordsOfOtherPrograms) {
  const std::vector<std::string> losses{"softmax_cross_entropy", "mean_squared_error", "huber"};
  EXPECT_EQ(suggestion("mse", losses), "; Lockstep calls it 'mean_squared_error'");
  EXPECT_EQ(suggestion("MSELoss", losses), "; Lockstep calls it 'mean_squared_error'");
  EXPECT_EQ(suggestion("CrossEntropyLoss", losses), "; Lockstep calls it 'softmax_cross_entropy'");
  EXPECT_EQ(suggestion("SmoothL1Loss", losses), "; Lockstep calls it 'huber'");
  EXPECT_EQ(suggestion("mae", std::vector<std::string>{"auc", "mean_absolute_error"}),
            "; Lockstep calls it 'mean_absolute_error'");
  EXPECT_EQ(suggestion("mse", kNames), "") << "the name must be one of those that are known";
  EXPECT_EQ(suggestion("hubre", losses), "; did you mean 'huber'?");
  EXPECT_EQ(suggestion("", losses), "");
}

// The work of comparing two names grows with the product of their lengths.
TEST(NearestName, LooksForNothingLikeALongText) {
  const std::string longer(1'000'000, 'a');
  EXPECT_EQ(nearest_name(longer, std::vector<std::string>{longer}), "");
  EXPECT_EQ(nearest_name("sdg", std::vector<std::string>{longer, "sgd"}), "sgd");
  try {
    throw_unknown_name("layer", longer + "\x1b", kNames);
  } catch (const ConfigError& error) {
    EXPECT_LT(std::string(error.what()).size(), 300U) << error.what();
  }
}

struct Entry {
  std::string name;
  int value = 0;
};

TEST(FindEntry, FindsTheEntryOrNamesTheNearest) {
  const std::vector<Entry> catalog{{"first", 1}, {"second", 2}};
  EXPECT_EQ(find_entry<Entry>(catalog, "place", "second").value, 2);
  EXPECT_EQ(test::error_text<ConfigError>([&] { find_entry<Entry>(catalog, "place", "secnd"); }),
            "unknown place 'secnd'; did you mean 'second'? (known: first, second)");
  EXPECT_EQ(ConfigError("").exit_code(), kExitConfig);
}

}  // namespace lockstep::catalog_test
