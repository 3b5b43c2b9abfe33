// The first config that trainer init chooses for a text.
#include "app/init/init.h"
#include "lockstep/base/file.h"
#include "support/settings.h"
#include "support/temporary_directory.h"

namespace lockstep::test::first_text_config_test {

TEST(FirstTextConfig, FollowsItsTokens) {
  const TemporaryDirectory directory;
  const auto chosen = [&directory](Index tokens, const std::string& rule, bool rare, Index window = 0) {
    std::string text;
    for (Index i = 0; i < tokens; ++i) text += i % 5 == 4 ? ' ' : "abcd"[i * i % 7 % 4];
    if (rare) text[text.size() - 3] = 'z';
    DataOptions options;
    options.text.tokens = rule;
    options.table.windows.window = window;
    write_file_atomically(directory / "t.txt", text);
    const InitData data = read_init_data(directory / "t.txt", options);
    const auto settings = choose_settings(data, choose_task(data, ""), "t");
    std::string told;
    for (const char* key : {"data.window", "train.steps", "train.global_batch", "train.replicas",
                            "model.preset", "model.outputs", "data.unknown"})
      told += value_of(settings, key) + " ";
    return told;
  };
  EXPECT_EQ(chosen(2000, "characters", false), "8 401 28 8 \"gpt\" 4  ");
  EXPECT_EQ(chosen(12'799, "bytes", false), "32 560 32 8 \"gpt\" 256  ");
  EXPECT_EQ(chosen(12'800, "words(9)", true), "8 450 32 8 \"gpt\" 9 \"replace\" ");
  EXPECT_EQ(chosen(12'800, "characters", false), "64 409 22 8 \"gpt\" 4  ");
  EXPECT_EQ(chosen(500, "characters", true, 16), "16 466 3 3 \"gpt\" 5 \"replace\" ");
}

}  // namespace lockstep::test::first_text_config_test
