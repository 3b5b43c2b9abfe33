// What the binary formats without IDX make of good and of bad files: numpy, cifar10, cifar100, raw.
#include "data/formats/record_file.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/parts/validation_split.h"
#include "support/error_text.h"
#include "support/idx_files.h"
#include "support/loaded.h"
#include "support/numpy_files.h"
#include "support/temporary_directory.h"

namespace lockstep::binary_formats_test {

using namespace test;

class BinaryFormats : public testing::Test {
 protected:
  std::unique_ptr<RecordSource> open() const {
    return choose_format(options_).open({options_, Split::kTrain, 1, alone()});
  }
  Gathered load_all(Index classes = 10) const {
    const auto source = open();
    const auto records = load(*source, everything(*source), {.classes = classes});
    return gather(*records, source->info(), wanted_ids(source->info().rows, everything(*source)));
  }
  template <class Error = DataError>
  std::string error() const {
    return error_text<Error>([&] { load_all(); });
  }
  void write_pair(const std::string& features, const std::string& labels) {
    options_.train = directory_ / "x.npy";
    options_.train_labels = directory_ / "y.npy";
    write_file_atomically(options_.train, features);
    write_file_atomically(options_.train_labels, labels);
  }
  const std::string features_ = npy_content("<f4", {3, 2}, bytes_of<float>({1, 2, 3, 4, 5, 6.5F}));
  const std::string labels_ = npy_content("<i8", {3}, bytes_of<std::int64_t>({7, 0, 9}));
  TemporaryDirectory directory_;
  DataOptions options_;
};

TEST_F(BinaryFormats, NumpyReadsEveryTypeAndVersion) {
  for (const char version : {'\1', '\2', '\3'}) {
    write_pair(npy_content("<f4", {3, 2}, bytes_of<float>({1, 2, 3, 4, 5, 6.5F}), version), labels_);
    EXPECT_EQ(load_all().features, (std::vector<Scalar>{1, 2, 3, 4, 5, 6.5F}));
    EXPECT_EQ(load_all().targets, (std::vector<Scalar>{7, 0, 9}));
  }
  write_pair(features_, npy_content("<i8", {3, 1}, bytes_of<std::int64_t>({7, 0, 9})));
  EXPECT_EQ(load_all().targets, (std::vector<Scalar>{7, 0, 9})) << "labels as a column";
  write_pair(npy_content("<f8", {3, 1}, bytes_of<double>({-1.5, 0, 1e3})), labels_);
  EXPECT_EQ(load_all().features, (std::vector<Scalar>{-1.5F, 0, 1e3F}));
  write_pair(npy_content("|u1", {3, 1}, std::string{'\0', '\x33', '\xff'}), labels_);
  EXPECT_EQ(load_all().features, (std::vector<Scalar>{0, 51.0F / 255.0F, 1}));
  write_pair(npy_content("|b1", {3, 1}, std::string{'\0', '\1', '\1'}), labels_);
  EXPECT_EQ(load_all().features, (std::vector<Scalar>{0, 1, 1}));
  write_pair(npy_content(">i2", {3, 1}, std::string{'\1', '\2', '\0', '\1', '\xff', '\xff'}), labels_);
  EXPECT_EQ(load_all().features, (std::vector<Scalar>{258, 1, -1}));
  write_pair(npy_content("<u4", {3, 1}, bytes_of<std::uint32_t>({1, 4000000000U, 3})), labels_);
  EXPECT_EQ(load_all().features[1], 4e9F);
}

TEST_F(BinaryFormats, NumpyArchivesHoldSeveralArrays) {
  for (const bool compressed : {false, true}) {
    const std::string path = directory_ / (compressed ? "c.npz" : "s.npz");
    write_npz(path, {{"x_train", features_}, {"y_train", labels_}}, compressed);
    options_.train = path + ":x_train";
    options_.train_labels = path + ":y_train";
    EXPECT_EQ(load_all().features, (std::vector<Scalar>{1, 2, 3, 4, 5, 6.5F}));
    EXPECT_EQ(load_all().targets, (std::vector<Scalar>{7, 0, 9}));
    EXPECT_EQ(open()->info().source_bytes, file_bytes(path));
    options_.train = path + ":x";
    expect_parts(error(), {path, "has no array 'x'", "x_train, y_train"});
    options_.train = path;
    expect_parts(error(), {path, "data.train", "say which one"});
    options_.train = path + ":x_train";
    std::string bytes = read_file(path);
    char& changed = bytes[bytes.size() / 3];
    changed = static_cast<char>(changed ^ 0x55);
    write_file_atomically(path, bytes);
    expect_parts(error(), {path});
    write_file_atomically(path, bytes.substr(0, bytes.size() / 2));
    expect_parts(error(), {path, "cannot open the archive"});
  }
}

TEST_F(BinaryFormats, NumpyNamesWhatIsWrongWithAHeader) {
  const auto expect = [&](const std::string& features, const std::vector<std::string>& parts) {
    write_pair(features, labels_);
    std::vector<std::string> all = parts;
    all.push_back(options_.train);
    expect_parts(error(), all);
  };
  expect("no array", {"not an array file of numpy", "6e"});
  expect(features_.substr(0, 30), {"ends in its header"});
  for (const char version : {'\0', '\4', '\x09'})
    expect(npy_content("<f4", {3, 2}, std::string(24, 'x'), version),
           {"version", "expected 1.0, 2.0 or 3.0"});
  expect(std::string("\x93NUMPY\x01\x05", 8) + features_.substr(8), {"version 1.5"});
  expect(features_.substr(0, features_.size() - 1), {"truncated", "record 2 of 3", "found 7"});
  expect(features_ + "x", {"does not fit its header"});
  expect(npy_content("<c8", {3, 2}, "abcdefabcdef"), {"type <c8", "astype"});
  expect(npy_content("|O", {3, 2}, "abc"), {"type |O"});
  const auto fields = [](const std::string& descr, const std::string& shape = "(3,)") {
    return npy_start("{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }") +
           std::string(24, 'x');
  };
  expect(fields("[('a', '<f4'), ('b', '<U1')]"), {"field 'b' of the type '<U1'", "x.npy:a'"});
  expect(fields("[('a', '<f4'), ('b', '<f4')]", "(3, 1)"), {"2 dimensions, expected 1"});
  expect(fields("[('a', '<f4'), ('b', '<f4')]", "(4,)"), {"truncated"});
  expect(fields("[('', '|V8')]"), {"no fields"});
  expect(fields("[('a', '<f4', (3, x))]"), {"expected a shape"});
  expect(fields("[('a', '<f4', (99999999999,))]"), {"no more than 2 GiB"});
  expect(fields("[('a' '<f4')]"), {"expected ','"});
  expect(fields("[('a', 'f')]"), {"the type 'f'"});
  expect(fields("[('a', [('b', [('c"), {"fields that are none: expected ','"});
  expect(npy_start("{'fortran_order': False, 'shape': (3, 2), }"), {"no 'descr'"});
  expect(npy_start("{'descr': '<f4', 'fortran_order': False, 'shape': (3, x), }"), {"shape"});
  expect(npy_start("{'descr': '<f4', 'fortran_order': False, 'shape': (), }"), {"single number"});
  expect(npy_start("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }"),
         {"damaged", "99999999999x99999999999"});
  expect(npy_start("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000, 2), }"), {"truncated"});
  expect(npy_content("<f4", {3}, bytes_of<float>({1, 2, 3})), {"1 dimension", "data.train"});
  expect(npy_content("<f4", {2, 2}, bytes_of<float>({1, 2, 3, 4})), {"2 records", "3 labels"});
  expect(npy_content("<f4", {3, 1}, bytes_of<float>({1, NAN, 3})), {"record 1", "found nan", "finite"});
  expect(npy_content("<f8", {3, 1}, bytes_of<double>({1, -1e300, 3})),
         {"record 1", "found -1e+300", "single precision"});
}

// What numpy.float16 makes of 1, -2.5, 65504 (the largest), 2^-24 (the smallest) and -0.
TEST_F(BinaryFormats, NumpyHalfPrecisionIsRead) {
  write_pair(npy_content("<f2", {3, 1}, std::string("\x00\x3c\x00\xc1\xff\x7b", 6)), labels_);
  EXPECT_EQ(load_all().features, (std::vector<Scalar>{1, -2.5F, 65504}));
  write_pair(npy_content(">f2", {3, 1}, std::string("\x00\x01\x80\x00\x04\x00", 6)), labels_);
  EXPECT_EQ(load_all().features, (std::vector<Scalar>{std::ldexp(1.0F, -24), -0.0F, std::ldexp(1.0F, -14)}));
  write_pair(npy_content("<f2", {3, 1}, std::string("\x00\x3c\x00\x7c\xff\x7b", 6)), labels_);
  expect_parts(error(), {"record 1", "found inf", "a finite number"});
}

// As numpy writes x.T, and columns of a data frame.
TEST_F(BinaryFormats, NumpyFortranOrderIsRead) {
  const std::string bytes = bytes_of<float>({1, 3, 5, 2, 4, 6.5F});
  write_pair(npy_start("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }") + bytes, labels_);
  EXPECT_EQ(load_all().features, (std::vector<Scalar>{1, 2, 3, 4, 5, 6.5F}));
  // numpy.arange(12).reshape(3, 2, 2) in Fortran order.
  write_pair(npy_start("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2, 2), }") +
                 bytes_of<float>({0, 4, 8, 2, 6, 10, 1, 5, 9, 3, 7, 11}),
             labels_);
  EXPECT_EQ(load_all().features, (std::vector<Scalar>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(open()->info().features, (Shape{{2, 2}}));
  write_pair(npy_start("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }") + bytes.substr(1),
             labels_);
  expect_parts(error(), {"truncated"});
  const std::string path = directory_ / "f.npz";
  write_npz(path, {{"x", npy_start("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }") + bytes}},
            true);
  options_.train = path + ":x";
  expect_parts(error(), {"Fortran order", "ascontiguousarray"});
}

// numpy.array([(31, 1.5, b'Oslo', 1), (28, -2, b'Voss', 0), (40, 0.25, b'', 1)], dtype = [('age', '>i2'),
// ('pay', '<f8'), ('city', 'S5'), ('high', '?')]), with numpy.save.
TEST_F(BinaryFormats, NumpyFieldsAreChosenByName) {
  std::string bytes;
  for (const auto& [age, pay, city, high] :
       {std::tuple{'\x1f', 1.5, "Oslo", '\1'}, {'\x1c', -2.0, "Voss", '\0'}, {'\x28', 0.25, "", '\1'}}) {
    bytes += std::string{'\0', age} + bytes_of<double>({pay});
    bytes += std::string(city).append(5 - std::string(city).size(), '\0') + high;
  }
  const std::string content =
      npy_start(
          "{'descr': [('age', '>i2'), ('pay', '<f8'), ('city', '|S5'), ('high', '|b1')], 'fortran_order': "
          "False, 'shape': (3,), }") +
      bytes;
  const std::string path = directory_ / "people.npy";
  write_file_atomically(path, content);
  options_.train = path + ":age+pay";
  options_.train_labels = path + ":high";
  EXPECT_EQ(load_all().features, (std::vector<Scalar>{31, 1.5F, 28, -2, 40, 0.25F}));
  EXPECT_EQ(load_all().targets, (std::vector<Scalar>{1, 0, 1}));
  EXPECT_EQ(open()->files(), (std::vector<std::string>{path}));
  options_.train = path + ":pay+age+age";
  EXPECT_EQ(load_all().features, (std::vector<Scalar>{1.5F, 31, 31, -2, 28, 28, 0.25F, 40, 40}));
  options_.train = path;
  expect_parts(error(), {path, "field 'city' of the type '|S5'", "people.npy:age+pay+high'"});
  options_.train = path + ":salary";
  expect_parts(error(), {path, "no field 'salary', its fields: age, pay, city, high"});
  const std::string archive = directory_ / "people.npz";
  for (const bool compressed : {false, true}) {
    write_npz(archive, {{"p", content}}, compressed);
    options_.train = archive + ":p:pay";
    options_.train_labels = archive + ":p:high";
    EXPECT_EQ(load_all().features, (std::vector<Scalar>{1.5F, -2, 0.25F}));
    EXPECT_EQ(load_all().targets, (std::vector<Scalar>{1, 0, 1}));
  }
}

// As numpy.lib.recfunctions and numpy.dtype(..., align = True) write them: fields of fields, rows of numbers
// in a field, and bytes between fields.
TEST_F(BinaryFormats, NumpyFieldsThatNoPathNamesAreFeatures) {
  const std::string path = directory_ / "f.npy";
  std::string bytes;
  for (const float first : {1.0F, 2.0F})
    bytes += std::string("\3\0\0\0", 4) + bytes_of<float>({first, 5, 6}) + bytes_of<std::int32_t>({7, 8});
  write_file_atomically(path,
                        npy_start("{'descr': [('label', '|u1'), ('', '|V3'), ('x', '<f4', (3,)), "
                                  "(('a title', 'pos'), [('u', '<i4'), ('v', '<i4')])], 'fortran_order': "
                                  "False, 'shape': (2,), }") +
                            bytes);
  options_.train = path;
  options_.train_labels = path + ":label";
  EXPECT_EQ(load_all().features, (std::vector<Scalar>{1, 5, 6, 7, 8, 2, 5, 6, 7, 8}));
  EXPECT_EQ(load_all().targets, (std::vector<Scalar>{3, 3}));
  options_.train = path + ":x";
  EXPECT_EQ(open()->info().features, (Shape{{3}}));
  options_.train = path + ":pos.v";
  EXPECT_EQ(load_all().features, (std::vector<Scalar>{8, 8}));
  options_.train = path + ":label";
  EXPECT_EQ(load_all().features[0], 3.0F / 255.0F) << "a field of bytes alone is scaled as an array of them";
}

TEST_F(BinaryFormats, CifarImagesAreTurnedToChannelsLast) {
  options_.format = "cifar10";
  options_.train = directory_ / "data_batch_1.bin";
  std::string record(3073, '\0');
  record[0] = 6;
  record[1] = '\x33';             // red of the first pixel
  record[1 + 1024] = '\x66';      // green
  record[1 + 2 * 1024 + 1] = -1;  // blue of the second
  write_file_atomically(options_.train, record + record);
  EXPECT_EQ(open()->info().features, (Shape{{32, 32, 3}}));
  const Gathered all = load_all();
  EXPECT_EQ(all.targets, (std::vector<Scalar>{6, 6}));
  EXPECT_EQ(std::tuple(all.features[0], all.features[1], all.features[5], all.features[3]),
            std::tuple(51.0F / 255.0F, 102.0F / 255.0F, 1, 0));
  write_file_atomically(options_.train, record + record.substr(1));
  expect_parts(error(), {options_.train, "multiple of 3,073", "3,072 bytes are too many after 1 records"});
  record[0] = 11;
  write_file_atomically(options_.train, record);
  expect_parts(error(), {options_.train, "record 0", "found label 11"});
}

TEST_F(BinaryFormats, FilesAreJoinedInOrder) {
  options_.format = "raw";
  options_.raw_layout = "label:u8 features:i16[1]";
  options_.train = directory_ / "part-*.bin";
  write_file_atomically(directory_ / "part-2.bin", std::string("\x03\x07\x00", 3));
  write_file_atomically(directory_ / "part-1.bin", std::string("\x01\x05\x00\x02\x06\x00", 6));
  const auto source = open();
  EXPECT_EQ(source->info().rows, 3);
  EXPECT_EQ(source->info().source_bytes, 9);
  ASSERT_EQ(source->chunks().size(), 2U);
  EXPECT_EQ(source->chunks()[1].records, (Range{2, 3}));
  EXPECT_EQ(source->chunks()[1].file, 1);
  EXPECT_EQ(load_all().features, (std::vector<Scalar>{5, 6, 7}));
  EXPECT_EQ(load_all().targets, (std::vector<Scalar>{1, 2, 3}));
  write_file_atomically(directory_ / "part-3.bin", std::string("\x0b\x07\x00", 3));
  expect_parts(error(), {directory_ / "part-3.bin", "record 0", "found label 11"});
  // A file that starts as gzip files do is what the layout says all the same.
  write_file_atomically(directory_ / "part-3.bin", std::string("\x01\x1f\x8b", 3));
  write_file_atomically(directory_ / "part-4.bin", std::string("\x08\x1f\x8b", 3));
  EXPECT_EQ(load_all().features[3], -29921);
}

TEST_F(BinaryFormats, ARecordIsInTheFileOfItsFeatures) {
  std::vector<std::string> paths;
  for (const std::string name : {"a", "b", "c"}) {
    write_pair(features_, labels_);
    paths.push_back(directory_ / (name + ".x.npy"));
    std::filesystem::rename(options_.train, paths.back());
    std::filesystem::rename(options_.train_labels, directory_ / (name + ".y.npy"));
  }
  options_.train = directory_ / "*.x.npy";
  options_.train_labels = directory_ / "*.y.npy";
  std::unique_ptr<RecordSource> source = open();
  const DataSets parts = split_validation(open(), {.share = 0.5, .key = 1});
  for (const RecordSource* each : {source.get(), parts.train.get(), parts.validation.get()})
    for (const Chunk& chunk : each->chunks())
      EXPECT_EQ(each->file_of(chunk), at(paths, each->position(chunk.records.begin) / 3));
  options_.train = paths[1];
  options_.train_labels = directory_ / "b.y.npy";
  source = open();
  EXPECT_EQ(source->file_of(source->chunks().front()), paths[1]);
}

TEST_F(BinaryFormats, AFileThatChangesAfterItWasOpenedIsFound) {
  options_.format = "raw";
  options_.raw_layout = "label:u8 features:u8[2]";
  options_.train = directory_ / "records.bin";
  write_file_atomically(options_.train, std::string(30, '\1'));
  const auto source = open();
  const auto load_all = [&] { load(*source, everything(*source), {.classes = 10}); };
  write_file_atomically(options_.train, std::string(20, '\1'));
  expect_parts(error_text<DataError>(load_all), {options_.train, "truncated", "record 6 of 10", "found 2"});
  write_file_atomically(options_.train, std::string(31, '\1'));
  expect_parts(error_text<DataError>(load_all), {options_.train, "found more bytes"});
  std::filesystem::remove(options_.train);
  expect_parts(error_text<DataError>(load_all), {options_.train, "No such file"});
}

// Rows that are read from the middle on: records are numbered from the start of the file.
TEST_F(BinaryFormats, ATruncatedFileNamesItsIncompleteRecordWhereverReadingBegan) {
  const std::string content = "header" + std::string(4 * 9 + 3, '\1');
  for (const std::string name : {"records.bin", "records.gz"}) {
    const RecordFile file{.path = directory_ / name,
                          .offset = 6,
                          .records = 10,
                          .record_bytes = 4,
                          .compressed = name.ends_with(".gz")};
    write_idx(file.path, content);
    RecordFileReader reader(file);
    EXPECT_EQ(reader.read({2, 5}).size(), 12U);
    for (const Index begin : {9, 7, 5, 0}) {
      expect_parts(error_text<DataError>([&] {
                     reader.read({begin, 10});
                   }),
                   {file.path, "truncated: record 9 of 10 is incomplete: expected 4 bytes, found 3"});
    }
  }
}

TEST_F(BinaryFormats, FilesOfOneSetMustBeAlike) {
  write_pair(features_, labels_);
  write_file_atomically(directory_ / "x2.npy", npy_content("<f4", {3, 3}, std::string(36, '\0')));
  write_file_atomically(directory_ / "y2.npy", labels_);
  options_.train = directory_ / "x*.npy";
  expect_parts(error(), {"data.train names 2 files", "data.train_labels names 1"});
  options_.train_labels = directory_ / "y*.npy";
  expect_parts(error(), {"x2.npy", "must have the same"});
}

TEST_F(BinaryFormats, RawLayoutsSayWhatIsWrongWithThem) {
  options_.format = "raw";
  options_.train = directory_ / "records.bin";
  write_file_atomically(options_.train, std::string(60, '\1'));
  for (const auto& [layout, part] :
       std::vector<std::pair<std::string, std::string>>{{"", "is not set"},
                                                        {"label:u8", "a field 'features'"},
                                                        {"features", "a colon"},
                                                        {"features:u7", "a type of u8"},
                                                        {"features:u8[2", "sizes in brackets"},
                                                        {"features:u8[2,]", "sizes above 0"},
                                                        {"features:u8[0]", "sizes above 0"},
                                                        {"features:u8[99999999,99999999]", "2 GiB"},
                                                        {"features:u8 features:u8", "only once"},
                                                        {"label:u8 label:u8 features:u8", "only once"},
                                                        {"pixels:u8", "one of the names"}}) {
    options_.raw_layout = layout;
    expect_parts(error<ConfigError>(), {"data.raw_layout", part});
  }
  options_.raw_layout = "features:f32[2,2] label:u8[3] skip:u8";
  EXPECT_EQ(open()->info().features, (Shape{{2, 2}}));
  EXPECT_EQ(open()->info().target_columns, 3);
  EXPECT_EQ(open()->info().rows, 3);
}

}  // namespace lockstep::binary_formats_test
