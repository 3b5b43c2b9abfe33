// One directory of checkpoints for several runs: only one of them gets it.
#include "lockstep/train/storage/checkpoint.h"

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep::checkpoint_owner_test {

using namespace test;

class CheckpointOwner : public testing::Test {
 protected:
  // A run directory; a new run has no config yet.
  RunDirectory run(const std::string& name, bool is_new = false) const {
    const RunDirectory run{directory_ / name};
    std::filesystem::create_directories(run.root);
    if (!is_new) write_file_atomically(run.config(), "");
    return run;
  }
  void write_checkpoint(const CheckpointDirectory& checkpoints) const {
    std::filesystem::create_directories(checkpoints.finished(5));
  }
  // `first` has used the directory and has left a checkpoint there.
  void use(const RunDirectory& first) const {
    EXPECT_TRUE(claim_checkpoints(shared_, first).held());
    write_checkpoint(shared_);
  }
  void expect_accepted(const RunDirectory& other) const {
    EXPECT_NO_THROW(refuse_foreign_checkpoints(shared_, other));
    EXPECT_NO_THROW(claim_checkpoints(shared_, other));
  }
  void expect_refused(const RunDirectory& other, const std::string& owner) const {
    const std::vector<std::string> parts{shared_.root().string(), "another run", owner,
                                         "another checkpoint.dir"};
    expect_parts(error_text<ConfigError>([&] { refuse_foreign_checkpoints(shared_, other); }), parts);
    expect_parts(error_text<ConfigError>([&] { claim_checkpoints(shared_, other); }), parts);
  }
  TemporaryDirectory directory_;
  CheckpointDirectory shared_{directory_ / "disk/shared"};
};

TEST_F(CheckpointOwner, OtherRunsAreRefusedWhereItsCheckpointsAre) {
  use(run("a", true));
  const RunDirectory a = run("a");
  expect_accepted(a);
  expect_refused(run("b"), a.root.string());
  expect_refused(run("c", true), a.root.string());
  EXPECT_FALSE(std::filesystem::exists(run("b").id()));
}

TEST_F(CheckpointOwner, WithoutCheckpointsTheDirectoryIsFree) {
  { const RunLock lock = claim_checkpoints(shared_, run("a")); }
  use(run("b"));
  expect_refused(run("a"), run("b").root.string());
}

TEST_F(CheckpointOwner, OneTrainerAtATime) {
  const RunDirectory a = run("a");
  const RunLock lock = claim_checkpoints(shared_, a);
  for (const RunDirectory& other : {a, run("b")}) {
    expect_parts(error_text<ConfigError>([&] { claim_checkpoints(shared_, other); }),
                 {"another trainer", "checkpoint.dir", shared_.root().string()});
  }
}

TEST_F(CheckpointOwner, AMovedRunIsTheSameAndACopyIsAnother) {
  use(run("a"));
  std::filesystem::copy(directory_ / "a", directory_ / "copy");
  expect_refused(run("copy"), directory_ / "a");
  std::filesystem::rename(directory_ / "a", directory_ / "moved");
  expect_accepted(run("moved"));
  expect_refused(run("copy"), directory_ / "moved");
  // What is made anew where it was is a new run.
  expect_refused(run("a", true), directory_ / "moved");
}

TEST_F(CheckpointOwner, ANewRunInPlaceOfARemovedOneIsRefused) {
  use(run("a"));
  std::filesystem::remove_all(directory_ / "a");
  expect_refused(run("a", true), directory_ / "a");
}

TEST_F(CheckpointOwner, ARunThatLostItsIdIsKnownByItsPlace) {
  use(run("a"));
  const std::string id = read_file(run("a").id());
  std::filesystem::remove(run("a").id());
  expect_accepted(run("a"));
  EXPECT_EQ(read_file(run("a").id()), id);
}

TEST_F(CheckpointOwner, CheckpointsWithoutAnOwnerAreThoseOfARunThatGoesOn) {
  write_checkpoint(shared_);
  expect_refused(run("a", true), (shared_.finished(5) / kCheckpointConfig).string());
  expect_accepted(run("b"));
  expect_refused(run("c"), directory_ / "b");
}

TEST_F(CheckpointOwner, ARunsOwnDirectoryIsItsOwnAlone) {
  const RunDirectory a = run("a");
  const CheckpointDirectory own(a.checkpoints());
  write_checkpoint(own);
  EXPECT_FALSE(claim_checkpoints(own, a).held());
  EXPECT_FALSE(std::filesystem::exists(a.id()));
  for (const RunDirectory& other : {run("b"), run("c", true)}) {
    expect_parts(error_text<ConfigError>([&] { claim_checkpoints(own, other); }), {a.root.string()});
  }
}

TEST_F(CheckpointOwner, ADamagedOwnerIsNamed) {
  use(run("a"));
  const std::string whole = read_file(shared_.root() / "owner");
  for (const std::string& damaged : {std::string(), whole.substr(0, 9), whole.substr(0, 17), "\n" + whole}) {
    write_file_atomically(shared_.root() / "owner", damaged);
    expect_parts(error_text<DataError>([&] { refuse_foreign_checkpoints(shared_, run("a")); }),
                 {"owner' is damaged"});
  }
  write_file_atomically(shared_.root() / "owner", whole);
  expect_accepted(run("a"));
}

}  // namespace lockstep::checkpoint_owner_test
