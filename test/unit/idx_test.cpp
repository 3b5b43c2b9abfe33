#include "support/idx_files.h"

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/data/formats/format.h"
#include "support/error_text.h"
#include "support/loaded.h"
#include "support/temporary_directory.h"

namespace lockstep::idx_test {

using namespace test;

// A data set of three records of 2x2 and their labels, of which single files can be replaced by bad ones.
class Idx : public testing::TestWithParam<const char*> {
 protected:
  Idx() {
    options_.train = directory_ / ("images" + end_);
    options_.train_labels = directory_ / ("labels" + end_);
    write_images(good_images_);
    write_labels(good_labels_);
  }
  void write_images(const std::string& content) { write_idx(options_.train, content); }
  void write_labels(const std::string& content) { write_idx(options_.train_labels, content); }
  // As they are, even if the name says gzip.
  static void write_exactly(const std::string& path, const std::string& bytes) {
    write_file_atomically(path, bytes);
  }

  std::unique_ptr<RecordSource> open(Split split = Split::kTrain) const {
    return choose_format(options_).open({options_, split, 1, alone()});
  }
  Gathered load_all(Index classes = 10) const {
    const auto source = open();
    const auto records = load(*source, everything(*source), {.classes = classes});
    return gather(*records, source->info(), wanted_ids(source->info().rows, everything(*source)));
  }
  std::string error(Index classes = 10) const {
    return error_text<DataError>([&] { load_all(classes); });
  }
  bool compressed() const { return end_.ends_with(".gz"); }
  const std::string end_ = GetParam();
  const std::string good_images_ =
      idx_content(IdxType::kU8, {3, 2, 2}, {0, 51, 102, 153, 204, 255, 0, 1, 2, 3, 4, 5});
  const std::string good_labels_ = idx_content(IdxType::kU8, {3}, {7, 0, 9});
  TemporaryDirectory directory_;
  DataOptions options_;
};

INSTANTIATE_TEST_SUITE_P(RawAndGzip, Idx, testing::Values("-ubyte", "-ubyte.gz", ".idx", ".idx.gz"));

class IdxGzip : public Idx {};

INSTANTIATE_TEST_SUITE_P(Gzip, IdxGzip, testing::Values("-ubyte.gz", ".idx.gz"));

TEST_P(Idx, BytesAreScaledAndLabelsAreNot) {
  const auto source = open();
  EXPECT_EQ(source->info().rows, 3);
  EXPECT_EQ(source->info().features, (Shape{{2, 2}}));
  EXPECT_EQ(source->info().target_columns, 1);
  EXPECT_EQ(source->info().source_bytes, file_bytes(options_.train) + file_bytes(options_.train_labels));
  const Gathered all = load_all();
  EXPECT_EQ(all.targets, (std::vector<Scalar>{7, 0, 9}));
  EXPECT_EQ(all.features[1], 51.0F / 255.0F);
  EXPECT_EQ(all.features[5], 1.0F);
}

TEST_P(Idx, EveryElementTypeComesBackAsItWasWritten) {
  const std::vector<double> whole = {-128, -1, 0, 127, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<double> fractions = {-1.5, 0.25, 3e5, -7, 0, 1, 2, 3, 4, 5, 6, 1e-3};
  for (const IdxType type : {IdxType::kI8, IdxType::kI16, IdxType::kI32, IdxType::kF32, IdxType::kF64}) {
    const std::vector<double>& values = type < IdxType::kF32 ? whole : fractions;
    write_images(idx_content(type, {3, 4}, values));
    write_labels(idx_content(type, {3}, {2, 0, 1}));
    const Gathered all = load_all();
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(all.features[i], static_cast<Scalar>(values[i])) << "type " << static_cast<int>(type);
    EXPECT_EQ(all.targets, (std::vector<Scalar>{2, 0, 1}));
  }
}

TEST_P(Idx, WideIntegersKeepTheirByteOrder) {
  write_images(idx_content(IdxType::kI16, {3, 1}, {-32768, 258, 32767}));
  EXPECT_EQ(load_all().features, (std::vector<Scalar>{-32768, 258, 32767}));
  write_images(idx_content(IdxType::kI32, {3, 1}, {-16777216, 66051, 16777216}));
  EXPECT_EQ(load_all().features, (std::vector<Scalar>{-16777216, 66051, 16777216}));
}

TEST_P(Idx, LabelsMayHaveSeveralColumns) {
  write_labels(idx_content(IdxType::kF32, {3, 2}, {0.5, -1, 2, 3, 4, 5.25}));
  EXPECT_EQ(open()->info().target_columns, 2);
  EXPECT_EQ(load_all(0).targets, (std::vector<Scalar>{0.5, -1, 2, 3, 4, 5.25}));
}

TEST_P(Idx, ARankHoldsOnlyWhatItWants) {
  const Index rows = 1000;
  const IdxPair files = write_idx_pair(directory_ / "many", {.rows = rows, .compressed = compressed()});
  options_.train = files.images;
  options_.train_labels = files.labels;
  const auto source = open();
  const auto whole = load(*source, everything(*source), {.classes = 10});
  const Index record_bytes = 12 + Index{sizeof(Scalar)};
  for (const Index parts : {2, 5, 1000}) {
    Index together = 0;
    for (Index part = 0; part < std::min<Index>(parts, 10); ++part) {
      const RecordFilter filter = every_nth(*source, parts, part);
      const auto some = load(*source, filter, {.classes = 10});
      const std::vector<Index> ids = wanted_ids(rows, filter);
      EXPECT_EQ(some->rows(), std::ssize(ids));
      EXPECT_LE(some->bytes(), some->rows() * record_bytes + rows / 4 + 16);
      EXPECT_EQ(gather(*some, source->info(), ids), gather(*whole, source->info(), ids));
      together += some->rows();
    }
    EXPECT_EQ(together, std::min<Index>(parts, 10) * rows / parts);
  }
}

TEST_P(Idx, RecordsLargerThanTheBufferAreRead) {
  const Index size = (Index{1} << 20) + 3;
  std::vector<double> pixels(static_cast<std::size_t>(3 * size), 0.0);
  pixels.back() = 255;
  at(pixels, size) = 255;
  write_images(idx_content(IdxType::kU8, {3, size}, pixels));
  const Gathered all = load_all();
  EXPECT_EQ(all.features.back(), 1.0F);
  EXPECT_EQ(at(all.features, size), 1.0F);
  EXPECT_EQ(all.features.front(), 0.0F);
}

TEST_P(Idx, BadMagic) {
  write_images("\x89PNG and so on");
  expect_parts(error(), {options_.train, "not an IDX file", "89 50 4e 47", "expected 00 00"});
  write_images(idx_content(static_cast<IdxType>(0x0A), {3, 2}, {}));
  expect_parts(error(), {options_.train, "not an IDX file", "00 00 0a 02", "08 u8"});
  write_images(idx_header(IdxType::kU8, {}));
  expect_parts(error(), {options_.train, "not an IDX file", "00 00 08 00"});
}

TEST_P(Idx, EveryTruncationOfTheDataIsFound) {
  for (std::size_t size = 0; size < good_images_.size(); ++size) {
    write_images(good_images_.substr(0, size));
    const std::string text = error();
    expect_parts(text, {options_.train});
    if (size < 4) expect_parts(text, {"found " + std::to_string(size)});
    if (size >= 4 && size < 16) expect_parts(text, {"truncated in its header", "expected 16 bytes"});
    if (size >= 16) {
      const std::size_t record = (size - 16) / 4;
      expect_parts(text, {"truncated", "record " + std::to_string(record) + " of 3", "expected 4 bytes",
                          "found " + std::to_string((size - 16) % 4)});
    }
  }
}

TEST_P(Idx, EveryTruncationOfTheFileIsFound) {
  const std::string whole = read_file(options_.train_labels);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_exactly(options_.train_labels, whole.substr(0, size));
    expect_parts(error(), {options_.train_labels});
  }
}

TEST_P(IdxGzip, ATruncatedOneSaysSo) {
  const IdxPair files = write_idx_pair(directory_ / "many", {.rows = 5000});
  options_.train = files.images;
  options_.train_labels = files.labels;
  const std::string whole = read_file(files.images);
  write_exactly(files.images, whole.substr(0, whole.size() / 2));
  expect_parts(error(),
               {files.images, "truncated", "of 5,000", "expected 12 bytes", "gzip stream is cut off"});
  // The records are all there, the last bytes of the check sum are not.
  write_exactly(files.images, whole.substr(0, whole.size() - 2));
  expect_parts(error(), {files.images, "truncated", "check sum", "gzip stream is cut off"});
}

TEST_P(IdxGzip, AWrongCheckSumIsFound) {
  std::string bytes = read_file(options_.train);
  bytes[bytes.size() - 8] = static_cast<char>(bytes[bytes.size() - 8] ^ 1);
  write_exactly(options_.train, bytes);
  expect_parts(error(), {options_.train, "damaged", "incorrect data check"});
}

TEST_P(Idx, SurplusBytesAreFound) {
  write_images(good_images_ + "x");
  expect_parts(error(), {options_.train, "does not fit its header", "3 records of 4 bytes"});
  // A raw file shows it before anything is loaded.
  if (!compressed()) expect_parts(error_text<DataError>([&] { open(); }), {options_.train, "found 1 bytes"});
}

TEST_P(Idx, DifferentCounts) {
  write_labels(idx_content(IdxType::kU8, {2}, {1, 2}));
  expect_parts(error(), {options_.train, "has 3 records", options_.train_labels, "has 2 labels"});
}

TEST_P(Idx, LabelsOutOfRange) {
  expect_parts(error(9), {options_.train_labels, "record 2", "found label 9", "a class below 9", "outputs",
                          "classes count from 0: if those of the file are 1 to 9, subtract 1"});
  EXPECT_EQ(load_all(0).targets, (std::vector<Scalar>{7, 0, 9}));
  write_labels(idx_content(IdxType::kF32, {3}, {1, 2.5, 0}));
  expect_parts(error(), {options_.train_labels, "record 1", "found label 2.5", "a class below 10"});
  write_labels(idx_content(IdxType::kI8, {3}, {-1, 2, 0}));
  expect_parts(error(), {options_.train_labels, "record 0", "found label -1", "a class below 10"});
}

TEST_P(Idx, NumbersThatAreNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  write_images(idx_content(IdxType::kF32, {3, 2}, {0, 1, 2, nan, 4, 5}));
  expect_parts(error(), {options_.train, "record 1", "found nan", "finite"});
  write_images(idx_content(IdxType::kF64, {3, 2}, {0, 1, 2, 3, 4, 1e300}));
  expect_parts(error(), {options_.train, "record 2", "found 1e+300", "single precision"});
}

TEST_P(Idx, AbsurdSizesTakeNoMemory) {
  const Index huge = Index{1} << 31;
  write_images(idx_header(IdxType::kU8, {huge, 28, 28}) + "abcd");
  expect_parts(error(), {options_.train, "truncated", "2,147,483,648", "784 bytes"});
  write_images(idx_header(IdxType::kF64, {huge, huge, huge}));
  expect_parts(error(), {options_.train, "2147483648x2147483648x2147483648", "more than any file holds"});
  write_images(idx_header(IdxType::kU8, {3, 0}));
  expect_parts(error(), {options_.train, "holds no data", "3x0"});
  write_images(idx_header(IdxType::kU8, {0, 4}));
  expect_parts(error(), {options_.train, "holds no data", "0x4"});
}

TEST_P(Idx, WrongNumberOfDimensions) {
  std::swap(options_.train, options_.train_labels);
  expect_parts(error(), {options_.train, "1 dimension", "data.train_labels"});
  options_.train = options_.train_labels;
  expect_parts(error(), {options_.train_labels, "3 dimensions", "expected 1 or 2", "data.train"});
}

TEST_P(Idx, EmptyFileDirectoryAndMissingFile) {
  write_exactly(options_.train, "");
  expect_parts(error(), {options_.train, "not an IDX file", "found 0"});
  options_.train = directory_ / ("directory" + end_);
  std::filesystem::create_directory(options_.train);
  expect_parts(error(), {options_.train, "a directory without files"});
  options_.train = directory_ / ("missing" + end_);
  expect_parts(error(), {options_.train, "data.train", "does not exist", "correct the path"});
}

TEST_P(Idx, SplitsThatAreNotNamed) {
  EXPECT_EQ(open(Split::kValidation), nullptr);
  EXPECT_EQ(open(Split::kTest), nullptr);
  options_.test = options_.train;
  const auto open_test = [&] { open(Split::kTest); };
  expect_parts(error_text<ConfigError>(open_test), {"data.test is set", "data.test_labels is not"});
  options_.test_labels = options_.train_labels;
  EXPECT_EQ(open(Split::kTest)->info().rows, 3);
  options_.test.clear();
  expect_parts(error_text<ConfigError>(open_test), {"data.test_labels is set", "data.test is not"});
  options_.train_labels.clear();
  const auto open_train = [&] { open(); };
  expect_parts(error_text<ConfigError>(open_train), {"data.train is set", "data.train_labels is not"});
}

}  // namespace lockstep::idx_test
