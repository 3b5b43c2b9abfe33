// The content of data sets, told apart.
#include "lockstep/data/loading/fingerprint.h"

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "support/error_text.h"
#include "support/numbered_source.h"
#include "support/temporary_directory.h"

namespace lockstep::fingerprint_test {

using namespace test;

// Two features, a label and a weight, as bytes.
constexpr std::size_t kRecordBytes = 16;
constexpr Index kRows = 50;
const DatasetInfo kInfo{.rows = kRows,
                        .features = {{2}},
                        .target_columns = 1,
                        .weighted = true,
                        .name = "x.csv",
                        .record_bytes = 16};

std::vector<std::byte> some_records() {
  std::vector<std::byte> bytes(kRows * kRecordBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i % 251);
  return bytes;
}

std::span<std::byte> record(std::vector<std::byte>& records, Index id) {
  return std::span(records).subspan(static_cast<std::size_t>(id) * kRecordBytes, kRecordBytes);
}

Fingerprint fingerprint_of(std::vector<std::byte> records, bool backwards = false) {
  RecordHashes hashes(kInfo);
  for (Index i = 0; i < kRows; ++i) {
    const Index id = backwards ? kRows - 1 - i : i;
    hashes.add(id, record(records, id));
  }
  return hashes.sum(alone());
}

// Which of features, labels and weights differ.
std::vector<bool> differences(const Fingerprint& a, const Fingerprint& b) {
  std::vector<bool> differ;
  for (std::size_t i = 0; i < a.parts.size(); ++i) differ.push_back(a.parts[i] != b.parts[i]);
  return differ;
}

TEST(Fingerprint, DependsOnNoOrderOfReading) {
  EXPECT_EQ(fingerprint_of(some_records()), fingerprint_of(some_records(), true));
  EXPECT_EQ(fingerprint_of(some_records()).kind, Fingerprint::kRecords);
}

TEST(Fingerprint, EveryBitCountsInItsPart) {
  const Fingerprint before = fingerprint_of(some_records());
  for (const Index id : {Index{0}, Index{17}, kRows - 1})
    for (std::size_t byte = 0; byte < kRecordBytes; ++byte)
      for (int bit = 0; bit < 8; ++bit) {
        std::vector<std::byte> records = some_records();
        record(records, id)[byte] ^= std::byte{1} << bit;
        EXPECT_EQ(differences(before, fingerprint_of(records)),
                  (std::vector<bool>{byte < 8, byte >= 8 && byte < 12, byte >= 12}));
      }
}

TEST(Fingerprint, ExchangedRecordsAndLabelsAreNoticed) {
  const Fingerprint before = fingerprint_of(some_records());
  std::vector<std::byte> records = some_records();
  std::ranges::swap_ranges(record(records, 3), record(records, 4));
  EXPECT_EQ(differences(before, fingerprint_of(records)), (std::vector<bool>{true, true, true}));
  records = some_records();
  std::ranges::swap_ranges(record(records, 3).subspan(8, 4), record(records, 40).subspan(8, 4));
  EXPECT_EQ(differences(before, fingerprint_of(records)), (std::vector<bool>{false, true, false}));
}

// A data set of which only the files matter.
class FileSource final : public RecordSource {
 public:
  explicit FileSource(std::vector<std::string> files) : files_(std::move(files)), plain_(chunks_of(1, 1)) {}
  const DatasetInfo& info() const override { return plain_.info(); }
  std::span<const Chunk> chunks() const override { return plain_.chunks(); }
  std::unique_ptr<ChunkReader> reader(const TargetRule& rule) const override { return plain_.reader(rule); }
  void unpack(std::span<const Index>, std::span<const std::byte* const>, Matrix&, Matrix&) const override {}
  std::vector<std::string> files() const override { return files_; }

 private:
  std::vector<std::string> files_;
  NumberedSource plain_;
};

std::string some_text(std::size_t bytes, std::size_t step) {
  std::string text(bytes, 'x');
  for (std::size_t i = 0; i < bytes; i += step) text[i] = static_cast<char>(i % 127);
  return text;
}

TEST(Fingerprint, SampledFilesAreKnownWhereverTheyLie) {
  const TemporaryDirectory directory;
  const std::string large = some_text(20'000'000, 999);
  write_file_atomically(directory / "large", large);
  write_file_atomically(directory / "moved", large);
  write_file_atomically(directory / "small", some_text(10, 1));
  const auto sample = [&](const std::string& a, const std::string& b) {
    return sample_files(FileSource({directory / a, directory / b}), alone());
  };
  const Fingerprint before = sample("large", "small");
  EXPECT_EQ(before.parts.size(), 2U);
  EXPECT_EQ(sample("moved", "small"), before);
  // The first bytes, the last, a run as long as a hole between two blocks; and any of a small file.
  for (const auto& [begin, length] :
       {std::pair{0, 1}, std::pair{19'999'999, 1}, std::pair{3'000'000, 700'000}}) {
    std::string changed = large;
    for (int i = 0; i < length; ++i) at(changed, begin + i) ^= 1;
    write_file_atomically(directory / "moved", changed);
    EXPECT_EQ(differences(before, sample("moved", "small")), (std::vector<bool>{true, false})) << begin;
  }
  for (std::size_t byte = 0; byte < 10; ++byte) {
    std::string changed = some_text(10, 1);
    changed[byte] ^= 1;
    write_file_atomically(directory / "moved", changed);
    EXPECT_EQ(differences(before, sample("large", "moved")), (std::vector<bool>{false, true})) << byte;
  }
  EXPECT_EQ(sample_files(FileSource({}), alone()), Fingerprint{});
  expect_parts(error_text<DataError>([&] { sample("none", "small"); }), {directory / "none"});
}

// Each byte counts, in whichever file, and however many ranks read them.
TEST(Fingerprint, WholeFilesAreKnownByAllTheirBytes) {
  const TemporaryDirectory directory;
  const std::string large = some_text(9'000'001, 999);
  write_file_atomically(directory / "large", large);
  write_file_atomically(directory / "small", some_text(10, 1));
  const std::vector<std::string> files{directory / "large", directory / "small"};
  const std::string before = hash_files(files, true, alone());
  EXPECT_TRUE(before.starts_with("all bytes ")) << before;
  EXPECT_TRUE(hash_files(files, false, alone()).starts_with("blocks of files "));
  EXPECT_NE(hash_files({files[1], files[0]}, true, alone()), before);
  for (const std::size_t byte : {0U, 65'535U, 65'536U, 4'444'444U, 8'999'999U, 9'000'000U}) {
    std::string changed = large;
    changed[byte] ^= 1;
    write_file_atomically(directory / "large", changed);
    EXPECT_NE(hash_files(files, true, alone()), before) << byte;
  }
  write_file_atomically(directory / "large", large + "x");
  EXPECT_NE(hash_files(files, true, alone()), before);
  write_file_atomically(directory / "large", large);
  EXPECT_EQ(hash_files(files, true, alone()), before);
}

// So many files that not all are opened.
TEST(Fingerprint, ManyFilesAreSampledByTheirFirstAndLast) {
  const TemporaryDirectory directory;
  std::vector<std::string> files(1000, directory / "inner");
  files.front() = directory / "first";
  files.back() = directory / "last";
  for (const char* name : {"first", "inner", "last"}) write_file_atomically(directory / name, name);
  const Fingerprint before = sample_files(FileSource(files), alone());
  EXPECT_EQ(before.parts.size(), 64U);
  write_file_atomically(directory / "last", "LAST");
  const std::vector<bool> differ = differences(before, sample_files(FileSource(files), alone()));
  EXPECT_EQ(std::ranges::count(differ, true), 1);
  EXPECT_TRUE(differ.back());
}

TEST(Fingerprint, ChangesAreNamed) {
  const NumberedSource source(chunks_of(3, 1));
  const Fingerprint before{.kind = Fingerprint::kRecords, .parts = {1, 2, 3}};
  EXPECT_TRUE(describe_changes(before, before, source).empty());
  const std::vector<std::string> changes =
      describe_changes(before, {.kind = Fingerprint::kRecords, .parts = {1, 255, 4}}, source);
  EXPECT_EQ(changes,
            (std::vector<std::string>{"the labels of 'numbered' are not those of the run (fingerprint "
                                      "00000000000000ff, was 0000000000000002)",
                                      "the weights of 'numbered' are not those of the run (fingerprint "
                                      "0000000000000004, was 0000000000000003)"}));
  const Fingerprint with_lengths{.kind = Fingerprint::kRecords, .parts = {1, 2, 3, 4}};
  EXPECT_EQ(describe_changes(with_lengths, before, source),
            std::vector<std::string>{"'numbered' has no lengths, unlike that of the run"});
  Fingerprint others = with_lengths;
  others.parts[3] = 5;
  EXPECT_TRUE(describe_changes(with_lengths, others, source).at(0).starts_with("the lengths of 'numbered'"));
  const Fingerprint sampled{.kind = Fingerprint::kFileBlocks, .parts = {1}};
  EXPECT_EQ(
      describe_changes({.kind = Fingerprint::kFileBlocks, .parts = {2}}, sampled, FileSource({"a.bin"})),
      std::vector<std::string>{"the content of 'a.bin' is not that of the run (fingerprint "
                               "0000000000000001, was 0000000000000002)"});
  EXPECT_EQ(
      describe_changes({.kind = Fingerprint::kFileBlocks, .parts = {2, 3}}, sampled, FileSource({"a.bin"}))
          .size(),
      1U);
  // What is not known, or known in another way, is no change.
  EXPECT_TRUE(describe_changes({}, before, source).empty());
  EXPECT_TRUE(describe_changes(before, {}, source).empty());
  EXPECT_TRUE(describe_changes(before, sampled, source).empty());
}

}  // namespace lockstep::fingerprint_test
