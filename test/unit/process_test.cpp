// How much memory a process can have, what is said when it does not get it, and its environment.
#include "lockstep/base/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include "lockstep/base/aligned_buffer.h"
#include "support/common.h"

namespace lockstep::process_test {

TEST(MemoryLimit, IsAtMostWhatTheMachineHas) {
  const MemoryLimit limit = memory_limit();
  EXPECT_GT(limit.bytes, Index{64} << 20);
  EXPECT_LT(limit.bytes, Index{1} << 50);
  EXPECT_FALSE(limit.reason.empty());
}

[[noreturn]] void expect_half_of_memory() {
  const Index half = memory_limit().bytes / 2;
  const rlimit wanted{static_cast<rlim_t>(half), RLIM_INFINITY};
  if (setrlimit(RLIMIT_AS, &wanted) != 0) _exit(1);
  const MemoryLimit limit = memory_limit();
  const bool fits = limit.bytes > half / 2 && limit.bytes < half && limit.reason == "what ulimit -v leaves";
  _exit(fits ? 0 : 2);
}

TEST(MemoryLimit, HeedsTheAddressSpace) {
  EXPECT_EXIT(expect_half_of_memory(), testing::ExitedWithCode(0), "") << "in a process that keeps the limit";
}

TEST(OutOfMemory, SaysWhatWasAskedFor) {
  try {
    AlignedBuffer<Scalar>(Index{1} << 48);
    ADD_FAILURE() << "a pebibyte was given";
  } catch (const std::bad_alloc& error) {
    EXPECT_TRUE(is_out_of_memory(error));
    EXPECT_EQ(describe_out_of_memory(error), "out of memory: 1.0 PiB in one piece cannot be had");
  }
  try {
    std::vector<double>(std::numeric_limits<std::size_t>::max() / 4);
    ADD_FAILURE() << "all memory was given";
  } catch (const std::exception& error) {
    EXPECT_TRUE(is_out_of_memory(error));
    EXPECT_EQ(describe_out_of_memory(error), "out of memory");
  }
  EXPECT_FALSE(is_out_of_memory(std::runtime_error("another")));
}

// Environment variables with anything in them.
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

}  // namespace lockstep::process_test
