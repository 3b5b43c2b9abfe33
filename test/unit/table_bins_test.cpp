// Numbers of a table as bins and by robust scaling: what is learnt of the training data, and the features.
#include "lockstep/data/table/values/schema.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>

#include "data/table/schema/encoder.h"
#include "lockstep/base/errors.h"
#include "lockstep/data/table/sources/feature_columns.h"
#include "lockstep/train/rank_peer_group.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"

namespace lockstep::table_bins_test {
namespace {

using namespace test;
using Rows = std::vector<std::vector<Scalar>>;

class TableBins : public testing::Test {
 protected:
  TableSchema learn(const std::string& text, const HoldOut& held = {}) {
    write(text);
    return learn_schema(open(), options_, held, alone()).schema;
  }
  // The text that was written last, by all of these ranks.
  TableSchema learn_on(PeerGroup& peers) {
    const std::string paths[] = {path_};
    return learn_schema(open_table_text(paths, options_, peers), options_, {}, peers).schema;
  }
  // The features of all records of the text, by this schema.
  Rows encode(const TableSchema& schema, const std::string& text) {
    write(text);
    const TableText table = open();
    const Encoder encoder(schema, false);
    TableReader reader(table, match_columns(table, schema, false), std::ssize(schema.columns),
                       schema.missing_values);
    Rows rows;
    std::vector<std::byte> packed(static_cast<std::size_t>(encoder.record_bytes()));
    std::vector<Index> unseen(schema.columns.size());
    for (const TextChunk& chunk : table.text.chunks) {
      reader.for_each_record(
          chunk,
          [&](std::span<const Cell> cells) {
            encoder.pack(cells, packed.data(), unseen);
            rows.emplace_back(static_cast<std::size_t>(encoder.features()));
            encoder.unpack(packed.data(), rows.back().data(), nullptr);
          },
          [](const std::string& bad) { ADD_FAILURE() << bad; });
    }
    return rows;
  }
  std::string refusal() {
    return error_text<ConfigError>([&] { learn("a,y\n1,0\n2,1\n"); });
  }

  TableOptions options_{.label = {"y"}};

 private:
  void write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }
  TableText open() {
    const std::string paths[] = {path_};
    return open_table_text(paths, options_, alone());
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_ / "t.csv";
};

// The numbers 0, 10, ..., 100 in column a.
std::string tens() {
  std::string text = "a,y\n";
  for (int i = 0; i <= 10; ++i) text += fmt::format("{},{}\n", 10 * i, i % 2);
  return text;
}

TEST_F(TableBins, ANumberFillsTheBinsBelowIt) {
  options_.scale = "bins(2)";
  const TableSchema schema = learn(tens());
  EXPECT_EQ(schema.columns[0].edges, (std::vector<double>{0, 50, 100}));
  EXPECT_EQ(schema.features(), 2);
  EXPECT_EQ(encode(schema, "a\n0\n25\n50\n75\n100\n"), (Rows{{0, 0}, {0.5F, 0}, {1, 0}, {1, 0.5F}, {1, 1}}));
  EXPECT_EQ(encode(schema, "a\n-1e9\n1e9\n"), (Rows{{0, 0}, {1, 1}})) << "beyond what training has seen";
}

TEST_F(TableBins, AScaleBesideBinsKeepsTheNumber) {
  options_.scale = "minmax bins(2)";
  const TableSchema schema = learn(tens());
  EXPECT_EQ(schema.features(), 3);
  EXPECT_EQ(encode(schema, "a\n25\n"), (Rows{{0.25F, 0.5F, 0}}));
  options_.columns = {"a: none"};
  EXPECT_EQ(encode(learn(tens()), "a\n25\n"), (Rows{{25}})) << "a scale alone has no bins";
  options_.columns = {"a: bins(4)"};
  EXPECT_EQ(learn(tens()).features(), 4) << "bins alone have no number";
}

TEST_F(TableBins, AMissingNumberIsEncodedAsTheOneThatStandsForIt) {
  for (const std::string scale : {"bins(2)", "robust", "log bins(2)"}) {
    options_.scale = scale;
    options_.missing = "constant(25)";
    const Rows rows = encode(learn(tens()), "a\n\"\"\n25\n");
    EXPECT_EQ(rows.at(0), rows.at(1)) << scale;
    options_.missing = "mean";
    const Rows means = encode(learn(tens()), "a\n\"\"\n50\n");
    if (scale.starts_with("log")) continue;  // the mean of logarithms is another number
    EXPECT_EQ(means.at(0), means.at(1)) << scale;
  }
}

TEST_F(TableBins, FewNumbersHaveFewBins) {
  options_.scale = "bins(8)";
  options_.numeric = {"a", "b"};
  const TableSchema schema = learn("a,b,y\n0,7,0\n1,7,1\n0,7,0\n1,7,1\n2,7,0\n");
  EXPECT_EQ(schema.columns[0].edges, (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(schema.columns[1].edges, (std::vector<double>{7})) << "a column that never changes";
  EXPECT_EQ(schema.features(), 3);
  EXPECT_EQ(encode(schema, "a,b\n1,7\n2,8\n"), (Rows{{1, 0, 0}, {1, 1, 0}}));
}

TEST_F(TableBins, OfAColumnWithoutAnyNumberAreZero) {
  options_.scale = "robust bins(8)";
  options_.numeric = {"a"};
  EXPECT_EQ(encode(learn("a,b,y\n,1,0\n,2,1\n"), "a,b\n,1\n"),
            encode(learn("a,b,y\n,1,0\n,2,1\n"), "a,b\n5,1\n"));
}

TEST_F(TableBins, RobustScalingIsThatOfTheQuartilesClippedSmoothly) {
  options_.scale = "robust";
  const TableSchema schema = learn(tens());
  EXPECT_EQ(schema.columns[0].quartiles, (Quartiles{.lower = 25, .median = 50, .upper = 75}));
  const Rows rows = encode(schema, "a\n50\n100\n1e12\n-1e12\n");
  EXPECT_EQ(rows.at(0).at(0), 0);
  EXPECT_NEAR(rows.at(1).at(0), 1 / std::sqrt(1 + 1.0 / 9), 1e-6);
  EXPECT_NEAR(rows.at(2).at(0), 3, 1e-6);
  EXPECT_NEAR(rows.at(3).at(0), -3, 1e-6);
}

// Holzmueller et al. 2024: half of the range stands for the distance of quartiles that are equal.
TEST_F(TableBins, RobustScalingOfMostlyOneNumberIsThatOfItsRange) {
  options_.scale = "robust";
  options_.numeric = {"a", "b"};
  std::string text = "a,b,y\n4,3,1\n";
  for (int i = 0; i < 9; ++i) text += "0,3,0\n";
  const Rows rows = encode(learn(text), "a,b\n2,3\n0,9\n");
  EXPECT_NEAR(rows.at(0).at(0), 1 / std::sqrt(1 + 1.0 / 9), 1e-6);
  EXPECT_EQ(rows.at(1), (std::vector<Scalar>{0, 0})) << "a column that never changes is 0";
}

TEST_F(TableBins, AreKeptInTheSchema) {
  options_.scale = "robust bins(4)";
  const TableSchema schema = learn(tens());
  const std::string json = to_json(schema);
  const TableSchema again = parse_schema(json, "s.json");
  EXPECT_EQ(to_json(again), json);
  EXPECT_EQ(encode(again, tens()), encode(schema, tens()));
  const auto refused = [&](const std::string& part, const std::string& replacement) {
    std::string bad = json;
    const std::size_t place = bad.find(part);
    ASSERT_NE(place, std::string::npos) << part;
    bad.replace(place, part.size(), replacement);
    expect_parts(error_text<DataError>([&] { parse_schema(bad, "s.json"); }), {"'s.json' is no schema"});
  };
  refused("\"max\": 4", "\"max\": 1");
  refused("\"max\": 4", "\"max\": 3");
  refused("\"edges\": [", "\"edges\": [1e300, ");
  refused("\"quartiles\"", "\"quarters\"");
}

TEST_F(TableBins, QuantilesAreNotThoseOfRecordsHeldBack) {
  options_.scale = "robust bins(3)";
  const HoldOut held{.share = 0.4, .key = 7};
  std::string text = "a,y\n";
  std::vector<double> learnt;
  for (Index id = 0; id < 200; ++id) {
    text += fmt::format("{},{}\n", id * id, id % 2);
    if (!held.holds(id)) learnt.push_back(static_cast<double>(id * id));
  }
  const TableSchema schema = learn(text, held);
  EXPECT_EQ(schema.columns[0].edges, edges_of(learnt, 3));
  EXPECT_EQ(schema.columns[0].quartiles, quartiles_of(learnt));
}

TEST_F(TableBins, WrongArgumentsAreRefused) {
  for (const std::string scale : {"bins(0)", "bins(1)"}) {
    options_.scale = scale;
    expect_parts(refusal(), {"data.scale", scale, "2"});
  }
  options_.scale = "bins(257)";
  expect_parts(refusal(), {"data.scale", "at most 256 bins, found 257"});
  options_.scale = "standard";
  for (const std::string words : {"robust", "bins(8)"}) {
    options_.columns = {"y: " + words};
    expect_parts(refusal(), {"data.columns", "'y' is the label", "standard, minmax or log"});
  }
  options_.columns = {"a: date(ymd) bins(8)"};
  expect_parts(refusal(), {"data.columns", "leave out bins or date"});
}

TEST_F(TableBins, OfAllNumbersLeaveLabelsWeightsAndDatesAlone) {
  options_.scale = "robust bins(4)";
  options_.weight = "w";
  const TableSchema schema =
      learn("a,d,w,y\n1,2024-01-05,1,5\n2,2024-01-06,2,6\n3,2024-02-07,1,7\n4,2024-03-08,1,9\n");
  EXPECT_EQ(schema.columns[1].bins, 0);
  EXPECT_EQ(schema.columns[2].scale, Scale::kNone);
  EXPECT_EQ(schema.columns[3].scale, Scale::kNone);
  EXPECT_EQ(schema.features(), 1 + 3 + schema.columns[1].width());
  EXPECT_TRUE(label_scales(schema).empty());
}

// The page of a run shows the numbers of records.
TEST_F(TableBins, TellsTheNumberOfItsBins) {
  options_.scale = "bins(4)";
  const std::string text = "a,y\n1,0\n2,1\n4,0\n8,1\n16,0\n32,1\n64,0\n";
  const TableSchema schema = learn(text);
  const Rows rows = encode(schema, text + "3,1\n100,0\n");
  const std::vector<FeatureColumn> columns = feature_columns(to_json(schema), schema.columns[0].width());
  ASSERT_EQ(columns.size(), 1U);
  std::vector<std::string> shown;
  for (const std::vector<Scalar>& row : rows) shown.push_back(value_text(columns.front(), row));
  EXPECT_EQ(shown, (std::vector<std::string>{"1", "2", "4", "8", "16", "32", "64", "3", "64"}));
}

// Zeros below 30, ones from 30 to 69, zeros above: 100 records, told apart by two thresholds.
std::string steps(const std::function<std::string(int)>& label) {
  std::string text = "a,y,w\n";
  for (int i = 0; i < 100; ++i) text += fmt::format("{},{},1\n", i, label(i));
  return text;
}

std::string step_label(int i) {
  return i >= 30 && i < 70 ? "1" : "0";
}

TEST_F(TableBins, ByTheLabelEndWhereATreeSplits) {
  options_.ignore = {"w"};
  options_.scale = "bins(8, by=label, leaf=5)";
  const std::vector<double> expected{0, 29.5, 69.5, 99};
  EXPECT_EQ(learn(steps(step_label)).columns[0].edges, expected) << "numbers";
  options_.columns = {"y: categorical"};
  const TableSchema schema = learn(steps(step_label));
  EXPECT_EQ(schema.columns[0].edges, expected) << "classes";
  expect_parts(schema.describe().front(), {"label  y: 2 classes"});
  expect_parts(schema.describe().at(1), {"a: number, 3 bins by the label from 0 to 99"});
  EXPECT_EQ(parse_schema(to_json(schema), "s.json").columns[0].bin_edges, BinEdges::kLabel);
  EXPECT_EQ(encode(schema, "a\n29.5\n"), (Rows{{1, 0, 0}}));

  options_.scale = "bins(2, by=label, leaf=5)";
  EXPECT_EQ(learn(steps(step_label)).columns[0].edges.size(), 3U) << "no more bins than asked for";
  options_.scale = "bins(8, by=label, leaf=40)";
  EXPECT_EQ(learn(steps(step_label)).columns[0].edges.size(), 3U) << "no part of fewer records";
  options_.scale = "log bins(8, by=label, leaf=5)";
  EXPECT_DOUBLE_EQ(learn(steps(step_label)).columns[0].edges.at(1), (std::log(30) + std::log(31)) / 2);
}

TEST_F(TableBins, ByTheLabelKnowNoLabelOfARecordHeldBack) {
  options_.ignore = {"w"};
  options_.scale = "bins(8, by=label, leaf=1)";
  const HoldOut held{.share = 0.3, .key = 7};
  const auto spoilt = [&](int i) { return held.holds(i) ? std::to_string(i % 2) : step_label(i); };
  EXPECT_EQ(to_json(learn(steps(step_label), held)), to_json(learn(steps(spoilt), held)));
  EXPECT_EQ(learn(steps(step_label), held).columns[0].edges.size(), 4U);
}

TEST_F(TableBins, ByTheLabelCountWeightsAndLeaveMissingNumbersOut) {
  options_.weight = "w";
  options_.scale = "bins(8, by=label, leaf=1)";
  options_.columns = {"y: categorical"};
  std::string text = steps(step_label);
  for (int i = 0; i < 50; ++i) text += fmt::format("{},1,0\n,{},1\n", i % 20, i % 2);
  EXPECT_EQ(learn(text).columns[0].edges, (std::vector<double>{0, 29.5, 69.5, 99}));
}

TEST_F(TableBins, ByTheLabelOfAColumnThatSaysNothingAreOne) {
  options_.ignore = {"w"};
  options_.scale = "bins(8, by=label)";
  EXPECT_EQ(learn(steps([](int) { return "1"; })).columns[0].edges, (std::vector<double>{0, 99}));
  options_.numeric = {"a"};
  EXPECT_EQ(learn("a,b,y,w\n,1,0,1\n,2,1,1\n").columns[0].edges, (std::vector<double>{0})) << "no number";
}

// Whoever reads which part of the file, the same is learnt of it.
TEST_F(TableBins, AreThoseOfTheWholeForAnyChunksOnAnyRanks) {
  options_.ignore = {"w"};
  std::string text = "a,y,w\n";
  for (int i = 0; i < 2000; ++i) {
    const int number = i * 37 % 1009;
    text += fmt::format("{},{},1\n", i % 97 == 3 ? "" : std::to_string(number),
                        number > 300 && number < 700 ? 1 : 0);
  }
  for (const char* scale :
       {"bins(6)", "bins(8, by=label, leaf=5)", "log bins(4)", "robust", "minmax", "log"}) {
    options_.scale = scale;
    options_.chunk_kib = 1024;
    const TableColumn whole = learn(text).columns[0];
    options_.chunk_kib = 1;
    const std::string alone_json = to_json(learn(text));
    for (const int ranks : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{}, {} ranks", scale, ranks));
      run_thread_ranks(ranks, [&](Communicator& comm) {
        RankPeerGroup peers(comm);
        const TableSchema schema = learn_on(peers);
        EXPECT_EQ(to_json(schema), alone_json);
        const TableColumn& column = schema.columns[0];
        EXPECT_EQ(column.edges, whole.edges);
        const auto quartiles = [](const TableColumn& of) { return of.quartiles.value_or(Quartiles{}); };
        EXPECT_EQ(quartiles(column).lower, quartiles(whole).lower);
        EXPECT_EQ(quartiles(column).median, quartiles(whole).median);
        EXPECT_EQ(quartiles(column).upper, quartiles(whole).upper);
        EXPECT_EQ(column.numbers.count, whole.numbers.count);
        EXPECT_EQ(column.numbers.max, whole.numbers.max);
        EXPECT_NEAR(column.numbers.mean, whole.numbers.mean, 1e-9);
        EXPECT_NEAR(column.numbers.deviation(), whole.numbers.deviation(), 1e-9);
      });
    }
  }
}

TEST_F(TableBins, ByTheLabelWantOneLabel) {
  options_.label = {"y", "w"};
  options_.scale = "bins(8, by=label)";
  expect_parts(error_text<ConfigError>([&] { learn(steps(step_label)); }),
               {"column 'a'", "by=label", "data.label names 2", "say bins(8)"});
  options_.label = {"y"};
  options_.scale = "bins(8, by=labels)";
  expect_parts(refusal(), {"data.scale", "'by' is 'labels', expected quantiles or label"});
  options_.scale = "bins(8, leaf=3)";
  expect_parts(refusal(), {"data.scale", "leaf"});
}

}  // namespace
}  // namespace lockstep::table_bins_test
