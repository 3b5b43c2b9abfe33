// Which keys have an effect beside each other: a key that nothing reads is refused.
#include "app/setup/catalogs.h"

#include "lockstep/base/errors.h"
#include "support/common.h"

namespace lockstep::catalogs_test {

// Whether the key can be given with this config.
bool is_read(Config config, const std::string& key) {
  try {
    config.given = {"model.layers", "train.global_batch", "train.epochs", key};
    check_config(config, known_options(), choices(config));
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find(key + " has no effect"), std::string::npos) << error.what();
    return false;
  }
  return true;
}

TEST(Choices, ServersReadWhatTheirModeNeeds) {
  Config config;
  config.train.epochs = 1;
  config.train.global_batch = 8;
  config.data.format = "synthetic";
  config.distribute.strategy = "parameter_server";
  for (const ServerMode mode : {ServerMode::kSync, ServerMode::kBounded, ServerMode::kAsync})
    for (const Index backup_workers : {0, 1}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(mode) << ", backups: " << backup_workers);
      config.distribute.mode = mode;
      config.distribute.backup_workers = backup_workers;
      const bool own_pace = mode != ServerMode::kSync;
      EXPECT_EQ(is_read(config, "distribute.record"), own_pace || backup_workers > 0);
      EXPECT_EQ(is_read(config, "distribute.timeout_seconds"), own_pace || backup_workers > 0);
      EXPECT_EQ(is_read(config, "distribute.staleness_lr"), own_pace) << "a late gradient is dropped";
      EXPECT_EQ(is_read(config, "distribute.staleness"), mode == ServerMode::kBounded);
    }
}

}  // namespace lockstep::catalogs_test
