// What a run that goes on knows of files that lack lines.
#include "app/training/run_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/file.h"
#include "lockstep/train/storage/checkpoint/directory.h"
#include "lockstep/train/storage/checkpoint/reader.h"
#include "support/temporary_directory.h"

namespace lockstep {
namespace {

class LostFilesTest : public testing::Test {
 protected:
  LostFilesTest() { resume_.is_new = false; }

  void summarise(const std::string& text) { std::ofstream(resume_.directory.summary()) << text; }

  const test::TemporaryDirectory directory_;
  ResumeState resume_{.directory = {directory_.path()}};
};

TEST_F(LostFilesTest, AreThoseThatTheSummaryNames) {
  EXPECT_TRUE(incomplete_before(resume_).empty()) << "no summary";
  summarise(R"({"steps": 3})");
  EXPECT_TRUE(incomplete_before(resume_).empty());
  summarise(R"({"steps": 3, "lost": ["log.txt", "model.safetensors"]})");
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
  summarise(R"({"lost": ["log.txt", "metrics.jsonl"]})");
  EXPECT_EQ(incomplete_before(resume_), (std::vector<std::string>{"metrics.jsonl", "log.txt"}));
}

TEST_F(LostFilesTest, AreNoneInANewDirectory) {
  summarise(R"({"lost": ["log.txt"]})");
  resume_.is_new = true;
  EXPECT_TRUE(incomplete_before(resume_).empty());
}

}  // namespace
}  // namespace lockstep
