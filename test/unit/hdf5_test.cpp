// What the hdf5 format makes of good and of bad files, or of any where the build has no HDF5.
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/inputs/byte_stream.h"
#include "support/error_text.h"
#include "support/hdf5_files.h"
#include "support/loaded.h"
#include "support/temporary_directory.h"

namespace lockstep::hdf5_test {

using namespace test;

struct Hdf5 : testing::Test {
  std::unique_ptr<RecordSource> open() const {
    return choose_format(options).open({options, Split::kTrain, 1, alone()});
  }
  Gathered load_all() const {
    const auto source = open();
    const auto records = load(*source, everything(*source), {.classes = 10});
    return gather(*records, source->info(), wanted_ids(source->info().rows, everything(*source)));
  }
  std::string error() const {
    return error_text<DataError>([&] { load_all(); });
  }
  void name(const std::string& features, const std::string& labels) {
    options.train = path + ":" + features;
    options.train_labels = path + ":" + labels;
  }
  TemporaryDirectory directory;
  std::string path = directory / "data.h5";
  DataOptions options;
};

#if LOCKSTEP_HAS_HDF5

const std::vector<double> kFeatures{1, 2, 3, 4, 5, 6.5};
const std::vector<int> kLabels{7, 0, 9};

TEST_F(Hdf5, ReadsNumbersOfAnyTypeHoweverStored) {
  const std::vector<Hdf5Chunks> stored{{}, {.rows = 2}, {.rows = 2, .deflate = true}};
  for (const Hdf5Chunks& chunks : stored)
    for (const hid_t type : {H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE}) {
      for (const hid_t label : {H5T_STD_I64BE, H5T_STD_U16LE, H5T_STD_I8LE, H5T_IEEE_F32LE}) {
        Hdf5File file(path);
        file.add("train/x", type, H5T_NATIVE_DOUBLE, {3, 2}, kFeatures.data(), chunks);
        file.add("y", label, H5T_NATIVE_INT, {3}, kLabels.data(), chunks);
        name("/train/x", "y");
      }
      EXPECT_EQ(load_all().features, (std::vector<Scalar>{1, 2, 3, 4, 5, 6.5F}));
      EXPECT_EQ(load_all().targets, (std::vector<Scalar>{7, 0, 9}));
      EXPECT_EQ(open()->info().source_bytes, file_bytes(path));
    }
}

// The next larger ones of memory hold them: floats of 16 bits, and whole numbers of 24.
TEST_F(Hdf5, ReadsNumbersOfSizesThatMemoryDoesNotKnow) {
  const hid_t half = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(half, 15, 10, 5, 0, 10);
  H5Tset_size(half, 2);
  H5Tset_ebias(half, 15);
  for (const hid_t whole : {H5T_STD_I32LE, H5T_STD_U32LE}) {
    const hid_t three_bytes = H5Tcopy(whole);
    H5Tset_size(three_bytes, 3);
    {
      Hdf5File file(path);
      file.add("x", half, H5T_NATIVE_DOUBLE, {3, 2}, kFeatures.data());
      file.add("y", three_bytes, H5T_NATIVE_INT, {3}, kLabels.data());
    }
    H5Tclose(three_bytes);
    name("x", "y");
    EXPECT_EQ(load_all().features, (std::vector<Scalar>{1, 2, 3, 4, 5, 6.5F}));
    EXPECT_EQ(load_all().targets, (std::vector<Scalar>{7, 0, 9}));
  }
  H5Tclose(half);
}

TEST_F(Hdf5, BytesAreScaledAndBooleansAreNumbers) {
  const std::vector<unsigned char> bytes{0, 0x33, 0xff};
  {
    Hdf5File file(path);
    file.add("x", H5T_STD_U8LE, H5T_NATIVE_UCHAR, {3, 1}, bytes.data());
    const hid_t boolean = H5Tenum_create(H5T_NATIVE_INT8);
    signed char value = 0;
    H5Tenum_insert(boolean, "FALSE", &value);
    value = 1;
    H5Tenum_insert(boolean, "TRUE", &value);
    const std::vector<signed char> truths{1, 0, 1};
    file.add("y", boolean, boolean, {3}, truths.data());
    H5Tclose(boolean);
  }
  name("x", "y");
  EXPECT_EQ(load_all().targets, (std::vector<Scalar>{1, 0, 1}));
  EXPECT_EQ(load_all().features, (std::vector<Scalar>{0, 0.2F, 1}));
}

TEST_F(Hdf5, GivesTheBytesOfAnyPlace) {
  Hdf5File(path).add("x", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {3, 2}, kFeatures.data(), {.rows = 2});
  ByteStream stream(path + ":x");
  const auto all = std::as_bytes(std::span(kFeatures));
  for (const Index begin : {0, 1, 15, 16, 17, 47, 48})
    for (const Index count : {1, 16, 20, 48}) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(count));
      stream.go_to(begin);
      const Index got = stream.read(bytes);
      EXPECT_EQ(got, std::min<Index>(count, 48 - begin));
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + got, all.begin() + begin));
    }
}

// The library would open the files that are named inside, whatever they are.
TEST_F(Hdf5, NumbersInOtherFilesAreRefused) {
  const std::string other = directory / "other.bin";
  write_file_atomically(other, std::string(1 << 10, 'x'));
  {
    Hdf5File file(path);
    file.add("y", H5T_STD_I32LE, H5T_NATIVE_INT, {3}, kLabels.data());
    file.add("x", H5T_IEEE_F32LE, H5T_NATIVE_DOUBLE, {3, 2}, nullptr, {.external = other});
    file.add("v", H5T_IEEE_F32LE, H5T_NATIVE_DOUBLE, {3, 2}, nullptr, {.virtual_of = other});
    file.link("l", other, "x");
  }
  const auto expect = [&](const std::string& features, const std::vector<std::string>& parts) {
    name(features, "y");
    expect_parts(error(), {path + ":" + features, "in another file"});
    expect_parts(error(), parts);
  };
  expect("x", {"external storage: '" + other + "'"});
  expect("l", {"an external link: '" + other + "'"});
  expect("v", {"a virtual data set"});
}

TEST_F(Hdf5, SaysWhatIsWrong) {
  {
    Hdf5File file(path);
    file.add("x", H5T_IEEE_F32LE, H5T_NATIVE_DOUBLE, {3, 2}, kFeatures.data());
    file.add("y", H5T_STD_I32LE, H5T_NATIVE_INT, {3}, kLabels.data());
    file.add("single", H5T_STD_I32LE, H5T_NATIVE_INT, {}, kLabels.data());
    file.add("huge", H5T_STD_I32LE, H5T_NATIVE_INT, {1'000'000'000'000, 9}, nullptr, {.rows = 1000});
    file.add("wide", H5T_STD_I32LE, H5T_NATIVE_INT, {0, Index{1} << 61, 2}, nullptr);
    file.add("text", H5T_C_S1, H5T_C_S1, {3}, "abc");
    file.add("empty", H5T_STD_I32LE, H5T_NATIVE_INT, {0, 2}, nullptr);
  }
  const auto expect = [&](const std::string& features, const std::vector<std::string>& parts) {
    name(features, "y");
    expect_parts(error(), parts);
  };
  expect("z", {path, "no data set 'z'", "empty, huge, single, text, wide, x, y"});
  expect("x:y", {path, "no data set 'x:y'"});
  expect("single", {path, "single number"});
  expect("huge", {path, "1000000000000x9", "0 bytes are stored"});
  expect("wide", {path, "0x2305843009213693952x2", "0 bytes are stored"});
  expect("text", {path, "does not hold numbers"});
  expect("empty", {path, "no data"});
  expect("y", {path, "1 dimension", "data.train"});
  options.train = path;
  expect_parts(error(), {path, "data.train", "say which one", "x, y"});
  name("x", "x");
  expect_parts(error(), {"found label", "a probability from 0 to 1"});
  write_file_atomically(path, read_file(path).substr(0, 3000));
  expect("x", {path, "truncated"});
  write_file_atomically(path, "no HDF5");
  expect("x", {path, "as HDF5"});
}

#else

TEST_F(Hdf5, SaysHowToGetTheLibrary) {
  write_file_atomically(path, "x");
  for (const std::string features : {path + ":x", path}) {
    options.train = features;
    expect_parts(error_text<ConfigError>([&] { load_all(); }),
                 {path, "built without HDF5", "apt-get install libhdf5-dev"});
  }
}

#endif

}  // namespace lockstep::hdf5_test
