// The files that a command reads, by each way to name one: a result must not overwrite any of them.
#include "app/setup/outputs.h"
#include "lockstep/base/file.h"
#include "support/temporary_directory.h"

namespace lockstep::files_read_test {

TEST(FilesRead, AreAllThatTheCommandLineAndTheConfigName) {
  const test::TemporaryDirectory directory;
  CommandLine line;
  Config config;
  DataOptions& data = config.data;
  std::vector<std::string> named;
  line.operands = {""};
  const auto flag = [&line](const char* name) { return &line.flags[name].emplace_back(); };
  for (std::string* name :
       {flag("config"), flag("from"), flag("input"), &line.operands[0], &config.train.init, &data.train,
        &data.train_labels, &data.validation, &data.validation_labels, &data.test, &data.test_labels}) {
    *name = directory / std::to_string(named.size());
    write_file_atomically(*name, "");
    named.push_back(*name);
  }
  line.flags["model"] = {directory / "run"};
  for (const char* file : {"config.toml", "model.safetensors", "schema.json"})
    named.push_back(line.text("model") + "/" + file);
  std::vector<std::string> read = files_read(line, config);
  std::ranges::sort(read);
  std::ranges::sort(named);
  EXPECT_EQ(read, named);
}

}  // namespace lockstep::files_read_test
