// What is learnt of the features of libsvm files.
#include "data/table/sources/sparse_source.h"

#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/errors.h"
#include "lockstep/train/rank_peer_group.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"

namespace lockstep {
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
}  // namespace lockstep
