// What is learnt of the features of libsvm files.
#include "data/table/sources/sparse_source.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/errors.h"
#include "lockstep/train/rank_peer_group.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"

namespace lockstep::sparse_source_test {
namespace {

class SparseSourceTest : public testing::Test {
 protected:
  SparseSchema learn(const std::string& text) { return learn({write("t.libsvm", text)}, alone()); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
    return directory_ / name;
  }

  static SparseSchema learn(const std::vector<std::string>& paths, PeerGroup& peers) {
    const TableOptions options;
    const SparseSource source(
        {.paths = paths, .name = "digits", .options = options, .schema = "", .peers = peers});
    return parse_sparse_schema(source.schema());
  }

  const test::TemporaryDirectory directory_;
};

// An index that no record has is a feature all the same: the next file may have it.
TEST_F(SparseSourceTest, FeaturesCountFromOneUnlessThereIsAZero) {
  const SparseSchema from_one = learn("1 3:0.5 7:1\n0 4:2\n");
  EXPECT_EQ(from_one.first_index, 1);
  EXPECT_EQ(from_one.features, 7);
  const SparseSchema from_zero = learn("1 3:0.5\n0 0:2 7:1\n");
  EXPECT_EQ(from_zero.first_index, 0);
  EXPECT_EQ(from_zero.features, 8);
}

TEST_F(SparseSourceTest, AnotherBaseOfIndicesIsAnError) {
  const std::string train = write("train", "1 1:0.5 3:1\n0 2:2\n");
  const std::string test = write("test", "1 0:0.5 2:1\n0 1:2\n");
  const TableOptions options;
  const auto open = [&](const std::string& path, const std::string& schema) {
    return SparseSource(
        {.paths = {path}, .name = path, .options = options, .schema = schema, .peers = alone()});
  };
  const std::string schema = open(train, "").schema();
  test::expect_parts(test::error_text<DataError>([&] { open(test, schema); }),
                     {"has an index 0", "counts features from 1", "zero_based"});
  EXPECT_EQ(open(train, open(test, "").schema()).info().rows, 2) << "a file without a 0 may count from 0";
}

TEST_F(SparseSourceTest, QueriesAreLeftOutWithANote) {
  const std::string path = write("rank", "2 qid:1 1:0.5 3:1\n0 qid:1 2:2\n");
  const TableOptions options;
  const SparseSource source(
      {.paths = {path}, .name = path, .options = options, .schema = "", .peers = alone()});
  EXPECT_EQ(source.info().rows, 2);
  test::expect_parts(source.notes()[0] + source.notes()[1], {"qid", "left out"});
}

TEST_F(SparseSourceTest, NumbersTooLargeForSinglePrecisionAreNamedSo) {
  for (const char* record : {"1 1:1e300\n", "1e300 1:1\n"}) {
    test::expect_parts(test::error_text<DataError>([&] { learn(record); }),
                       {"'1e300'", "a number that single precision can hold"});
  }
}

// Records that are left out are told by the line of their file, and by their number among all records,
// however the file is cut into chunks and whoever reads them.
TEST_F(SparseSourceTest, BadLinesAreTheSameForAnyChunksOnAnyRanks) {
  std::string text;
  std::vector<Index> bad;          // numbers among the records
  std::vector<std::string> lines;  // as they are told
  const std::string path = directory_ / "bad.libsvm";
  Index line = 0;
  const auto add = [&](const std::string& record) {
    text += record + "\n";
    ++line;
  };
  for (Index i = 0; i < 500; ++i) {
    if (i % 40 == 7) add("# a comment is a line, and no record");
    if (i % 90 == 80) add("");
    const bool is_bad = i % 100 == 3 || i == 299 || i == 499;
    add(is_bad ? "1 x:y" : fmt::format("{} 1:{} 2:{} 3:0.25", i % 2, i % 7, i % 11));
    if (!is_bad) continue;
    bad.push_back(i);
    lines.push_back(fmt::format("'{}', line {}: ", path, line));
  }
  write("bad.libsvm", text);
  const auto check = [&](PeerGroup& peers, Index chunk_kib) {
    TableOptions options;
    options.chunk_kib = chunk_kib;
    options.on_bad_record = OnBadRecord::kSkip;
    options.max_bad_share = 0.5;
    const SparseSource source(
        {.paths = {path}, .name = "digits", .options = options, .schema = "", .peers = peers});
    EXPECT_EQ(source.chunks().size(), chunk_kib == 1 ? divide_up(std::ssize(text), 1024) : 1);
    EXPECT_EQ(source.info().rows, 500 - std::ssize(bad));
    EXPECT_EQ(std::vector(source.skipped().begin(), source.skipped().end()), bad);
    ASSERT_EQ(source.rejects().size(), lines.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      EXPECT_TRUE(source.rejects()[i].starts_with(lines[i])) << source.rejects()[i] << ", not " << lines[i];
    }
  };
  for (const Index chunk_kib : {1024, 1}) {
    for (const int ranks : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("chunks of {} KiB, {} ranks", chunk_kib, ranks));
      run_thread_ranks(ranks, [&](Communicator& comm) {
        RankPeerGroup peers(comm);
        check(peers, chunk_kib);
      });
    }
  }
}

// Also one that is told when its records are packed, as a label that suits no class.
TEST_F(SparseSourceTest, ARefusedLabelIsToldByItsLineInAnyChunk) {
  std::string text;
  for (Index i = 1; i <= 200; ++i) text += fmt::format("{} 1:{} 2:0.5\n", i == 150 ? -3 : 1, i);
  const std::string path = write("labels.libsvm", text);
  TableOptions options;
  options.chunk_kib = 1;
  const SparseSource source(
      {.paths = {path}, .name = path, .options = options, .schema = "", .peers = alone()});
  ASSERT_EQ(source.chunks().size(), 3U);
  const auto reader = source.reader({.non_negative = true});
  const auto read = [&](Index chunk) {
    std::vector<std::byte> packed(
        static_cast<std::size_t>(at(source.chunks(), chunk).records.size() * source.info().record_bytes));
    reader->read(chunk, packed);
  };
  read(0);
  test::expect_parts(test::error_text<DataError>([&] {
                       read(1);
                       read(2);
                     }),
                     {"line 150: found label -3"});
}

// Each rank reads one of the files.
TEST_F(SparseSourceTest, FeaturesOfAllFilesAreCountedAlike) {
  const std::vector<std::string> paths{write("a", "1 0:1 3:1\n"), write("b", "0 9:1\n"),
                                       write("c", "1 5:2\n")};
  run_thread_ranks(3, [&](Communicator& comm) {
    RankPeerGroup peers(comm);
    const SparseSchema schema = learn(paths, peers);
    EXPECT_EQ(schema.first_index, 0);
    EXPECT_EQ(schema.features, 10);
  });
}

}  // namespace
}  // namespace lockstep::sparse_source_test
