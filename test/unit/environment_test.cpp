// Environment variables with anything in them.
#include "lockstep/base/process.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace lockstep::environment_test {
namespace {

constexpr const char* kName = "LOCKSTEP_TEST_VARIABLE";

class EnvironmentVariable : public testing::Test {
 protected:
  ~EnvironmentVariable() override { ::unsetenv(kName); }
  static void set(const std::string& value) { ::setenv(kName, value.c_str(), 1); }
};

TEST_F(EnvironmentVariable, OneThatIsNotSetHasNeitherTextNorNumber) {
  EXPECT_FALSE(environment_text(kName));
  EXPECT_FALSE(environment_number(kName));
}

TEST_F(EnvironmentVariable, ANumberIsTheWholeTextAndNoCountThatCannotBe) {
  for (const auto& [text, number] :
       {std::pair{"0", Index{0}}, {"4", 4}, {"007", 7}, {"1000000000", 1'000'000'000}}) {
    set(text);
    EXPECT_EQ(environment_number(kName), number) << text;
  }
  for (const char* text :
       {"", " ", "abc", "4abc", "4 ", " 4", "-1", "+4", "4.5", "0x4", "1000000001", "99999999999999999999"}) {
    set(text);
    EXPECT_FALSE(environment_number(kName)) << "'" << text << "'";
  }
}

TEST_F(EnvironmentVariable, TextIsFitToBeShown) {
  set("n[1-2]");
  EXPECT_EQ(environment_text(kName), "n[1-2]");
  set("");
  EXPECT_EQ(environment_text(kName), "");
  set("a\033[2J\nb\xff");
  EXPECT_EQ(environment_text(kName), "a?[2J?b?");
  set(std::string(100'000, 'x'));
  EXPECT_EQ(environment_text(kName), std::string(500, 'x') + "...");
}

}  // namespace
}  // namespace lockstep::environment_test
