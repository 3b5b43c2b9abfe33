#include "lockstep/data/inputs/byte_stream.h"

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep::file_list_test {

using namespace test;

class FileList : public testing::Test {
 protected:
  FileList() {
    for (const char* name : {"b.bin", "a.bin", "c.txt", "_SUCCESS", ".hidden", "part,1.bin"})
      write_file_atomically(directory_ / name, "x");
    std::filesystem::create_directory(directory_ / "inner");
  }
  // The names of the files, without their directory.
  std::vector<std::string> names(const std::string& text, const std::vector<std::string>& extensions = {}) {
    std::vector<std::string> found;
    for (const std::string& path : list_files(text, extensions, "data.train"))
      found.push_back(std::filesystem::path(path).filename());
    return found;
  }
  std::string error(const std::string& text) {
    return error_text<DataError>([&] { names(text); });
  }
  using Names = std::vector<std::string>;
  TemporaryDirectory directory_;
};

TEST_F(FileList, AFileIsItself) {
  EXPECT_EQ(names(directory_ / "c.txt"), Names{"c.txt"});
  EXPECT_EQ(names(directory_ / "part,1.bin"), Names{"part,1.bin"});
}

TEST_F(FileList, ADirectoryIsItsFilesOfTheFormatOrAll) {
  EXPECT_EQ(names(directory_.path(), {".bin"}), (Names{"a.bin", "b.bin", "part,1.bin"}));
  EXPECT_EQ(names(directory_.path(), {".csv"}), (Names{"a.bin", "b.bin", "c.txt", "part,1.bin"}));
  expect_parts(error(directory_ / "inner"), {"data.train", "inner", "a directory without files"});
}

TEST_F(FileList, PatternsAndListsAreTakenInOrder) {
  EXPECT_EQ(names(directory_ / "?.bin"), (Names{"a.bin", "b.bin"}));
  EXPECT_EQ(names(directory_ / "{b,a}.bin"), (Names{"a.bin", "b.bin"}));
  EXPECT_EQ(names(directory_ / "c.txt" + std::string(",") + std::string(directory_ / "[ab].bin")),
            (Names{"c.txt", "a.bin", "b.bin"}));
}

TEST_F(FileList, AListMayBeLongerThanAnyPath) {
  const std::string name = directory_ / "a.bin";
  std::string text = name;
  for (int i = 1; i < 1000; ++i) text.append(",").append(name);
  EXPECT_EQ(names(text).size(), 1000U);
}

TEST_F(FileList, AnArrayOfAnArchiveStaysWithItsName) {
  for (const char* name : {"x1.npz", "x2.npz"}) write_file_atomically(directory_ / name, "x");
  EXPECT_EQ(names(directory_ / "x*.npz:images"), (Names{"x1.npz:images", "x2.npz:images"}));
}

TEST_F(FileList, WhatDoesNotExistIsNamed) {
  expect_parts(error(directory_ / "none.bin"), {"data.train", "none.bin", "does not exist"});
  expect_parts(error(directory_ / "none*.bin"), {"data.train", "none*.bin", "matches no file"});
  expect_parts(error(directory_ / "a.bin" + std::string(",none.bin")), {"data.train", "'none.bin'"});
  expect_parts(error("none.bin"), {"does not exist in '" + std::filesystem::current_path().string() + "'"});
  expect_parts(error(std::string(300, 'x') + "/" + std::string(5000, 'y')), {"data.train", "too long"});
}

}  // namespace lockstep::file_list_test
