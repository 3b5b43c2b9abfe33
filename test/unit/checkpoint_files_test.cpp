// What a checkpoint's files may hold: nothing is believed, and nothing outside is touched.
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/train/storage/checkpoint.h"
#include "support/error_text.h"
#include "support/seed.h"
#include "support/special_files.h"
#include "support/temporary_directory.h"

namespace lockstep::checkpoint_files_test {

// "" if all is well.
std::string problem_of(const std::function<void()>& action) {
  return test::error_or<Error>("", action);
}

SavedPart part_of(const std::string& array, Index size, Range range, std::span<float> memory) {
  return {.array = array, .size = size, .range = range, .memory = as_buffer(memory), .written = {}};
}

// A checkpoint of one array of ten numbers, in two blocks.
class CheckpointFiles : public testing::Test {
 protected:
  CheckpointFiles() {
    std::vector<float> numbers(10);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i) + 0.5F;
    const std::string bytes(reinterpret_cast<const char*>(numbers.data()), 40);
    write_file_atomically(path() / "state-00000.bin", bytes.substr(16));
    write_file_atomically(path() / "state-00001.bin", bytes.substr(0, 16));
    manifest_.header = {.progress = {.steps = 5, .samples = 640, .epochs = 0.25},
                        .metrics_bytes = 7,
                        .seconds = 1.5,
                        .ranks = 2,
                        .strategy = "zero1",
                        .algorithm = "ring",
                        .data = "3 rows",
                        .fingerprint = {.kind = Fingerprint::kRecords, .parts = {1, ~std::uint64_t{0}}},
                        .versions = {{"MPI", "4.1"}},
                        .incomplete_files = {"log.txt"}};
    for (const char* name : {"state-00000.bin", "state-00001.bin"})
      manifest_.parts.files[name] = describe_file(path() / name);
    manifest_.parts.arrays["optimizer.0"] = {.type = DataType::kFloat,
                                             .size = 10,
                                             .blocks = {{.range = {0, 4}, .file = "state-00001.bin"},
                                                        {.range = {4, 10}, .file = "state-00000.bin"}}};
    write_file_atomically(path() / kManifestName, to_json(manifest_));
  }
  const std::filesystem::path& path() const { return directory_.path(); }
  // What is wrong with a manifest that says this, with a right checksum.
  std::string problem(const std::function<void(CheckpointManifest&)>& change) const {
    CheckpointManifest changed = manifest_;
    change(changed);
    return problem_of([&] { parse_manifest(to_json(changed), "manifest.json"); });
  }
  test::TemporaryDirectory directory_;
  CheckpointManifest manifest_;
};

TEST_F(CheckpointFiles, AManifestIsReadAsItWasWritten) {
  const CheckpointManifest read = parse_manifest(to_json(manifest_), "manifest.json");
  EXPECT_EQ(to_json(read), to_json(manifest_));
  EXPECT_EQ(read.header.progress.samples, 640);
  EXPECT_EQ(read.header.incomplete_files, std::vector<std::string>{"log.txt"});
  EXPECT_EQ(read.parts.files, manifest_.parts.files);
  EXPECT_EQ(read.header.fingerprint, manifest_.header.fingerprint);
}

TEST_F(CheckpointFiles, AFingerprintOfWhichNothingIsKnownIsLeftOut) {
  manifest_.header.fingerprint = {};
  const std::string text = to_json(manifest_);
  EXPECT_EQ(text.find("fingerprint"), std::string::npos) << text;
  EXPECT_EQ(parse_manifest(text, "manifest.json").header.fingerprint, Fingerprint{});
}

TEST_F(CheckpointFiles, APartIsFilledFromAnyBlocks) {
  const CheckpointReader reader(path());
  reader.verify(1, 0);
  std::vector<float> some(5);
  SavedPart part = part_of("optimizer.0", 10, {2, 7}, some);
  reader.fill({part});
  EXPECT_EQ(some, (std::vector<float>{2.5, 3.5, 4.5, 5.5, 6.5}));
  part.array = "optimizer.1";
  EXPECT_NE(problem_of([&] { reader.fill({part}); }).find("no array"), std::string::npos);
  part.optional = true;
  EXPECT_EQ(reader.fill({part}), std::vector<std::string>{"optimizer.1"});
  part = part_of("optimizer.0", 11, {2, 7}, some);
  EXPECT_NE(problem_of([&] { reader.fill({part}); }).find("expected 11"), std::string::npos);
}

// A manifest that seals itself may still lack a block, for which no start values are taken.
TEST_F(CheckpointFiles, AnArrayWithAGapFillsNoPartBeyondIt) {
  const auto fill = [this](Range range) {
    std::vector<float> numbers(static_cast<std::size_t>(range.size()), -1.0F);
    CheckpointReader(path()).fill({part_of("optimizer.0", 10, range, numbers)});
    return numbers;
  };
  const CheckpointArray whole = manifest_.parts.arrays["optimizer.0"];
  for (const std::size_t lost : {0, 1}) {
    CheckpointArray& array = manifest_.parts.arrays["optimizer.0"];
    array = whole;
    array.blocks.erase(array.blocks.begin() + static_cast<std::ptrdiff_t>(lost));
    write_file_atomically(path() / kManifestName, to_json(manifest_));
    const Range kept = whole.blocks[1 - lost].range;
    EXPECT_EQ(fill(kept).front(), static_cast<float>(kept.begin) + 0.5F);
    EXPECT_EQ(fill(kept).back(), static_cast<float>(kept.end) - 0.5F);
    EXPECT_EQ(problem_of([&] {
                fill({2, 7});
              }),
              fmt::format("'{}': array 'optimizer.0' has {} of the elements 2 to 7", path().string(),
                          lost == 0 ? 3 : 2));
    EXPECT_NE(problem_of([&] { fill({0, 10}); }), "");
    EXPECT_NE(problem_of([&] { fill(lost == 0 ? Range{3, 10} : Range{0, 5}); }), "") << "by one element";
    EXPECT_NE(problem_of([&] { fill(whole.blocks[lost].range); }), "");
  }
}

// Also in parts of several writers.
TEST_F(CheckpointFiles, AFileIsDescribedBeforeItIsWrittenAsItIsAfterwards) {
  std::string bytes(static_cast<std::size_t>(2 * kCheckedBytes + 5), 'a');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i >> 7);
  write_file_atomically(path() / "large", bytes);
  const CheckpointFile whole = describe_file(path() / "large");
  const std::span<const std::byte> all = std::as_bytes(std::span(bytes));
  EXPECT_EQ(describe_bytes(all), whole);
  for (const Index cut : {Index{0}, kCheckedBytes, 2 * kCheckedBytes, std::ssize(all)}) {
    CheckpointParts parts;
    for (const auto& piece :
         {all.first(static_cast<std::size_t>(cut)), all.subspan(static_cast<std::size_t>(cut))})
      parts.add({.files = {{"large", describe_bytes(piece)}}, .arrays = {}});
    EXPECT_EQ(parts.files.at("large"), whole) << cut;
  }
}

TEST_F(CheckpointFiles, TheListOfARankIsReadAsItWasWrittenOrNotAtAll) {
  const std::string text = to_json(manifest_.parts);
  EXPECT_EQ(to_json(parse_parts(text, "state-00000.json")), text);
  std::string changed = text;
  const std::size_t offset = changed.find("\"offset\": 0");
  ASSERT_NE(offset, std::string::npos) << text;
  changed.replace(offset, 11, "\"offset\": 4");  // as good as the right one, as far as one can see
  test::expect_parts(problem_of([&] { parse_parts(changed, "state-00000.json"); }),
                     {"does not have the checksum"});
}

TEST_F(CheckpointFiles, AllRanksTogetherVerifyAllFiles) {
  std::ofstream(path() / "state-00001.bin", std::ios::binary | std::ios::in | std::ios::out).put('x');
  const CheckpointReader reader(path());
  int found = 0;
  for (Index rank = 0; rank < 3; ++rank) {
    const std::string text = problem_of([&] { reader.verify(3, rank); });
    if (text.empty()) continue;
    ++found;
    test::expect_parts(text, {"state-00001.bin", "between byte 0 and 16"});
  }
  EXPECT_EQ(found, 1);
}

TEST_F(CheckpointFiles, ATruncatedOrMissingFileIsFound) {
  std::filesystem::resize_file(path() / "state-00000.bin", 23);
  EXPECT_NE(problem_of([&] { CheckpointReader(path()).verify(1, 0); }).find("23 bytes"), std::string::npos);
  std::filesystem::remove(path() / "state-00000.bin");
  EXPECT_NE(problem_of([&] { CheckpointReader(path()).verify(1, 0); }), "");
  std::filesystem::remove(path() / kManifestName);
  EXPECT_NE(problem_of([&] { CheckpointReader reader(path()); }), "");
}

// Whatever bit is flipped, whatever part is missing.
TEST_F(CheckpointFiles, ADamagedManifestIsNeverTakenForWhole) {
  const std::string whole = to_json(manifest_);
  std::mt19937_64 random(test::seed());
  for (int trial = 0; trial < 2000; ++trial) {
    std::string damaged = whole;
    if (trial % 2 == 0) {
      damaged.resize(random() % (whole.size() - 2));
    } else {
      damaged[random() % whole.size()] ^= static_cast<char>(1 << (random() % 7));
    }
    try {
      // Space between words may become other space.
      EXPECT_EQ(to_json(parse_manifest(damaged, "manifest.json")), whole) << damaged;
    } catch (const DataError&) {
    }
  }
}

// Even with the right checksum.
TEST_F(CheckpointFiles, ClaimsBeyondTheFilesAreRefused) {
  constexpr Index kHuge = Index{1} << 62;
  const auto array = [](CheckpointManifest& m) -> CheckpointArray& { return m.parts.arrays["optimizer.0"]; };
  EXPECT_EQ(problem([](CheckpointManifest&) {}), "");
  EXPECT_NE(problem([&](CheckpointManifest& m) { array(m).blocks[1].range.end = 11; }), "");
  EXPECT_NE(problem([&](CheckpointManifest& m) { array(m).blocks[1].offset = 4; }), "");
  EXPECT_NE(problem([&](CheckpointManifest& m) { array(m).blocks[1].offset = kHuge; }), "");
  EXPECT_NE(problem([&](CheckpointManifest& m) { array(m).blocks[1].offset = -8; }), "");
  EXPECT_NE(problem([&](CheckpointManifest& m) { array(m).blocks[0].range.end = 5; }), "");
  EXPECT_NE(problem([&](CheckpointManifest& m) { array(m).size = array(m).blocks[1].range.end = kHuge; }),
            "");
  EXPECT_NE(problem([&](CheckpointManifest& m) { array(m).blocks[0].file = "/etc/passwd"; }), "");
  EXPECT_NE(problem([&](CheckpointManifest& m) { m.parts.files["state-00000.bin"].bytes = kHuge; }), "");
  EXPECT_NE(problem([&](CheckpointManifest& m) { m.parts.files["state-00000.bin"].bytes = -1; }), "");
  for (const std::string name : {"../state.bin", "/etc/passwd", "a/b", "..", ".hidden", ""})
    EXPECT_NE(problem([&](CheckpointManifest& m) { m.parts.files[name] = {}; }), "") << name;
  EXPECT_NE(problem([](CheckpointManifest& m) { m.header.progress.steps = -1; }), "");
}

TEST_F(CheckpointFiles, ADirectoryListsWhatIsFinished) {
  const CheckpointDirectory checkpoints(path() / "checkpoints");
  EXPECT_TRUE(checkpoints.steps().empty());
  EXPECT_FALSE(checkpoints.best().has_value());
  for (const Index step : {100, 20, 3}) std::filesystem::create_directories(checkpoints.finished(step));
  std::filesystem::create_directories(checkpoints.partial(200));
  std::filesystem::create_directories(path() / "checkpoints" / "step-x");
  EXPECT_EQ(checkpoints.steps(), (std::vector<Index>{100, 20, 3}));
  checkpoints.mark_best(3);
  checkpoints.remove_old(1);
  EXPECT_EQ(checkpoints.steps(), (std::vector<Index>{100, 3}));
  checkpoints.set_aside(100);
  EXPECT_EQ(checkpoints.steps(), (std::vector<Index>{3}));
  const std::filesystem::path of_best = path() / "checkpoints" / "best.partial-17";
  write_file_atomically(of_best, "step-");
  checkpoints.remove_partial();
  EXPECT_FALSE(std::filesystem::exists(checkpoints.partial(200)));
  EXPECT_FALSE(std::filesystem::exists(of_best));
  EXPECT_EQ(checkpoints.best(), 3);
}

TEST_F(CheckpointFiles, OldOnesAreRemovedOnBothSidesOfTheBest) {
  const CheckpointDirectory checkpoints(path() / "checkpoints");
  for (const Index step : {10, 20, 30, 40, 50})
    std::filesystem::create_directories(checkpoints.finished(step));
  checkpoints.mark_best(20);
  checkpoints.remove_old(2);
  EXPECT_EQ(checkpoints.steps(), (std::vector<Index>{50, 40, 20}));
}

// Links that somebody put into the directory: what they lead to is not ours.
TEST_F(CheckpointFiles, NothingBehindALinkIsRemovedOrWritten) {
  const CheckpointDirectory checkpoints(path() / "checkpoints");
  const std::filesystem::path elsewhere = path() / "elsewhere";
  std::filesystem::create_directory(elsewhere);
  write_file_atomically(elsewhere / kManifestName, "{}");
  std::filesystem::create_directories(checkpoints.finished(30));
  for (const auto& link : {checkpoints.finished(20), checkpoints.partial(40), checkpoints.finished(10)})
    std::filesystem::create_directory_symlink(elsewhere, link);
  checkpoints.set_aside(10);
  checkpoints.set_aside(10);
  checkpoints.remove_old(1);
  EXPECT_EQ(checkpoints.steps(), std::vector<Index>{30});
  checkpoints.make_partial(40);
  EXPECT_TRUE(std::filesystem::is_directory(std::filesystem::symlink_status(checkpoints.partial(40))));
  checkpoints.mark_best(30);
  std::filesystem::remove(checkpoints.root() / "best");
  std::filesystem::create_symlink(elsewhere / kManifestName, checkpoints.root() / "best");
  checkpoints.mark_best(30);
  EXPECT_EQ(read_file(elsewhere / kManifestName), "{}");
}

TEST_F(CheckpointFiles, ADirectoryForACheckpointIsANewOne) {
  const CheckpointDirectory checkpoints(path() / "checkpoints");
  std::filesystem::create_directories(checkpoints.partial(1) / "left");
  checkpoints.make_partial(2);
  EXPECT_FALSE(std::filesystem::exists(checkpoints.partial(1)));
  checkpoints.make_partial(2);
  EXPECT_TRUE(std::filesystem::is_empty(checkpoints.partial(2)));
  write_file_atomically(path() / "file", "");
  EXPECT_NE(problem_of([&] { CheckpointDirectory(path() / "file").make_partial(1); }), "");
}

TEST_F(CheckpointFiles, AFifoAmongItsFilesIsAnErrorAtOnce) {
  const CheckpointReader reader(path());
  for (const char* name : {"state-00000.bin", "state-00001.bin", kManifestName}) {
    std::filesystem::remove(path() / name);
    test::make_fifo(path() / name);
  }
  const auto expect_fifo = [](const auto& action) { test::expect_parts(problem_of(action), {"is a FIFO"}); };
  expect_fifo([&] { CheckpointReader again(path()); });
  expect_fifo([&] { reader.verify(1, 0); });
  std::vector<float> numbers(10);
  expect_fifo([&] { reader.fill({part_of("optimizer.0", 10, {0, 10}, numbers)}); });
}

}  // namespace lockstep::checkpoint_files_test
