// Config files that are deep, large or full of mistakes: refused at once, and in few words.
#include "lockstep/config/command_line.h"
#include "support/config_text.h"

namespace lockstep::test::toml_limits_test {

std::string repeated(std::size_t times, const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(TomlReader, RefusesWhatIsDeeperThanTheStack) {
  const std::string parts = std::string("a").append(repeated(99'999, ".a"));
  const std::string brackets = "exceeded maximum nested value depth";
  const std::string key = "run.toml:3: a key of more than 1,000 parts";
  for (const auto& [text, said] :
       {std::pair{parts + " = 1", key}, std::pair{"[" + parts + "]", key},
        std::pair{"x = {" + parts + " = 1}", key},
        std::pair{"\"a\"" + repeated(99'999, " . 'a'") + " = 1", key},
        std::pair{"x = " + repeated(100'000, "["), brackets},
        std::pair{"x = " + repeated(100'000, "[") + repeated(100'000, "]"), brackets},
        std::pair{"x = " + repeated(100'000, "{y = ") + "1" + repeated(100'000, "}"), brackets}}) {
    const std::string error = error_of("# \"\n\n" + text + "\n");
    EXPECT_TRUE(error.starts_with("run.toml:3:")) << error.substr(0, 300);
    EXPECT_NE(error.find(said), std::string::npos) << error.substr(0, 300);
  }
}

// Brackets and dots that nest nothing.
TEST(TomlReader, CountsNoDepthInStringsAndComments) {
  const std::string many = repeated(1000, "[{.");
  EXPECT_EQ(load("[run]\ndir = \"" + many + "\\\"" + many + "\" # " + many + "\n").run.dir,
            many + "\"" + many);
  EXPECT_EQ(load("[run]\ndir = '" + many + "'\n").run.dir, many);
  EXPECT_EQ(load("[run]\ndir = \"\"\"" + many + "\"\n\n" + many + "\"\"\"\n").run.dir,
            many + "\"\n\n" + many);
  std::string list = "[data]\nmean = [";
  for (int i = 0; i < 1000; ++i) list += "0.5, ";
  EXPECT_EQ(load(list + "1.5]\n").data.mean.size(), 1001U);
}

// A key ends where the next one begins.
TEST(TomlReader, CountsThePartsOfEachKey) {
  std::string text = "[run]\n";
  for (int i = 0; i < 2000; ++i) text += fmt::format("# a.b\nx{0}.y = 1\n", i);
  EXPECT_EQ(error_of(text).find("more than"), std::string::npos);
}

TEST(TomlReader, TellsTheFirstOfManyMistakes) {
  std::string text = "[train]\n";
  for (int i = 0; i < 10'000; ++i) text += fmt::format("unknown_{} = 1\n", i);
  const auto start = std::chrono::steady_clock::now();
  const std::string error = error_of(text);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 10);
  EXPECT_EQ(std::ranges::count(error, '\n'), 10);
  EXPECT_NE(error.find("run.toml:2: unknown key 'train.unknown_0'"), std::string::npos) << error;
  EXPECT_NE(error.find("run.toml: 10,000 mistakes in all; these are the first"), std::string::npos) << error;
}

TEST(TomlReader, CutsLongTextsInItsErrors) {
  const std::string longer(1'000'000, 'k');
  for (const std::string& text :
       {longer + " = 1\n", "[" + longer + "]\n", "[train]\n" + longer + " = 1\n",
        "[train]\nlr = \"" + longer + "\"\n", "[train]\nlr = " + longer + "\n",
        "[train]\noptimizer = \"" + longer + "\"\n", "[run]\n" + longer + " = 1\n" + longer + " = 1\n"}) {
    const std::string error = error_of(text);
    EXPECT_LT(error.size(), 3000U) << error.substr(0, 3000);
    EXPECT_NE(error.find(" bytes)"), std::string::npos) << error.substr(0, 3000);
  }
  EXPECT_EQ(error_of("[train]\n\"a\\u001B[31m\" = 1\n").find('\x1b'), std::string::npos);
}

}  // namespace lockstep::test::toml_limits_test
