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
        flag("lengths"), &data.train_labels, &data.train_weights, &data.train_lengths, &data.validation,
        &data.validation_labels, &data.validation_weights, &data.validation_lengths, &data.test,
        &data.test_labels, &data.test_weights, &data.test_lengths}) {
    *name = directory / std::to_string(named.size());
    write_file_atomically(*name, "");
    named.push_back(*name);
  }
  const std::vector<std::string> read = files_read(line, config);
  EXPECT_EQ(std::multiset<std::string>(read.begin(), read.end()),
            std::multiset<std::string>(named.begin(), named.end()));
}

TEST(FilesRead, OfARunAreAllButItsPage) {
  const test::TemporaryDirectory directory;
  const std::string run = directory / "sweep/trial-1/";
  std::set<std::string> names{directory / "sweep/sweep.toml", directory / "sweep/rows/trial-1.json"};
  for (const char* name : {"config.toml", "run.json", "plan.txt", "ranks.txt", "log.txt", "metrics.jsonl",
                           "summary.json", "evaluation.json", "importance.json", "schema.json", "rejects.txt",
                           "model.safetensors", "lock", "id", "checkpointed", "trace/rank-0.bin"})
    names.insert(run + name);
  std::filesystem::create_directories(run + "trace");
  write_file_atomically(run + "trace/rank-0.bin", "");
  CommandLine line;
  line.flags["model"] = {run.substr(0, run.size() - 1)};
  const std::vector<std::string> read = files_read(line);
  std::set<std::string> found(read.begin(), read.end());
  found.erase("");
  EXPECT_EQ(found, names);
}

}  // namespace lockstep::files_read_test
