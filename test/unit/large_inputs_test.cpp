// Many columns, many layers, fields of a megabyte: legal, or refused in few words, and work by their number.
#include "data/table/schema/encoder.h"
#include "lockstep/base/errors.h"
#include "lockstep/report/tables/tables.h"
#include "support/planned_run.h"
#include "support/temporary_directory.h"

namespace lockstep::large_inputs_test {

using namespace test;

class LargeTable : public testing::Test {
 protected:
  LearntSchema learn(const std::string& text) {
    const std::string path = directory_ / "t.csv";
    std::ofstream(path, std::ios::binary) << text;
    const std::string paths[] = {path};
    table_ = open_table_text(paths, options_, alone());
    return learn_schema(table_, options_, path, nullptr, alone());
  }
  TemporaryDirectory directory_;
  TableOptions options_{.label = {"y"}};
  TableText table_;
};

// What takes a moment where the work grows with the columns took minutes where it grew with their square.
TEST_F(LargeTable, FiftyThousandColumnsAreNoMoreWorkThanTheirNumber) {
  const Index columns = 50'000;
  const auto start = std::chrono::steady_clock::now();
  std::string text;
  for (Index i = 0; i < columns; ++i) text += "x,";
  text += "y\n";
  for (int row = 0; row < 2; ++row) {
    for (Index i = 0; i < columns; ++i) text += fmt::format("{},", (i + row) % 7);
    text += "1\n";
  }
  for (Index i = 1; i < columns; ++i)
    (i % 2 == 0 ? options_.ignore : options_.columns)
        .push_back(fmt::format("x.{}{}", i + 1, i % 2 == 0 ? "" : ": minmax"));
  options_.chunk_kib = 16 * 1024;
  const LearntSchema learnt = learn(text);
  EXPECT_EQ(learnt.schema.columns.size(), static_cast<std::size_t>(columns) + 1);
  EXPECT_EQ(learnt.schema.columns[static_cast<std::size_t>(columns) - 1].name, "x.50000");
  EXPECT_EQ(learnt.schema.features(), columns / 2 + 1);
  EXPECT_EQ(match_columns(table_, learnt.schema, true).size(), static_cast<std::size_t>(columns) + 1);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 30);
}

TEST_F(LargeTable, LongTextsAreCutInMessages) {
  const std::string longer(1'000'000, '9');
  options_.numeric = {"n"};
  const auto expect_cut = [&](const std::string& text) {
    std::string said;
    try {
      learn(text);
    } catch (const Error& error) {
      said = error.what();
    }
    EXPECT_LT(said.size(), 3000U) << said.substr(0, 3000);
    EXPECT_NE(said.find(" bytes)"), std::string::npos) << said.substr(0, 3000);
    EXPECT_EQ(said.find('\x1b'), std::string::npos) << said;
  };
  expect_cut("n,y\n1,0\n" + longer + "x,1\n");
  options_.label = {longer};
  expect_cut("n,y\n1,0\n");
  options_.label = {"some other name"};
  expect_cut("z\x1b[31m" + longer + ",y\n1,0\n");
  options_.label = {"y"};
  options_.columns = {"n: " + longer};
  expect_cut("n,y\n1,0\n");
}

// What takes seconds where the work grows with the layers took many minutes where it grew with their square.
TEST(LargeModel, FortyThousandLayersAreNoMoreWorkThanTheirNumber) {
  const auto start = std::chrono::steady_clock::now();
  std::string layers;
  for (int i = 0; i < 10'000; ++i) layers += "dense(2, tie=1) batch_norm relu dense(2) ";
  Given setup("dense(2) dense(2) " + layers);
  setup.train.epochs = 2;
  setup.train.global_batch = 128;
  setup.train.replicas = 4;
  setup.distribute.algorithm = "mpi";
  EXPECT_GT(setup.plan(2).memory.activations, 0);
  EXPECT_EQ(std::ranges::count(model_table(setup.model), '\n'), 40'005);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 30);
}

}  // namespace lockstep::large_inputs_test
