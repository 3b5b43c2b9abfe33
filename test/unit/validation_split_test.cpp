#include "lockstep/data/parts/validation_split.h"

#include "data/formats/dense_source.h"
#include "lockstep/base/errors.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/loading/loader.h"
#include "support/error_text.h"
#include "support/idx_files.h"
#include "support/loaded.h"
#include "support/note.h"
#include "support/numbered_source.h"
#include "support/temporary_directory.h"

namespace lockstep::validation_split_test {

using namespace test;

constexpr Index kRows = 5000;

class ValidationSplitTest : public testing::Test {
 protected:
  std::unique_ptr<RecordSource> open() const {
    DataOptions options;
    options.train = files_.images;
    options.train_labels = files_.labels;
    return choose_format(options).open({options, Split::kTrain, 1, alone()});
  }
  static std::vector<std::vector<Scalar>> records_of(const RecordSource& source) {
    const auto records = load(source, everything(source), {});
    std::vector<std::vector<Scalar>> all;
    for (Index id = 0; id < source.info().rows; ++id) {
      const Gathered one = gather(*records, source.info(), {id});
      all.push_back(one.features);
      all.back().insert(all.back().end(), one.targets.begin(), one.targets.end());
    }
    return all;
  }
  TemporaryDirectory directory_;
  IdxPair files_ = write_idx_pair(directory_ / "all", {.rows = kRows, .shape = {{40, 8}}});
};

TEST_F(ValidationSplitTest, EachRecordIsInOnePartInOrder) {
  const std::vector<std::vector<Scalar>> whole = records_of(*open());
  const DataSets parts = split_validation(open(), {.share = 0.1, .key = 7});
  EXPECT_GT(parts.train->chunks().size(), 2U);
  EXPECT_NEAR(static_cast<double>(parts.validation->info().rows), 500, 110);  // five deviations
  const auto train = records_of(*parts.train);
  const auto validation = records_of(*parts.validation);
  ASSERT_EQ(train.size() + validation.size(), whole.size());
  std::size_t in_train = 0, in_validation = 0;
  for (const std::vector<Scalar>& record : whole) {
    if (in_train < train.size() && train[in_train] == record) {
      ++in_train;
    } else {
      ASSERT_LT(in_validation, validation.size());
      EXPECT_EQ(validation[in_validation++], record);
    }
  }
  Index end = 0;
  for (const Chunk& chunk : parts.train->chunks()) {
    EXPECT_EQ(chunk.records.begin, end);
    end = chunk.records.end;
  }
  EXPECT_EQ(end, parts.train->info().rows);
}

TEST_F(ValidationSplitTest, TheChoiceFollowsTheSeedAlone) {
  const auto validation = records_of(*split_validation(open(), {.share = 0.1, .key = 7}).validation);
  EXPECT_EQ(records_of(*split_validation(open(), {.share = 0.1, .key = 7}).validation), validation);
  EXPECT_NE(records_of(*split_validation(open(), {.share = 0.1, .key = 8}).validation), validation);
}

TEST_F(ValidationSplitTest, PartsMayNotBeEmpty) {
  expect_parts(error_text<ConfigError>([&] {
                 split_validation(open(), {.share = 1e-12, .setting = "data.validation = 'share(1e-12)'"});
               }),
               {"data.validation = 'share(1e-12)' leaves", "5000 records", files_.images});
}

// Chunks of one record, so that some are held back as a whole, in two files that are read from their start.
class TwoPackedFiles final : public RecordSource {
 public:
  const DatasetInfo& info() const override { return numbers_.info(); }
  std::span<const Chunk> chunks() const override { return numbers_.chunks(); }
  std::string schema() const override { return "a schema"; }
  std::vector<Note> notes() const override { return {{"a note"}}; }
  std::vector<std::string> rejects() const override { return {"a bad record"}; }
  std::vector<std::string> files() const override { return {"first.gz", "second.gz"}; }
  std::unique_ptr<ChunkReader> reader(const TargetRule& rule) const override { return numbers_.reader(rule); }
  void unpack(std::span<const Index> ids, std::span<const std::byte* const> records, Matrix& x,
              Matrix& targets) const override {
    numbers_.unpack(ids, records, x, targets);
  }

 private:
  static constexpr Index kRecords = 20;  // of a file
  static std::vector<Chunk> packed_chunks() {
    std::vector<Chunk> chunks = chunks_of(2 * kRecords, 1);
    for (Chunk& chunk : chunks) {
      chunk.file = chunk.records.begin / kRecords;
      chunk.follows_on = chunk.records.begin % kRecords > 0;
    }
    return chunks;
  }
  NumberedSource numbers_{packed_chunks()};
};

// Whoever reads a file from its start reads all of it.
TEST(ValidationSplit, EachFileIsReadFromItsFirstChunkThatIsLeft) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const DataSets parts = split_validation(std::make_unique<TwoPackedFiles>(), {.share = 0.5, .key = seed});
    for (const RecordSource* part : {parts.train.get(), parts.validation.get()}) {
      Index file = -1;
      for (const Chunk& chunk : part->chunks()) {
        EXPECT_EQ(chunk.follows_on, chunk.file == file);
        EXPECT_GE(chunk.file, file);
        file = chunk.file;
      }
      EXPECT_EQ(file, 1);
    }
  }
}

TEST(ValidationSplit, WhatIsKnownOfTheFilesIsToldOnceAndTheSchemaGoesToBoth) {
  const DataSets parts = split_validation(std::make_unique<TwoPackedFiles>(), {.share = 0.5, .key = 1});
  EXPECT_EQ(parts.train->notes().at(0).text, "a note");
  EXPECT_EQ(parts.train->rejects(), std::vector<std::string>{"a bad record"});
  const Index held = parts.validation->info().rows;
  test::expect_told(parts.validation->notes().at(0));
  EXPECT_EQ(parts.validation->notes().at(0).text,
            fmt::format("validation set, : {} of the {} records of '{}', by a hash of their numbers", held,
                        held + parts.train->info().rows, parts.train->info().name));
  EXPECT_TRUE(parts.validation->rejects().empty());
  for (const RecordSource* part : {parts.train.get(), parts.validation.get()}) {
    EXPECT_EQ(part->schema(), "a schema");
    EXPECT_EQ(part->files(), (std::vector<std::string>{"first.gz", "second.gz"}));
  }
}

TEST(Audit, SumsDoNotDependOnTheOrderAndTellOtherIdsApart) {
  std::vector<Index> ids(1000);
  std::iota(ids.begin(), ids.end(), Index{0});
  IdSums forwards;
  forwards.add(ids);
  EXPECT_EQ(forwards, sums_of({0, 1000}, 1));
  std::ranges::reverse(ids);
  IdSums halves;
  halves.add(std::span(ids).first(300));
  IdSums rest;
  rest.add(std::span(ids).subspan(300));
  halves.add(rest);
  EXPECT_EQ(halves, forwards);
  EXPECT_EQ(compare_sums(halves, forwards, 1), "");
  ids[17] = ids[18];
  IdSums twice;
  twice.add(ids);
  expect_parts(compare_sums(twice, forwards, 3), {"epoch 3", "1,000 samples", "not each"});
  ids.pop_back();
  IdSums fewer;
  fewer.add(ids);
  expect_parts(compare_sums(fewer, forwards, 3), {"epoch 3", "used 999 samples", "expected 1,000"});
}

TEST(Audit, RecordsThatAreSeenSeveralTimesAreExpectedAsOften) {
  std::vector<Index> ids(1000);
  std::iota(ids.begin(), ids.end(), Index{0});
  IdSums found;
  for (int pass = 0; pass < 3; ++pass) found.add(ids);
  EXPECT_EQ(found.count(), 3000);
  EXPECT_EQ(compare_sums(found, sums_of({0, 1000}, 3), 1), "");
}

// Two samples taken for one another, that one sum cannot tell apart.
TEST(Audit, EachOfTheTwoSumsTellsApartWhatTheOtherCannot) {
  for (const std::size_t blind : {std::size_t{1}, std::size_t{2}}) {
    std::map<Index, Index> first_with;
    Index found = 0;
    for (Index id = 0; id < 20'000; ++id) {
      const auto [other, is_new] = first_with.emplace(sums_of({id, id + 1}, 1).numbers[blind], id);
      if (is_new) continue;
      ++found;
      EXPECT_NE(compare_sums(sums_of({id, id + 1}, 1), sums_of({other->second, other->second + 1}, 1), 1),
                "");
    }
    EXPECT_GT(found, 0);
  }
}

}  // namespace lockstep::validation_split_test
