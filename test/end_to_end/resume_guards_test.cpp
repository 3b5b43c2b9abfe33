// What a run must not go on from or write to: other data, and the checkpoints of other runs.
#include "support/idx_files.h"
#include "support/trainer_runs.h"

namespace lockstep::test::resume_guards_test {
namespace {

constexpr Index kRows = 200;

// Lines of one length, with a label that the others do not tell.
std::string some_table() {
  std::string text = "a,b,kind\n";
  for (Index row = 0; row < kRows; ++row)
    text += fmt::format("{:03},{:02},{}\n", row, row * 37 % 100, row * row % 4);
  return text;
}

class ResumeGuards : public testing::Test {
 protected:
  ResumeGuards() {
    write_file_atomically(directory_ / "run.toml",
                          "[run]\nprogress = \"none\"\n"
                          "[model]\nlayers = \"dense(4)\"\n"
                          "[train]\nglobal_batch = 20\nreplicas = 2\n");
  }

  // Each start of a run goes on for an epoch more.
  ProcessResult start(int ranks, const std::string& run, const std::string& flags, int epochs,
                      const std::string& allowed = "train.epochs") const {
    const std::string arguments =
        fmt::format("--config {} --run.dir {} --train.epochs {} --run.resume_allow {} {}",
                    directory_ / "run.toml", directory_ / run, epochs, allowed, flags);
    return ranks == 1 ? run_trainer(arguments) : run_trainer(ranks, arguments);
  }

  std::string content_of(const std::string& run) const {
    std::string content;
    for (const char* file :
         {"config.toml", "metrics.jsonl", "plan.txt", "summary.json", "model.safetensors"}) {
      content += read_file(directory_ / (run + "/" + file));
    }
    return content;
  }

  // The run was trained on data that `changed` are not and `moved` are. `what` is said to have changed.
  void expect_guarded(const std::string& run, const std::string& changed, const std::string& moved,
                      const std::string& what) const {
    const std::string before = content_of(run);
    expect_failed(start(2, run, changed, 2), kExitConfig, {"data.train: " + what, "run.resume_allow"});
    EXPECT_TRUE(content_of(run) == before) << "a refusal changed the run";
    expect_parts(succeeded(start(1, run, moved, 2)).output, {"goes on from"});
    succeeded(start(1, run, changed, 3, "train.epochs,data.train"));
  }

  TemporaryDirectory directory_;
};

TEST_F(ResumeGuards, OtherLabelsInFilesOfTheSameSizeAreRefused) {
  const IdxPair files = write_idx_pair(directory_ / "x", {.rows = kRows, .classes = 4, .compressed = false});
  const std::string images = read_file(files.images);
  const std::string labels = read_file(files.labels);
  const auto flags = [&](const std::string& train, const std::string& train_labels, const char* memory) {
    return fmt::format("--data.format idx --data.train {} --data.train_labels {} --data.memory {}", train,
                       train_labels, memory);
  };
  std::string exchanged = labels;
  const std::size_t last = labels.size() - 1;
  std::swap(exchanged[last], exchanged[labels.find_last_not_of(labels[last])]);
  write_file_atomically(directory_ / "exchanged", exchanged);
  write_idx(directory_ / "moved.gz", images);
  write_file_atomically(directory_ / "moved", images);
  write_file_atomically(directory_ / "moved-labels", labels);
  for (const char* memory : {"load", "stream"}) {
    const bool loaded = memory == std::string("load");
    succeeded(start(1, memory, flags(files.images, files.labels, memory), 1));
    expect_guarded(memory, flags(files.images, directory_ / "exchanged", memory),
                   flags(directory_ / (loaded ? "moved.gz" : "moved"), directory_ / "moved-labels", memory),
                   loaded ? "the labels of" : "the content of '" + (directory_ / "exchanged"));
  }
}

TEST_F(ResumeGuards, OtherFeaturesInATableOfTheSameSizeAreRefused) {
  const auto flags = [&](const std::string& file) {
    return fmt::format("--data.format csv --data.label kind --data.train {}", directory_ / file);
  };
  const std::string table = some_table();
  std::string changed = table;
  std::swap(changed[changed.size() - 5], changed[changed.size() - 4]);  // digits of b
  write_file_atomically(directory_ / "x.csv", table);
  write_file_atomically(directory_ / "changed.csv", changed);
  write_file_atomically(directory_ / "moved.csv", table);
  succeeded(start(1, "run", flags("x.csv"), 1));
  expect_guarded("run", flags("changed.csv"), flags("moved.csv"), "the features of");
}

TEST_F(ResumeGuards, ADirectoryOfCheckpointsIsThatOfOneRun) {
  const std::string synthetic =
      "--data.format synthetic --data.synthetic_rows 200 --data.synthetic_classes 4 --checkpoint.every '5 "
      "steps'";
  const std::string shared = synthetic + " --checkpoint.dir " + (directory_ / "shared");
  succeeded(start(1, "first", shared, 1));
  const std::string owner = read_file(directory_ / "shared/owner");
  const ProcessResult second = ended_with(start(2, "second", shared + " --train.lr 0.2", 1), kExitConfig);
  expect_parts(second.errors, {"checkpoint.dir '" + (directory_ / "shared"), directory_ / "first"});
  EXPECT_FALSE(std::filesystem::exists(directory_ / "second"));
  EXPECT_EQ(read_file(directory_ / "shared/owner"), owner);
  // The run itself goes on, also when it was moved; and another goes on from it elsewhere.
  std::filesystem::rename(directory_ / "first", directory_ / "moved");
  expect_parts(succeeded(start(2, "moved", shared, 2)).output,
               {"goes on from '" + (directory_ / "shared/step-")});
  const ProcessResult branch =
      succeeded(start(2, "branch", synthetic + " --run.resume " + (directory_ / "moved"), 3));
  expect_parts(branch.output, {"goes on from '" + (directory_ / "shared/step-")});
}

TEST_F(ResumeGuards, CheckpointsMayBeInTheRunDirectoryItself) {
  const std::string flags =
      "--data.format synthetic --data.synthetic_rows 200 --data.synthetic_classes 4 --checkpoint.every '5 "
      "steps' --checkpoint.dir " +
      (directory_ / "both");
  for (const int epochs : {1, 2}) succeeded(start(1, "both", flags, epochs));
}

}  // namespace
}  // namespace lockstep::test::resume_guards_test
