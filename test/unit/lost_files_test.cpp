// What a run that goes on knows of files that lack lines.
#include "app/training/run_files.h"

#include "lockstep/base/file.h"
#include "lockstep/train/storage/checkpoint.h"
#include "lockstep/train/storage/run_record.h"
#include "support/temporary_directory.h"

namespace lockstep::lost_files_test {

class LostFilesTest : public testing::Test {
 protected:
  LostFilesTest() { resume_.is_new = false; }
  void record(const std::vector<std::string>& lost) const {
    RunRecord record{.state = RunState::kFailed};
    record.result["lost"] = lost;
    write_file_atomically(resume_.directory.record(), to_json(record));
  }
  const test::TemporaryDirectory directory_;
  ResumeState resume_{.directory = {directory_.path()}};
};

TEST_F(LostFilesTest, AreThoseThatTheRecordNames) {
  EXPECT_TRUE(incomplete_before(resume_).empty()) << "no record";
  record({});
  EXPECT_TRUE(incomplete_before(resume_).empty());
  record({"log.txt", "model.safetensors"});
  EXPECT_EQ(incomplete_before(resume_), std::vector<std::string>{"log.txt"})
      << "lines of the log stay lost, the model is written again";
}

// Lines after the checkpoint are written again, but for those of the log.
TEST_F(LostFilesTest, AreThoseOfTheCheckpoint) {
  const std::filesystem::path checkpoint = directory_ / "checkpoint";
  std::filesystem::create_directory(checkpoint);
  CheckpointManifest manifest;
  manifest.header.incomplete_files = {"metrics.jsonl"};
  write_file_atomically(checkpoint / kManifestName, to_json(manifest));
  resume_.checkpoint = std::make_unique<CheckpointReader>(checkpoint);
  EXPECT_EQ(incomplete_before(resume_), std::vector<std::string>{"metrics.jsonl"});
  record({"log.txt", "metrics.jsonl"});
  EXPECT_EQ(incomplete_before(resume_), (std::vector<std::string>{"metrics.jsonl", "log.txt"}));
}

TEST_F(LostFilesTest, AreNoneInANewDirectory) {
  record({"log.txt"});
  resume_.is_new = true;
  EXPECT_TRUE(incomplete_before(resume_).empty());
}

}  // namespace lockstep::lost_files_test
