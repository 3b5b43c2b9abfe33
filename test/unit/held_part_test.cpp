// Parts of the training samples that data.validation names, against a count by hand.
#include "lockstep/data/folds/held_part.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/data/format.h"
#include "lockstep/train/rank_peer_group.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"

namespace lockstep::test {
namespace {

constexpr Index kRows = 203;

TEST(HeldPart, AnyOtherTextIsAFile) {
  for (const char* file : {"", "a.csv", "stratified", "stratified(0.1).csv", "./stratified(0.1)", "x(0.1)",
                           "time", "data/time(date, 0.1)"}) {
    EXPECT_FALSE(parse_held_part(file)) << file;
  }
}

TEST(HeldPart, HasAShareAndPerhapsAColumn) {
  EXPECT_EQ(parse_held_part("stratified(0.25)")->share, 0.25);
  const HeldPart time = parse_held_part(" time( signup date , 1e-1 ) ").value();
  EXPECT_EQ(time.by, HeldPart::By::kTime);
  EXPECT_EQ(time.column, "signup date");
  EXPECT_EQ(time.share, 0.1);
  EXPECT_EQ(parse_held_part("group(a, b, 0.5)")->column, "a, b") << "the last comma is before the share";
  EXPECT_EQ(parse_held_part("group(\"a, b\", 0.5)")->column, "a, b");
  const auto refusal = [](const std::string& text) {
    return error_text<ConfigError>([&] { parse_held_part(text); });
  };
  for (const char* text : {"stratified()", "stratified(y, 0.1)", "stratified(ten)"})
    expect_parts(refusal(text), {text, "expected the share", "\"stratified(0.1)\""});
  for (const char* text : {"time(0.1)", "time(, 0.1)", "time(date)", "time(date, x)"})
    expect_parts(refusal(text), {text, "expected a column and the share", "\"time(date, 0.1)\""});
  for (const char* text : {"stratified(0)", "stratified(1)", "group(g, -0.1)", "stratified(10)"})
    expect_parts(refusal(text), {text, "above 0 and below 1"});
}

// Columns x, y (classes of very different sizes), shop, day (in no order), dmy (the same as a date), one.
class HeldPartOfTable : public testing::Test {
 protected:
  HeldPartOfTable() {
    std::string text = "x,y,shop,day,dmy,mixed,one\n";
    for (Index i = 0; i < kRows; ++i) {
      text += fmt::format("{},{},s{},{},{},{},1\n", i, class_of(i), shop_of(i), day_of(i),
                          fmt::format("{:02}/{:02}/2024", day_of(i) % 28 + 1, day_of(i) / 28 + 1),
                          fmt::format("{:02}/{:02}/2024", day_of(i) % 12 + 1, day_of(i) / 12 + 1));
    }
    write_file_atomically(file_, text);
    data_.train = file_;
    data_.format = "csv";
    data_.table.label = {"y"};
    data_.table.categorical = {"y"};
    data_.table.chunk_kib = 1;
  }
  static const char* class_of(Index i) {
    return i == 7 ? "rare" : i % 10 == 0 ? "some" : i % 3 == 0 ? "b" : "a";
  }
  static Index shop_of(Index i) { return i * i % 17; }
  static Index day_of(Index i) { return i * 37 % kRows / 4; }  // four records a day, or three

  HeldAssignment assign(const std::string& part, std::uint64_t seed = 1, PeerGroup& peers = alone()) const {
    const auto whole = choose_format(data_).open({data_, Split::kTrain, seed, peers});
    return assign_held_part(parse_held_part(part).value(), data_, seed, *whole, peers);
  }
  std::string refusal(const std::string& part) const {
    return error_text<ConfigError>([&] { assign(part); });
  }

  TemporaryDirectory directory_;
  std::string file_ = directory_ / "table.csv";
  DataOptions data_;
};

TEST_F(HeldPartOfTable, StratifiedTakesItsShareOfEachClassWithinOneRecord) {
  for (const double share : {0.1, 0.25, 1.0 / 3, 0.9}) {
    const HeldAssignment found = assign(fmt::format("stratified({})", share));
    std::map<std::string, Index> sizes;
    std::map<std::string, Index> held;
    for (Index i = 0; i < kRows; ++i) {
      ++sizes[class_of(i)];
      held[class_of(i)] += found.folds->validates(1, i) ? 1 : 0;
      EXPECT_NE(found.folds->validates(1, i), found.folds->trains(1, i));
    }
    Index all = 0;
    for (const auto& [name, size] : sizes) {
      EXPECT_NEAR(static_cast<double>(held[name]), share * static_cast<double>(size), 1 + 1e-9) << name;
      EXPECT_LT(held[name], size) << "some are trained on";
      all += held[name];
    }
    EXPECT_EQ(all, std::lround(share * kRows));
    expect_parts(found.note, {fmt::format("{} of the {} records", all, kRows), "'rare' 0 of 1",
                              fmt::format("'a' {} of {}", held["a"], sizes["a"])});
  }
}

TEST_F(HeldPartOfTable, StratifiedFollowsTheSeedAlone) {
  const auto first = assign("stratified(0.2)").folds->fold_of;
  EXPECT_NE(assign("stratified(0.2)", 2).folds->fold_of, first);
  for (const int ranks : {1, 2, 3}) {
    run_thread_ranks(ranks, [&](Communicator& comm) {
      RankPeerGroup peers(comm);
      EXPECT_EQ(assign("stratified(0.2)", 1, peers).folds->fold_of, first);
      EXPECT_EQ(assign("group(shop, 0.2)", 1, peers).folds->fold_of,
                assign("group(shop, 0.2)").folds->fold_of);
    });
  }
}

TEST_F(HeldPartOfTable, GroupsAreHeldBackAsAWhole) {
  const HeldAssignment found = assign("group(shop, 0.25)");
  std::map<Index, std::set<bool>> parts;
  Index held = 0;
  for (Index i = 0; i < kRows; ++i) {
    parts[shop_of(i)].insert(found.folds->validates(1, i));
    held += found.folds->validates(1, i) ? 1 : 0;
  }
  Index groups = 0;
  for (const auto& [shop, found_in] : parts) {
    EXPECT_EQ(found_in.size(), 1U) << shop;
    groups += found_in.contains(true) ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(held), 0.25 * kRows, 12) << "half of a group of 24";
  expect_parts(found.note,
               {fmt::format("{} of the 203 records", held),
                fmt::format("all of {} of the {} groups of column 'shop'", groups, parts.size())});
  EXPECT_NE(assign("group(shop, 0.25)", 2).folds->fold_of, found.folds->fold_of);
}

TEST_F(HeldPartOfTable, AGroupKeepsItsPlaceWhateverTheOrderOfTheRecords) {
  const auto before = assign("group(shop, 0.25)").folds->fold_of;
  std::string text = "x,y,shop\n";
  for (Index i = kRows - 1; i >= 0; --i) text += fmt::format("{},{},s{}\n", i, class_of(i), shop_of(i));
  write_file_atomically(file_, text);
  const auto after = assign("group(shop, 0.25)").folds->fold_of;
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.rbegin()));
}

TEST_F(HeldPartOfTable, TheLastTimesAreHeldBackEachAsAWhole) {
  for (const char* column : {"day", "dmy"}) {
    const HeldAssignment found = assign(fmt::format("time({}, 0.1)", column));
    Index last_trained = -1;
    Index first_held = kRows;
    Index held = 0;
    for (Index i = 0; i < kRows; ++i) {
      if (found.folds->validates(1, i)) {
        first_held = std::min(first_held, day_of(i));
        ++held;
      } else {
        last_trained = std::max(last_trained, day_of(i));
      }
    }
    EXPECT_LT(last_trained, first_held) << column;
    EXPECT_NEAR(static_cast<double>(held), 0.1 * kRows, 2) << "half of a day";
    if (column != std::string("day")) continue;
    expect_parts(found.note,
                 {fmt::format("from '{}' to '50'", first_held), fmt::format("up to '{}'", last_trained)});
  }
}

TEST_F(HeldPartOfTable, ALargeTimeAtTheBorderGoesWhereItDisturbsLess) {
  const auto held_of = [&](const std::string& times) {
    std::string text = "x,y,t\n";
    for (const char time : times) text += fmt::format("1,{},{}\n", text.size() % 2 ? "a" : "b", time);
    write_file_atomically(file_, text);
    const auto fold_of = assign("time(t, 0.2)").folds->fold_of;
    return std::count(fold_of.begin(), fold_of.end(), 1);
  };
  EXPECT_EQ(held_of("1111111122"), 2);
  EXPECT_EQ(held_of("1111111222"), 3) << "one too many";
  EXPECT_EQ(held_of("1222222223"), 1) << "one too few";
  EXPECT_EQ(held_of("1111111112"), 1);
  EXPECT_EQ(held_of("1222222222"), 9) << "there is no other border";
}

TEST_F(HeldPartOfTable, WhatCannotBeDividedIsRefused) {
  expect_parts(refusal("group(shopp, 0.1)"),
               {"data.validation = 'group(shopp, 0.1)'", "no column 'shopp'", "did you mean 'shop'"});
  expect_parts(refusal("group(one, 0.1)"), {"column 'one' has one value only, '1'"});
  expect_parts(refusal("time(one, 0.1)"), {"column 'one' has one value only, '1'"});
  expect_parts(refusal("time(mixed, 0.1)"), {"day or the month first", "mixed: date(dmy)"});
  data_.table.columns = {"mixed: date(dmy)"};
  EXPECT_NO_THROW(assign("time(mixed, 0.1)"));
  data_.table.label = {"x"};
  data_.table.categorical = {};
  EXPECT_NO_THROW(assign("stratified(0.1)"));
  data_.table.label = {"x", "day"};
  expect_parts(refusal("stratified(0.1)"), {"needs one label, found 2"});
}

TEST_F(HeldPartOfTable, AnEmptyValueIsRefused) {
  write_file_atomically(file_, "x,y,shop\n1,a,s\n2,b,\n3,a,t\n");
  expect_parts(refusal("group(shop, 0.3)"), {"column 'shop' is empty in record 1"});
}

TEST(HeldPart, MadeUpRecordsHaveTheirOwnSet) {
  DataOptions data;
  data.format = "synthetic";
  data.synthetic.rows = 100;
  const auto whole = choose_format(data).open({data, Split::kTrain, 1, alone()});
  expect_parts(error_text<ConfigError>([&] {
                 assign_held_part(parse_held_part("stratified(0.1)").value(), data, 1, *whole, alone());
               }),
               {"synthetic", "data.synthetic_validation_rows"});
}

}  // namespace
}  // namespace lockstep::test
