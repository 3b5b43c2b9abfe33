// Results under names that users give: what is refused, what is replaced, and what is written to as it is.
#include "lockstep/base/output_file.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "support/error_text.h"
#include "support/special_files.h"
#include "support/temporary_directory.h"

namespace lockstep::output_file_test {

using namespace test;

class Outputs : public testing::Test {
 protected:
  std::string refusal(const std::string& name, const std::vector<std::string>& inputs = {},
                      bool overwrite = false) const {
    return error_text<ConfigError>(
        [&] { check_output({.flag = "--output", .name = name, .inputs = inputs, .overwrite = overwrite}); });
  }
  TemporaryDirectory directory_;
  std::string file_ = directory_ / "a.csv";
};

TEST_F(Outputs, AFileThatExistsIsReplacedOnlyIfAsked) {
  check_output({.flag = "--output", .name = file_});
  write_output(file_, "old");
  EXPECT_EQ(refusal(file_),
            "--output '" + file_ + "' exists already: name another file, or give --overwrite to replace it");
  check_output({.flag = "--output", .name = file_, .overwrite = true});
  write_output(file_, "new");
  EXPECT_EQ(read_file(file_), "new");
}

TEST_F(Outputs, AnInputIsNeverWrittenWhateverItsName) {
  write_output(file_, "input");
  std::filesystem::create_directory(directory_ / "d");
  std::filesystem::create_symlink(file_, directory_ / "link");
  std::filesystem::create_hard_link(file_, directory_ / "hard");
  for (const std::string& name :
       {file_, directory_ / "d/../a.csv", directory_ / "link", directory_ / "hard"}) {
    for (const bool overwrite : {false, true})
      expect_parts(refusal(name, {directory_ / "none", file_}, overwrite),
                   {"'" + name + "' is the file '" + file_ + "', which is read"});
  }
}

TEST_F(Outputs, WhatCanBeNoFileIsRefusedBeforeTheWork) {
  expect_parts(refusal(directory_.path(), {}, true), {"is a directory"});
  const std::string socket_name = directory_ / "s";
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  socket_name.copy(address.sun_path, sizeof address.sun_path - 1);
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(descriptor);
  expect_parts(refusal(socket_name, {}, true), {"is a socket"});
  const std::string name = directory_ / "no/such/a.csv";
  EXPECT_EQ(error_text<DataError>([&] { check_output({.flag = "--output", .name = name}); }),
            "cannot create '" + name + "': No such file or directory");
}

TEST_F(Outputs, ALinkIsFollowedAndStays) {
  const std::string link = directory_ / "link";
  std::filesystem::create_symlink("a.csv", link);
  check_output({.flag = "--output", .name = link});
  write_output(link, "first");  // the link led to nothing
  EXPECT_EQ(read_file(file_), "first");
  expect_parts(refusal(link), {"exists already"});
  write_output(link, "second");
  EXPECT_EQ(read_file(file_), "second");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

TEST_F(Outputs, AFifoIsWrittenToAndStays) {
  const std::string fifo = directory_ / "fifo";
  make_fifo(fifo);
  EXPECT_TRUE(is_stream(fifo));
  check_output({.flag = "--output", .name = fifo});
  std::string got;
  std::thread reader([&] { std::getline(std::ifstream(fifo), got, '\0'); });
  write_output(fifo, "through the pipe");
  reader.join();
  EXPECT_EQ(got, "through the pipe");
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
}

TEST_F(Outputs, AReaderThatGoesAwayIsAnError) {
  const std::string fifo = directory_ / "fifo";
  make_fifo(fifo);
  std::thread reader([&] { std::ifstream(fifo).get(); });
  OutputFile file(fifo);
  file.write("x");
  reader.join();
  EXPECT_EQ(error_text<DataError>([&] { file.write("y"); }), "cannot write '" + fifo + "': Broken pipe");
}

TEST_F(Outputs, DevicesAreWrittenToAndStay) {
  const std::string null = directory_ / "null", full = directory_ / "full";
  if (!make_device(null, Device::kNull) || !make_device(full, Device::kFull)) GTEST_SKIP() << "no devices";
  for (const std::string& name : {null, full}) check_output({.flag = "--output", .name = name});
  write_output(null, "gone");
  EXPECT_EQ(error_text<DataError>([&] { write_output(full, "no room"); }),
            "cannot write '" + full + "': No space left on device");
  // Files of a run are no streams, but do not take the place of a device either.
  expect_parts(error_text<DataError>([&] { write_file_atomically(null, "text"); }),
               {"cannot replace '" + null + "'", "a character device"});
  EXPECT_TRUE(is_device(null));
  EXPECT_TRUE(is_device(full));
}

TEST_F(Outputs, ABlockDeviceHoldsWhatCouldBeLost) {
  const std::string disk = directory_ / "disk";
  if (::mknod(disk.c_str(), S_IFBLK | 0600, makedev(7, 250)) != 0) GTEST_SKIP() << "no devices";
  expect_parts(refusal(disk), {"block device", "--overwrite"});
  EXPECT_TRUE(std::filesystem::is_block_file(disk));
}

TEST_F(Outputs, StandardOutputHasTwoNames) {
  for (const std::string name : {"-", "/dev/stdout"}) {
    EXPECT_TRUE(is_standard_output(name) && is_stream(name)) << name;
    EXPECT_EQ(describe_output(name), "standard output");
  }
  EXPECT_FALSE(is_stream("--") || is_stream(file_));
  EXPECT_EQ(describe_output(file_), file_);
}

}  // namespace lockstep::output_file_test
