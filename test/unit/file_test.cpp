// Whole files: what is written is read back, and what cannot be done leaves everything as it was.
#include "lockstep/base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "lockstep/base/errors.h"
#include "support/error_text.h"
#include "support/file_size_limit.h"
#include "support/special_files.h"
#include "support/temporary_directory.h"

namespace lockstep::file_test {

class File : public testing::Test {
 protected:
  std::filesystem::path path(const std::string& name) const { return directory.path() / name; }
  std::ptrdiff_t files() const {
    const std::filesystem::directory_iterator all(directory.path());
    return std::distance(begin(all), end(all));
  }

  static std::string error_of(const std::function<void()>& work) {
    return test::error_or<DataError>("no error", work);
  }
  test::TemporaryDirectory directory;
};

TEST_F(File, IsReadAsItWasWritten) {
  const std::string text("bytes \0\xff\r\n", 10);
  write_file_atomically(path("a"), text);
  EXPECT_EQ(read_file(path("a")), text);
  EXPECT_EQ(file_bytes(path("a")), 10);
  write_file_atomically(path("a"), std::array<std::string_view, 3>{"one ", "", "two"});
  EXPECT_EQ(read_file(path("a")), "one two");
  write_file_atomically(path("a"), "");
  EXPECT_EQ(read_file(path("a")), "");
  EXPECT_EQ(files(), 1) << "a temporary file was left behind";
}

TEST_F(File, ReplacesTheWholeFileAndNotItsBytes) {
  write_file_atomically(path("a"), "old");
  std::filesystem::create_hard_link(path("a"), path("old"));
  write_file_atomically(path("a"), "new");
  EXPECT_EQ(read_file(path("a")), "new");
  EXPECT_EQ(read_file(path("old")), "old");
}

TEST_F(File, ALineIsAppendedWholeOrNotAtAll) {
  write_file_atomically(path("a"), "first\n");
  const int file = ::open(path("a").c_str(), O_WRONLY | O_APPEND);
  ASSERT_GE(file, 0);
  {
    const test::FileSizeLimit full(10);
    EXPECT_EQ(append_whole(file, 6, "second\n"), Appended::kNothing);
    EXPECT_EQ(errno, EFBIG);
  }
  EXPECT_EQ(read_file(path("a")), "first\n");
  EXPECT_EQ(append_whole(file, 6, "third\n"), Appended::kWhole);
  EXPECT_EQ(read_file(path("a")), "first\nthird\n");
  ::close(file);
  const int gone = ::open(path("a").c_str(), O_RDONLY);
  EXPECT_EQ(append_whole(gone, 12, "fourth\n"), Appended::kPart);
  EXPECT_EQ(errno, EBADF);
  ::close(gone);
}

// The memory of this process cannot be read from its first byte on.
TEST_F(File, OneThatOpensAndCannotBeReadIsAnErrorWithPathAndReason) {
  EXPECT_EQ(error_of([] { read_file("/proc/self/mem"); }),
            "cannot read '/proc/self/mem': Input/output error");
}

TEST_F(File, MissingIsAnErrorWithPathAndReason) {
  const std::string expected = "cannot open '" + path("none").string() + "': No such file or directory";
  EXPECT_EQ(error_of([&] { read_file(path("none")); }), expected);
  EXPECT_EQ(error_of([&] { file_bytes(path("none")); }), expected);
}

TEST_F(File, DirectoryIsNoFile) {
  EXPECT_EQ(error_of([&] { read_file(directory.path()); }),
            "cannot read '" + directory.path().string() + "': it is a directory, expected a file");
}

// Opening a FIFO would wait for a writer, on all ranks and for ever.
TEST_F(File, WhatIsNoRegularFileIsNotRead) {
  test::make_fifo(path("fifo"));
  std::filesystem::create_symlink("fifo", path("link"));
  EXPECT_EQ(error_of([&] { read_file(path("link")); }),
            "cannot read '" + path("link").string() +
                "': it is a FIFO (named pipe), expected a regular file; write its content to a file first");
  if (!test::make_device(path("null"), test::Device::kNull)) GTEST_SKIP() << "no devices";
  test::expect_parts(error_of([&] { read_file(path("null")); }), {"it is a character device"});
}

// As another user could plant it in a directory that both may write to.
TEST_F(File, ALinkUnderATemporaryNameIsNotFollowed) {
  write_file_atomically(path("other"), "of somebody else");
  std::filesystem::create_symlink("other", path("a.partial-" + std::to_string(::getpid())));
  write_file_atomically(path("a"), "mine");
  EXPECT_EQ(read_file(path("a")), "mine");
  EXPECT_EQ(read_file(path("other")), "of somebody else");
  std::filesystem::create_symlink("other", path("part"));
  EXPECT_NE(error_of([&] { write_part(path("part"), 0, "mine"); }), "no error");
  EXPECT_EQ(read_file(path("other")), "of somebody else");
}

// They are gone with the process, whatever ends it. A file system without such files has other names, which
// are not repeated and are known by their middle.
TEST_F(File, WhatIsNotFinishedHasNoNameOrOneOfItsOwn) {
  AtomicFile one(path("a")), two(path("a"));
  const int unnamed = ::open(directory.path().c_str(), O_WRONLY | O_TMPFILE, 0600);
  EXPECT_EQ(files(), unnamed >= 0 ? 0 : 2);
  ::close(unnamed);
  for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
    EXPECT_TRUE(entry.path().filename().string().starts_with("a.partial-")) << entry.path();
  one.write("one");
  two.write("two");
  two.commit();
  EXPECT_EQ(read_file(path("a")), "two");
  one.commit();
  EXPECT_EQ(read_file(path("a")), "one");
  EXPECT_EQ(files(), 1);
}

// Such a link may lead to a file of somebody else.
TEST_F(File, ALinkAFifoOrADeviceIsNotAppendedTo) {
  write_file_atomically(path("other"), "of somebody else");
  std::filesystem::create_symlink("other", path("link"));
  std::filesystem::create_symlink("nowhere", path("dangling"));
  test::make_fifo(path("fifo"));
  EXPECT_EQ(error_of([&] { open_to_append(path("link")); }),
            "cannot write '" + path("link").string() +
                "': it is a symbolic link, expected a regular file; remove it");
  test::expect_parts(error_of([&] { open_to_append(path("dangling")); }), {"a symbolic link"});
  test::expect_parts(error_of([&] { open_to_append(path("fifo")); }), {"a FIFO"});
  const int file = open_to_append(path("other"));
  EXPECT_TRUE(write_all(file, ", and me"));
  ::close(file);
  EXPECT_EQ(read_file(path("other")), "of somebody else, and me");
}

TEST_F(File, HasTheRightsThatTheUserGivesToNewFiles) {
  const mode_t before = ::umask(027);
  write_file_atomically(path("a"), "text");
  ::umask(before);
  EXPECT_EQ(std::filesystem::status(path("a")).permissions(), std::filesystem::perms(0640));
}

TEST_F(File, UnusableNameIsADataError) {
  write_file_atomically(path("a"), "text");
  test::expect_parts(error_of([&] { read_file(path("a/b")); }), {"Not a directory"});
  test::expect_parts(error_of([&] { read_file(path(std::string(5000, 'x'))); }), {"File name too long"});
}

TEST_F(File, NothingIsLeftWhereNothingCanBeWritten) {
  test::expect_parts(error_of([&] { write_file_atomically(path("no/such/a"), "text"); }),
                     {"No such file or directory"});
  write_file_atomically(path("file"), "text");
  test::expect_parts(error_of([&] { write_file_atomically(path("file/a"), "text"); }), {"Not a directory"});
  EXPECT_EQ(files(), 1);
}

TEST_F(File, DirectoryIsNotReplacedAndNoTemporaryIsLeft) {
  std::filesystem::create_directories(path("taken/inside"));
  test::expect_parts(error_of([&] { write_file_atomically(path("taken"), "text"); }), {"cannot rename"});
  EXPECT_TRUE(std::filesystem::is_directory(path("taken/inside")));
  EXPECT_EQ(files(), 1);
}

TEST_F(File, DirectoriesAreMadeWithThoseAboveThem) {
  std::error_code error;
  for (const char* name : {"a/b/c", "d/e/", "f"}) {
    EXPECT_TRUE(create_synced_directories(path(name), error)) << name;
    EXPECT_FALSE(error) << name;
    EXPECT_TRUE(std::filesystem::is_directory(path(name))) << name;
    EXPECT_FALSE(create_synced_directories(path(name), error)) << name;
    EXPECT_FALSE(error) << name;
  }
  write_file_atomically(path("file"), "");
  EXPECT_FALSE(create_synced_directories(path("file/a"), error));
  EXPECT_TRUE(error);
}

TEST_F(File, PiecesAppearTogetherOrNotAtAll) {
  write_file_atomically(path("a"), "old");
  {
    AtomicFile abandoned(path("a"));
    abandoned.write("never seen");
  }
  EXPECT_EQ(read_file(path("a")), "old");
  EXPECT_EQ(files(), 1);
  AtomicFile file(path("a"));
  file.write("one ");
  file.write("two");
  EXPECT_EQ(read_file(path("a")), "old");
  file.commit();
  EXPECT_EQ(read_file(path("a")), "one two");
  EXPECT_EQ(files(), 1);
}

TEST_F(File, UnwritableDirectoryIsAnErrorWithItsReason) {
  // Nobody, not even root, can make files here.
  EXPECT_TRUE(error_of([] {
                write_file_atomically("/proc/lockstep", "text");
              }).starts_with("cannot create '/proc/lockstep"));
}

}  // namespace lockstep::file_test
