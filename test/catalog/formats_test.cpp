// What every data format must keep, whatever it reads.
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/data/formats/format.h"
#include "support/error_text.h"
#include "support/hdf5_files.h"
#include "support/idx_files.h"
#include "support/loaded.h"
#include "support/numpy_files.h"
#include "support/temporary_directory.h"

namespace lockstep::formats_test {
namespace {

using namespace test;

constexpr Index kRows = 40;
constexpr Index kClasses = 5;

// Bytes that differ from record to record, and labels that go round the classes.
std::string record(Index id, Index bytes) {
  std::string record;
  for (Index i = 0; i < bytes; ++i) record += static_cast<char>(id * 31 + i * i % 251);
  return record;
}
char label(Index id) {
  return static_cast<char>(id % kClasses);
}

// `start` gives what comes before the features of a record.
template <class Start>
void write_records(const std::string& path, Index bytes, const Start& start) {
  std::string content;
  for (Index id = 0; id < kRows; ++id) {
    content += start(id);
    content += record(id, bytes);
  }
  write_file_atomically(path, content);
}

// A small training set of kRows records with labels below kClasses, in each format. A new format adds its
// own.
DataOptions make_sample(const std::string& format, const TemporaryDirectory& directory) {
  DataOptions options;
  options.format = format;
  if (format == "idx") {
    const IdxPair files = write_idx_pair(directory / "sample", {.rows = kRows, .classes = kClasses});
    options.train = files.images;
    options.train_labels = files.labels;
  } else if (format == "numpy") {
    options.train = directory / "features.npy";
    options.train_labels = directory / "labels.npy";
    std::string features;
    std::vector<std::int64_t> labels;
    for (Index id = 0; id < kRows; ++id) {
      features += record(id, 12);
      labels.push_back(label(id));
    }
    write_file_atomically(options.train, npy_content("|u1", {kRows, 4, 3}, features));
    write_file_atomically(options.train_labels, npy_content("<i8", {kRows}, bytes_of(labels)));
  } else if (format == "hdf5") {
#if LOCKSTEP_HAS_HDF5
    options.train = (directory / "sample.h5") + ":x";
    options.train_labels = (directory / "sample.h5") + ":group/y";
    std::vector<unsigned char> features;
    std::vector<std::int64_t> labels;
    for (Index id = 0; id < kRows; ++id) {
      for (const char byte : record(id, 12)) features.push_back(static_cast<unsigned char>(byte));
      labels.push_back(label(id));
    }
    Hdf5File file(directory / "sample.h5");
    file.add("x", H5T_STD_U8LE, H5T_NATIVE_UCHAR, {kRows, 4, 3}, features.data(),
             {.rows = 7, .deflate = true});
    file.add("group/y", H5T_STD_I64BE, H5T_NATIVE_INT64, {kRows}, labels.data());
#endif
  } else if (format == "cifar10") {
    options.train = directory / "data_batch_1.bin";
    write_records(options.train, 3072, [](Index id) { return std::string{label(id)}; });
  } else if (format == "cifar100") {
    options.train = directory / "train.bin";
    write_records(options.train, 3072, [](Index id) { return std::string{'\x63', label(id)}; });
  } else if (format == "raw") {
    options.train = directory / "records.bin";
    options.raw_layout = "skip:i32 label:u8 features:u8[5,2]";
    write_records(options.train, 10, [](Index id) { return std::string{'a', 'b', 'c', 'd', label(id)}; });
  } else if (format == "synthetic") {
    options.synthetic = {.rows = kRows, .features = 6, .classes = kClasses};
  } else if (format == "csv") {
    std::string text = "size,colour,kind\n";
    for (Index row = 0; row < kRows; ++row) {
      text += fmt::format("{},{},{}\n", 0.5 * static_cast<double>(row),
                          row % 3 == 0 ? "red" : "\"blue, dark\"", row % kClasses);
    }
    options.train = directory / "sample.csv";
    options.table.label = {"kind"};
    write_file_atomically(options.train, text);
  } else if (format == "libsvm") {
    std::string text;
    for (Index row = 0; row < kRows; ++row)
      text += fmt::format("{} 1:{} {}:2.5\n", row % kClasses, row, 3 + row % 90);
    options.train = directory / "sample.libsvm";
    write_file_atomically(options.train, text);
  } else {
    ADD_FAILURE() << "formats_test has no sample of the format " << format;
  }
  return options;
}

class Format : public testing::TestWithParam<std::string> {
 protected:
  const FormatEntry& entry() const { return choose_format(options_); }
  std::unique_ptr<RecordSource> open(Split split = Split::kTrain) const {
    return entry().open({options_, split, 1, alone()});
  }
  std::vector<std::string> files() const {
    std::vector<std::string> paths;
    for (const auto& file : std::filesystem::directory_iterator(directory_.path()))
      paths.push_back(file.path());
    return paths;
  }

  bool is_text_format() const { return GetParam() == "csv" || GetParam() == "libsvm"; }

  TemporaryDirectory directory_;
  DataOptions options_ = make_sample(GetParam(), directory_);
};

std::vector<std::string> all_formats() {
  std::vector<std::string> names;
  for (const FormatEntry& entry : format_catalog()) {
    if (entry.name == "text") continue;  // its targets are its features, too: see texts_test
    if (LOCKSTEP_HAS_HDF5 == 1 || entry.name != "hdf5") names.push_back(entry.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Catalog, Format, testing::ValuesIn(all_formats()),
                         [](const auto& test) { return test.param; });

TEST_P(Format, SaysWhatItIs) {
  EXPECT_EQ(entry().name, GetParam());
  EXPECT_FALSE(entry().help.empty());
  EXPECT_FALSE(entry().options.empty());
  for (const std::string& key : entry().options) EXPECT_TRUE(key.starts_with("data.")) << key;
  for (const std::string& extension : entry().extensions) {
    DataOptions by_extension;
    by_extension.train = "some/file" + extension;
    EXPECT_EQ(choose_format(by_extension).name, GetParam()) << extension;
  }
}

TEST_P(Format, StatesItsSizeAndSplits) {
  const auto source = open();
  EXPECT_EQ(source->info().rows, kRows);
  EXPECT_GT(source->info().features.size(), 0);
  EXPECT_EQ(source->info().target_columns, 1);
  EXPECT_FALSE(source->info().name.empty());
  Index bytes = 0;
  for (const std::string& path : files()) bytes += file_bytes(path);
  EXPECT_EQ(source->info().source_bytes, bytes);
  EXPECT_EQ(open(Split::kValidation), nullptr);
  EXPECT_EQ(open(Split::kTest), nullptr);
}

TEST_P(Format, APartHasTheSameRecordsAsTheWhole) {
  const auto source = open();
  const auto whole = load(*source, everything(*source), {.classes = kClasses});
  EXPECT_EQ(whole->rows(), kRows);
  for (const Index parts : {Index{1}, Index{3}, kRows}) {
    for (Index part = 0; part < parts; ++part) {
      const RecordFilter filter = every_nth(*source, parts, part);
      const auto some = load(*source, filter, {.classes = kClasses});
      std::vector<Index> ids = wanted_ids(kRows, filter);
      std::ranges::reverse(ids);
      EXPECT_EQ(some->rows(), filter.count);
      EXPECT_LE(some->bytes(), whole->bytes());
      EXPECT_EQ(gather(*some, source->info(), ids), gather(*whole, source->info(), ids));
    }
  }
  const auto none = load(*source, {.wants = [](Index) { return false; }, .count = 0}, {.classes = kClasses});
  EXPECT_EQ(none->rows(), 0);
}

TEST_P(Format, AnInputIsTheRecordsWithoutTheirLabels) {
  if (!entry().has_files) return;
  EXPECT_EQ(&format_of_input(options_.train, options_), &entry());
  const auto labelled = open();
  const auto input = entry().open(
      {.options = options_, .peers = alone(), .schema = labelled->schema(), .input = options_.train});
  EXPECT_EQ(input->info().rows, kRows);
  EXPECT_EQ(input->info().features, labelled->info().features);
  EXPECT_EQ(input->info().target_columns, 0);
  const auto records = load(*input, every_nth(*input, 3, 1), {});
  const std::vector<Index> ids = wanted_ids(kRows, every_nth(*input, 3, 1));
  const auto whole = load(*labelled, everything(*labelled), {.classes = kClasses});
  EXPECT_EQ(gather(*records, input->info(), ids).features, gather(*whole, labelled->info(), ids).features);
  expect_parts(error_text<DataError>([&] {
                 entry().open({.options = options_, .peers = alone(), .input = directory_ / "none"});
               }),
               {directory_ / "none", "--input"});
}

TEST_P(Format, APackedRecordEndsWithItsLabelsAndItsFilesAreListed) {
  const auto source = open();
  std::vector<std::string> listed = source->files();
  std::vector<std::string> there = files();
  std::ranges::sort(listed);
  std::ranges::sort(there);
  EXPECT_EQ(listed, there);
  const auto bytes = static_cast<std::size_t>(source->info().record_bytes);
  if (bytes == 0) return;
  std::vector<std::byte> packed(static_cast<std::size_t>(kRows) * bytes);
  source->reader({.classes = kClasses})->read(0, packed);
  const auto whole = load(*source, everything(*source), {.classes = kClasses});
  for (Index id = 0; id < kRows; ++id) {
    Scalar last = -1;
    std::memcpy(&last, packed.data() + static_cast<std::size_t>(id + 1) * bytes - sizeof last, sizeof last);
    EXPECT_EQ(last, gather(*whole, source->info(), {id}).targets.front());
  }
}

TEST_P(Format, RecordsDiffer) {
  const auto source = open();
  const auto whole = load(*source, everything(*source), {.classes = kClasses});
  std::set<std::vector<Scalar>> different;
  for (Index id = 0; id < kRows; ++id) different.insert(gather(*whole, source->info(), {id}).features);
  EXPECT_EQ(std::ssize(different), kRows);
}

TEST_P(Format, LabelsAreClassesOfTheModel) {
  const auto source = open();
  const auto whole = load(*source, everything(*source), {.classes = kClasses});
  std::set<Scalar> labels;
  for (const Scalar label : gather(*whole, source->info(), wanted_ids(kRows, everything(*source))).targets)
    labels.insert(label);
  EXPECT_EQ(labels, (std::set<Scalar>{0, 1, 2, 3, 4}));
  expect_parts(
      error_text<DataError>([&] { load(*source, everything(*source), {.classes = kClasses - 1}); }),
      {source->info().name == "synthetic" ? "synthetic" : directory_.path().string(), "a class below 4"});
}

TEST_P(Format, DamagedFilesAreErrorsThatNameThem) {
  const auto load_all = [&] {
    const auto source = open();
    load(*source, everything(*source), {.classes = kClasses});
  };
  for (const std::string& path : files()) {
    const std::string good = read_file(path);
    std::vector<std::string> damaged{"", "garbage", good.substr(0, good.size() / 2 + 1),
                                     good.substr(0, good.size() - 1)};
    // Text says of no line that it is the last.
    if (is_text_format()) damaged = {"", good + "\"", good + "x\n", good + "1,2,3,4\n"};
    for (const std::string& bad : damaged) {
      write_file_atomically(path, bad);
      expect_parts(error_text<DataError>(load_all), {path});
    }
    write_file_atomically(path, "garbage");
    expect_parts(error_text<Error>(load_all), {is_text_format() ? "garbage" : path});
    std::filesystem::remove(path);
    expect_parts(error_text<DataError>(load_all), {path, "does not exist"});
    write_file_atomically(path, good);
  }
  EXPECT_NO_THROW(load_all());
}

TEST(ChooseFormat, NamesWhatItKnows) {
  const auto error = [](const DataOptions& options) {
    return error_text<ConfigError>([&] { choose_format(options); });
  };
  DataOptions options;
  expect_parts(error(options), {"neither data.train nor data.format", "idx", "synthetic"});
  options.train = "data/train.words";
  expect_parts(error(options), {"data/train.words", "data.format", "-ubyte.gz (idx)"});
  options.format = "indx";
  expect_parts(error(options), {"unknown data format 'indx'", "did you mean 'idx'", "synthetic"});
  options.format = "idx";
  EXPECT_EQ(choose_format(options).name, "idx");
}

TEST(ChooseFormat, KnowsWhatNoFormatReads) {
  const TemporaryDirectory empty;
  DataOptions options;
  options.train = empty.path().string();
  expect_parts(error_text<DataError>([&] { choose_format(options); }),
               {"data.train", options.train, "a directory without files"});
  options.train = "data.pt";
  expect_parts(error_text<ConfigError>([&] { choose_format(options); }),
               {"data.train names 'data.pt', a pickle", "numpy.save"});
  options.format = "npy";
  expect_parts(error_text<ConfigError>([&] { choose_format(options); }),
               {"unknown data format 'npy'", "Lockstep calls it 'numpy'"});
  expect_parts(error_text<ConfigError>([] { format_of_input("data.pkl", {}); }), {"--input", "a pickle"});
}

TEST(FormatOfInput, NamesTheKnownEnds) {
  expect_parts(error_text<ConfigError>([] { format_of_input("new.words", {}); }),
               {"--input 'new.words'", "-ubyte.gz (idx)"});
}

TEST(FormatCatalog, NamesAndExtensionsAreUnique) {
  std::set<std::string> seen;
  for (const FormatEntry& entry : format_catalog()) {
    EXPECT_TRUE(seen.insert(entry.name).second) << entry.name;
    for (const std::string& extension : entry.extensions)
      EXPECT_TRUE(seen.insert(extension).second) << entry.name << ": " << extension;
  }
}

}  // namespace
}  // namespace lockstep::formats_test
