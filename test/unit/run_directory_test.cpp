// The directory of a run: whether a run ended in it, who works in it, where it is, and how it is moved away.
#include "lockstep/train/storage/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep::test::run_directory_test {

class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectory run(const std::string& name, const std::vector<std::string>& files) const {
    const RunDirectory run{directory_.path() / name};
    std::filesystem::create_directories(run.root);
    for (const std::string& file : files) write_file_atomically(run.root / file, name);
    return run;
  }
  RunDirectory started(const std::string& name) const { return run(name, {"config.toml", "plan.txt"}); }
  std::filesystem::path at(const std::string& name) const { return directory_.path() / name; }
  const TemporaryDirectory directory_;
};

TEST_F(RunDirectoryTest, WhoAsksWhetherItIsHeldKeepsNoTrainerFromStarting) {
  const RunDirectory run = started("a");
  EXPECT_FALSE(run.is_held());
  {
    const RunLock lock(run);
    EXPECT_TRUE(run.is_held());
    EXPECT_THROW(RunLock second(run), ConfigError);
  }
  EXPECT_FALSE(run.is_held());
  const int asking = ::open(run.lock().c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(asking, LOCK_SH | LOCK_NB), 0);
  std::thread answered([asking] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ::close(asking);
  });
  EXPECT_NO_THROW(RunLock lock(run));
  answered.join();
}

TEST_F(RunDirectoryTest, IsMovedToTheFirstFreeNumber) {
  write_file_atomically(at("a.2"), "of somebody else");
  for (const std::string name : {"a.1", "a.3", "a.4"}) {
    const RunDirectory run = started(name == "a.3" ? "a/" : "a");
    const RunDirectory written{name == "a.3" ? at("a") / "" : at("a")};
    const RunLock lock = claim_to_move(written);
    EXPECT_EQ(move_away(written), at(name));
    EXPECT_FALSE(std::filesystem::exists(at("a")));
    EXPECT_TRUE(std::filesystem::exists(at(name) / "plan.txt"));
  }
  EXPECT_EQ(read_file(at("a.2")), "of somebody else");
  std::filesystem::create_directory(at("a.5"));  // though it is empty
  EXPECT_EQ(move_away(started("a")), at("a.6"));
}

TEST_F(RunDirectoryTest, OnlyADirectoryOfARunInWhichNobodyWorksIsMoved) {
  const std::vector<std::vector<std::string>> foreign{
      {"thesis.txt"}, {"config.toml", "thesis.txt"}, {"plan.txt", "thesis.txt"}};
  for (const std::vector<std::string>& files : foreign) {
    const RunDirectory other = run("other", files);
    expect_parts(error_text<ConfigError>([&] { claim_to_move(other); }), {"not the directory of a run"});
    EXPECT_FALSE(std::filesystem::exists(other.lock())) << "it was touched";
    std::filesystem::remove_all(other.root);
  }
  const RunDirectory busy = started("busy");
  {
    const RunLock lock(busy);
    expect_parts(error_text<ConfigError>([&] { claim_to_move(busy); }), {"another trainer works in"});
  }
  EXPECT_NO_THROW(claim_to_move(busy));
  EXPECT_NO_THROW(claim_to_move(run("young", {"lock"}))) << "ended before it had written more";
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(busy.root);
  expect_parts(error_text<ConfigError>([&] { claim_to_move({"."}); }), {"working directory"});
  std::filesystem::current_path(before);
}

TEST_F(RunDirectoryTest, TheLockKnowsWhereItsDirectoryIs) {
  const RunDirectory run = started("a");
  const RunLock lock(run);
  EXPECT_EQ(lock.whereabouts(), run.root);
  std::filesystem::rename(run.root, at("b"));
  EXPECT_EQ(lock.whereabouts(), at("b"));
  started("a");
  EXPECT_EQ(lock.whereabouts(), at("b")) << "another one has its name";
  std::filesystem::remove_all(at("b"));
  EXPECT_EQ(lock.whereabouts(), std::nullopt);
}

// Whichever of its files a run had made when it ended before its first checkpoint.
TEST_F(RunDirectoryTest, ARunEndedEarlyIsBegunAgainBesideEachOfItsFiles) {
  for (const char* file :
       {"config.toml", "run.json", "plan.txt", "ranks.txt", "log.txt", "metrics.jsonl", "tensorboard",
        "trace", "trace.json.gz", "schema.json", "rejects.txt", "checkpoints", "lock", "id", "stop",
        "checkpointed", "model.safetensors.partial-17"}) {
    const RunDirectory begun = run(file, {file});
    EXPECT_EQ(reuse_run_directory(begun.root).root, begun.root) << file;
    EXPECT_THROW(create_run_directory(begun.root), ConfigError) << file;
  }
  for (const char* file : {"model.safetensors", "summary.json", "report.html", "evaluation.json", "a.csv"}) {
    EXPECT_THROW(reuse_run_directory(run(file, {"config.toml", file}).root), ConfigError) << file;
    // What a full disk has left of its end, which the record says it has not reached.
    const RunDirectory recorded = run(std::string("disk-") + file, {"config.toml", "run.json", file});
    if (file == std::string_view("a.csv"))
      EXPECT_THROW(reuse_run_directory(recorded.root), ConfigError);
    else
      EXPECT_EQ(reuse_run_directory(recorded.root).root, recorded.root) << file;
  }
  std::filesystem::create_directory(at("empty"));
  EXPECT_EQ(create_run_directory(at("empty")).root, at("empty"));
  expect_parts(error_text<ConfigError>([&] { create_run_directory(run("x", {"a"}).root / "a"); }),
               {"is a file"});
}

TEST_F(RunDirectoryTest, OnlyAFinishedRunIsOpened) {
  run("census", {"config.toml", "model.safetensors"});
  EXPECT_EQ(open_run_directory(at("census")).root, at("census"));
  const auto error = [this](const std::string& name) {
    return error_text<ConfigError>([&] { open_run_directory(at(name)); });
  };
  started("begun");
  expect_parts(error("begun"), {"begun' is not the directory of a finished run", "no model.safetensors"});
  expect_parts(error("cencus"), {"there is no run '", "cencus'; did you mean '", "census'?"});
  expect_parts(error("cencus/"), {"; did you mean '", "census'?"});
  expect_parts(error("diamonds"), {"there is no run '", "expected the directory of a run"});
}

TEST_F(RunDirectoryTest, ADirectoryMadeAnewIsNeverOneOfOthers) {
  const std::filesystem::path root = at("deep") / "a" / "";
  EXPECT_EQ(make_directory_beside(root).root, at("deep") / "a");
  EXPECT_EQ(make_directory_beside(root).root, at("deep") / "a.1");
  EXPECT_EQ(make_directory_beside(root).root, at("deep") / "a.2");
  write_file_atomically(at("file"), "");
  EXPECT_THROW(make_directory_beside(at("file") / "a"), DataError);
}

}  // namespace lockstep::test::run_directory_test
