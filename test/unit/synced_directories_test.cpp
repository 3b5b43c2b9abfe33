// New directories survive a crash of the machine: each directory is synced once a new name is in it. Syncs
// are noted by a function of the C library's name that stands before it in this program.
#include <unistd.h>

#include "lockstep/base/file.h"
#include "lockstep/train/storage/checkpoint.h"
#include "support/file_layer.h"
#include "support/temporary_directory.h"

namespace {

// The names in each directory when it was last synced.
std::map<std::filesystem::path, std::set<std::filesystem::path>>& synced_names() {
  static std::map<std::filesystem::path, std::set<std::filesystem::path>> names;
  return names;
}

}  // namespace

extern "C" int fsync(int file) {
  const std::filesystem::path path = lockstep::test::path_of(file);
  if (std::filesystem::is_directory(path)) {
    std::set<std::filesystem::path>& names = synced_names()[path];
    names.clear();
    for (const auto& entry : std::filesystem::directory_iterator(path)) names.insert(entry.path().filename());
  }
  return REAL(fsync)(file);
}

namespace lockstep::synced_directories_test {
namespace {

class SyncedDirectories : public testing::Test {
 protected:
  SyncedDirectories() { synced_names().clear(); }
  std::filesystem::path path(const std::string& name) const { return root_ / name; }
  // The directories from the root to this one.
  void expect_to_survive(const std::string& name) const {
    for (std::filesystem::path each = path(name); each != root_; each = each.parent_path())
      EXPECT_TRUE(synced_names()[each.parent_path()].contains(each.filename())) << each;
  }
  test::TemporaryDirectory directory_;
  std::filesystem::path root_ = std::filesystem::canonical(directory_.path());
};

TEST_F(SyncedDirectories, ANewOneSurvivesWithThoseAboveIt) {
  std::error_code error;
  create_synced_directories(path("a/b/c"), error);
  expect_to_survive("a/b/c");
}

TEST_F(SyncedDirectories, OneThatSomebodyHasJustMadeSurvivesToo) {
  std::error_code error;
  for (const std::string name : {"itself", "above"}) std::filesystem::create_directory(path(name));
  create_synced_directories(path("itself"), error);
  expect_to_survive("itself");
  create_synced_directories(path("above/new"), error);
  expect_to_survive("above/new");
}

TEST_F(SyncedDirectories, ThatOfTheCheckpointsSurvivesBeforeTheFirstIsWritten) {
  CheckpointDirectory(path("run/checkpoints")).make_partial(5);
  expect_to_survive("run/checkpoints");
}

}  // namespace
}  // namespace lockstep::synced_directories_test
