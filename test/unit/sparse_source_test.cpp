// What is learnt of the features of libsvm files.
#include "data/table/sparse_source.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_directory.h"

namespace lockstep {
namespace {

class SparseSourceTest : public testing::Test {
 protected:
  SparseSchema learn(const std::string& text) {
    const std::filesystem::path path = directory_ / "t.libsvm";
    std::ofstream(path) << text;
    const TableOptions options;
    const SparseSource source({.paths = {path.string()},
                               .name = path.string(),
                               .options = options,
                               .schema = "",
                               .peers = alone()});
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

}  // namespace
}  // namespace lockstep
