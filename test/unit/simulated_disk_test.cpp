// The disk of the crash tests loses what a disk may lose, and nothing else.
#include "support/simulated_disk.h"

namespace lockstep::test::simulated_disk_test {

constexpr CrashKind kLost{"", Unsynced::kLost, Unsynced::kLost};
constexpr CrashKind kNamesKept{"", Unsynced::kKept, Unsynced::kLost};
constexpr CrashKind kZeros{"", Unsynced::kKept, Unsynced::kZeros};
constexpr CrashKind kBytesKept{"", Unsynced::kLost, Unsynced::kKept};
constexpr CrashKind kLast{"", Unsynced::kLast, Unsynced::kKept};
constexpr CrashKind kSome{"", Unsynced::kSome, Unsynced::kSome};

class Disk : public testing::Test {
 protected:
  void write(const std::string& path, std::size_t offset, const std::string& bytes) {
    disk_.apply({.kind = "write", .path = path, .offset = offset, .bytes = bytes});
  }
  void apply(const std::string& kind, const std::string& path, const std::string& to = "") {
    disk_.apply({.kind = kind, .path = path, .to = to});
  }
  FileTree after(const CrashKind& kind, Index draw = 0) const {
    Dice dice(1, draw);
    return disk_.after_crash(kind, dice);
  }
  const FileTree before_{{"d", std::nullopt}, {"d/old", "old"}};
  SimulatedDisk disk_{before_};
};

TEST_F(Disk, WithoutASyncNothingIsSure) {
  apply("mkdir", "d/e");
  apply("create", "d/new");
  write("d/new", 0, "bytes");
  write("d/old", 1, "LDER");
  EXPECT_EQ(after(kLost), before_);
  EXPECT_EQ(after(kNamesKept), (FileTree{{"d", {}}, {"d/e", {}}, {"d/new", ""}, {"d/old", "old"}}));
  const std::string zeros("old\0\0", 5);
  EXPECT_EQ(after(kZeros),
            (FileTree{{"d", {}}, {"d/e", {}}, {"d/new", std::string(5, '\0')}, {"d/old", zeros}}));
  EXPECT_EQ(after(kBytesKept), (FileTree{{"d", {}}, {"d/old", "oLDER"}}));
  EXPECT_EQ(disk_.tree(), (FileTree{{"d", {}}, {"d/e", {}}, {"d/new", "bytes"}, {"d/old", "oLDER"}}));
}

TEST_F(Disk, ASyncOfAFileKeepsItsBytesAndOneOfADirectoryItsNames) {
  apply("create", "d/new");
  write("d/new", 0, "bytes");
  apply("sync", "d/new");
  EXPECT_EQ(after(kLost), before_);
  apply("rename", "d/new", "d/old");
  EXPECT_EQ(after(kLost), before_);
  apply("sync", "d");
  EXPECT_EQ(after(kLost), (FileTree{{"d", {}}, {"d/old", "bytes"}}));
  apply("remove", "d/old");
  EXPECT_EQ(after(kLost), (FileTree{{"d", {}}, {"d/old", "bytes"}}));
  EXPECT_EQ(after(kNamesKept), (FileTree{{"d", {}}}));
}

TEST_F(Disk, ADirectoryIsLostWithAllInItIfTheOneAboveIsNotSynced) {
  apply("mkdir", "d/e");
  apply("mkdir", "d/e/f");
  apply("sync", "d/e");
  EXPECT_EQ(after(kLost), before_);
  apply("sync", "d");
  EXPECT_EQ(after(kLost), (FileTree{{"d", {}}, {"d/e", {}}, {"d/e/f", {}}, {"d/old", "old"}}));
}

// Also the later of two without the earlier; but a rename is never done by half.
TEST_F(Disk, ChangesSurviveInAnyOrder) {
  apply("rename", "d/old", "d/away");
  apply("mkdir", "d/old");
  std::set<FileTree> seen;
  for (Index draw = 0; draw < 100; ++draw) seen.insert(after(kSome, draw));
  const FileTree moved{{"d", {}}, {"d/away", "old"}}, overwritten{{"d", {}}, {"d/old", {}}},
      both{{"d", {}}, {"d/away", "old"}, {"d/old", {}}};
  EXPECT_EQ(seen, (std::set<FileTree>{before_, moved, overwritten, both}));
  EXPECT_EQ(after(kLast), overwritten);
  apply("sync", "d");
  EXPECT_EQ(after(kLast), both);
}

}  // namespace lockstep::test::simulated_disk_test
