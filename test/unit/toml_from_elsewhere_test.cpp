// Config files of people who come from other programs: their keys, their languages, their line ends.
#include "lockstep/base/errors.h"
#include "lockstep/config/command_line.h"
#include "support/config_text.h"
#include "support/error_text.h"
#include "support/known_names.h"

namespace lockstep::test::toml_from_elsewhere_test {

TEST(ConfigFromElsewhere, KnowsKeysOfOtherPrograms) {
  EXPECT_EQ(error_of("[train]\nlearning_rate = 0.1"),
            "run.toml:2: unknown key 'train.learning_rate'; Lockstep calls it 'train.lr'");
  EXPECT_EQ(error_of("learningRate = 0.1"),
            "run.toml:1: unknown key 'learningRate'; Lockstep calls it 'train.lr'");
  EXPECT_EQ(error_of("[train]\nbatch_size = 64"),
            "run.toml:2: unknown key 'train.batch_size'; Lockstep has train.global_batch (samples per update "
            "over all replicas) and train.per_replica_batch (of each replica)");
  EXPECT_EQ(error_of("[eval]\nbatch_size = 64"),
            "run.toml:2: unknown key 'eval.batch_size'; Lockstep calls it 'eval.batch'");
  EXPECT_EQ(error_of("[model]\nhidden_layers = [64, 64]"),
            "run.toml:2: unknown key 'model.hidden_layers'; Lockstep lists every layer in model.layers, such "
            "as \"dense(256) relu dropout(0.5) dense(10)\"");
  EXPECT_EQ(error_of("[train]\ndevice = 'cuda'"),
            "run.toml:2: unknown key 'train.device'; Lockstep trains on CPUs only: leave it out");
  EXPECT_EQ(error_of("[optimizer]\nlr = 1"),
            "run.toml:1: unknown section [optimizer]; losses, optimizers and schedules are keys of [train] "
            "(known: run, data, model, train, eval, checkpoint, report, distribute, comm, debug)");
  EXPECT_EQ(error_of("[model]\nlayers = [256, 10]"),
            "run.toml:2: model.layers: expected one text such as \"dense(256) relu dense(10)\", found a list "
            "of 2");
}

TEST(ConfigFromElsewhere, SaysWhatIsNoTomlAtAll) {
  const auto error_in = [](const std::string& file, const std::string& text) {
    return error_text<ConfigError>([&] { load_config({}, {file, text}, options()); });
  };
  expect_parts(error_in("a.yaml", "train:\n  lr: 1\n"), {"a config is TOML"});
  expect_parts(error_in("a.json", "{\"train\": 1}"), {"a config is TOML"});
  expect_parts(error_in("a.toml", std::string("\xff\xfe[\0", 4)), {"the file is UTF-16"});
  expect_parts(error_in("a.toml", std::string("\xff\xfe\0\0[\0\0\0", 8)), {"the file is UTF-32"});
  EXPECT_LT(error_in("a.toml", "x = " + std::string(100000, '"')).size(), 500u);
}

TEST(ConfigFromElsewhere, TakesAByteOrderMarkAndWindowsLineEnds) {
  EXPECT_EQ(load("\xef\xbb\xbf[train]\r\nlr = 0.5\r\n").schedule.lr, 0.5);
}

}  // namespace lockstep::test::toml_from_elsewhere_test
