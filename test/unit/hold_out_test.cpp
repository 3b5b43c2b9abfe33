// Parts of the training samples that data.validation names, against a count by hand: shares, then folds.
#include "lockstep/data/validation_split.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/data/format.h"
#include "lockstep/train/rank_peer_group.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"

namespace lockstep::test::hold_out_test {
namespace {

HoldOut part_of(const DataOptions& data, const std::string& part, std::uint64_t seed, PeerGroup& peers) {
  const auto open_whole = [&] { return choose_format(data).open({data, Split::kTrain, seed, peers}); };
  return hold_out({.validation = parse_validation_part("data.validation", part)}, data, seed, open_whole,
                  peers);
}

constexpr Index kRows = 203;

// Columns x, y (classes of very different sizes), shop, day (in no order), dmy (the same as a date), one.
class ShareOfTable : public testing::Test {
 protected:
  ShareOfTable() {
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

  HoldOut assign(const std::string& part, std::uint64_t seed = 1, PeerGroup& peers = alone()) const {
    return part_of(data_, part, seed, peers);
  }
  std::string refusal(const std::string& part) const {
    return error_text<ConfigError>([&] { assign(part); });
  }

  TemporaryDirectory directory_;
  std::string file_ = directory_ / "table.csv";
  DataOptions data_;
};

TEST_F(ShareOfTable, StratifiedTakesItsShareOfEachClassWithinOneRecord) {
  for (const double share : {0.1, 0.25, 1.0 / 3, 0.9}) {
    const HoldOut found = assign(fmt::format("stratified({})", share));
    std::map<std::string, Index> sizes;
    std::map<std::string, Index> held;
    for (Index i = 0; i < kRows; ++i) {
      ++sizes[class_of(i)];
      held[class_of(i)] += found.holds(i) ? 1 : 0;
      EXPECT_NE(found.holds(i), found.leaves(i));
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

TEST_F(ShareOfTable, StratifiedFollowsTheSeedAlone) {
  const auto first = *assign("stratified(0.2)").fold_of;
  EXPECT_NE(*assign("stratified(0.2)", 2).fold_of, first);
  for (const int ranks : {1, 2, 3}) {
    run_thread_ranks(ranks, [&](Communicator& comm) {
      RankPeerGroup peers(comm);
      EXPECT_EQ(*assign("stratified(0.2)", 1, peers).fold_of, first);
      EXPECT_EQ(*assign("group(shop, 0.2)", 1, peers).fold_of, *assign("group(shop, 0.2)").fold_of);
    });
  }
}

TEST_F(ShareOfTable, GroupsAreHeldBackAsAWhole) {
  const HoldOut found = assign("group(shop, 0.25)");
  std::map<Index, std::set<bool>> parts;
  Index held = 0;
  for (Index i = 0; i < kRows; ++i) {
    parts[shop_of(i)].insert(found.holds(i));
    held += found.holds(i) ? 1 : 0;
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
  EXPECT_NE(*assign("group(shop, 0.25)", 2).fold_of, *found.fold_of);
}

TEST_F(ShareOfTable, AGroupKeepsItsPlaceWhateverTheOrderOfTheRecords) {
  const auto before = *assign("group(shop, 0.25)").fold_of;
  std::string text = "x,y,shop\n";
  for (Index i = kRows - 1; i >= 0; --i) text += fmt::format("{},{},s{}\n", i, class_of(i), shop_of(i));
  write_file_atomically(file_, text);
  const auto after = *assign("group(shop, 0.25)").fold_of;
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.rbegin()));
}

TEST_F(ShareOfTable, TheLastTimesAreHeldBackEachAsAWhole) {
  for (const char* column : {"day", "dmy"}) {
    const HoldOut found = assign(fmt::format("time({}, 0.1)", column));
    Index last_trained = -1;
    Index first_held = kRows;
    Index held = 0;
    for (Index i = 0; i < kRows; ++i) {
      if (found.holds(i)) {
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

TEST_F(ShareOfTable, ATestSetIsChosenFirstAndTheValidationSetFromTheOthers) {
  const auto open_whole = [&] { return choose_format(data_).open({data_, Split::kTrain, 1, alone()}); };
  const auto part = [](const char* key, const char* text) { return parse_validation_part(key, text); };
  for (const char* test : {"share(0.3)", "stratified(0.3)", "group(shop, 0.3)", "time(day, 0.3)"}) {
    for (const char* validation : {"share(0.5)", "stratified(0.5)", "group(shop, 0.5)", "time(day, 0.5)"}) {
      const HoldOut held =
          hold_out({.validation = part("data.validation", validation), .test = part("data.test_part", test)},
                   data_, 1, open_whole, alone());
      Index tests = 0;
      Index validates = 0;
      for (Index i = 0; i < kRows; ++i) {
        EXPECT_EQ(held.tests(i) + held.holds(i) + held.leaves(i), 1) << test << " " << validation;
        tests += held.tests(i) ? 1 : 0;
        validates += held.holds(i) ? 1 : 0;
      }
      EXPECT_NEAR(static_cast<double>(tests), 0.3 * kRows, 20) << test;
      EXPECT_NEAR(static_cast<double>(validates), 0.5 * static_cast<double>(kRows - tests), 25) << validation;
      expect_parts(held.test_note, {"test set", fmt::format("{} of the {} records", tests, kRows)});
      const DataSets sets = split_validation(open_whole(), held);
      EXPECT_EQ(sets.test->info().rows, tests);
      EXPECT_EQ(sets.validation->info().rows, validates);
      EXPECT_EQ(sets.train->info().rows, kRows - tests - validates);
    }
  }
  // Without a validation set.
  const HoldOut held =
      hold_out({.test = part("data.test_part", "stratified(0.3)")}, data_, 1, open_whole, alone());
  const DataSets sets = split_validation(open_whole(), held);
  EXPECT_EQ(sets.validation, nullptr);
  EXPECT_EQ(sets.train->info().rows + sets.test->info().rows, kRows);
}

TEST_F(ShareOfTable, AFoldNeedsARecordThatIsNotTested) {
  const auto open_whole = [&] { return choose_format(data_).open({data_, Split::kTrain, 1, alone()}); };
  expect_parts(error_text<ConfigError>([&] {
                 hold_out({.validation = parse_validation_part("data.validation", "fold(1/150)"),
                           .test = parse_validation_part("data.test_part", "stratified(0.5)")},
                          data_, 1, open_whole, alone());
               }),
               {"needs 150 records at least"});
}

TEST_F(ShareOfTable, FoldsAreThoseOfTheRecordsThatAreNotTested) {
  const auto open_whole = [&] { return choose_format(data_).open({data_, Split::kTrain, 1, alone()}); };
  const HoldOut held =
      hold_out({.validation = parse_validation_part("data.validation", "fold(2/4, by = time(day))"),
                .test = parse_validation_part("data.test_part", "time(day, 0.2)")},
               data_, 1, open_whole, alone());
  Index last = -1;  // day of what is trained on
  for (Index i = 0; i < kRows; ++i) {
    if (held.leaves(i)) last = std::max(last, day_of(i));
  }
  for (Index i = 0; i < kRows; ++i) {
    if (held.holds(i) || held.tests(i)) {
      EXPECT_GT(day_of(i), last);
    }
  }
}

// One column of 40 times, of which the last tenth is held back.
class LastOfTimes : public ShareOfTable {
 protected:
  void write(const std::function<std::string(Index)>& time) const {
    std::string text = "x,y,t\n";
    for (Index i = 0; i < 40; ++i) text += fmt::format("{},{},\"{}\"\n", i, i % 2 ? "a" : "b", time(i));
    write_file_atomically(file_, text);
  }
  // Records are in order of time.
  void expect_last_four() {
    const HoldOut found = assign("time(t, 0.1)");
    for (Index i = 0; i < 40; ++i) EXPECT_EQ(found.holds(i), i >= 36) << i << found.note;
    if (data_.table.columns.empty()) data_.table.ignore = {"t"};
    EXPECT_EQ(*assign("time(t, 0.1)").fold_of, *found.fold_of) << "no feature";
    data_.table.ignore = {};
    EXPECT_EQ(*assign("fold(4/4, by = time(t))").fold_of, *assign("fold(1/4, by = time(t))").fold_of);
  }
};

TEST_F(LastOfTimes, AreThoseOfEachForm) {
  const std::vector<const char*> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto month = [&](Index i) { return months[static_cast<std::size_t>(i % 12)]; };
  const std::vector<std::function<std::string(Index)>> forms{
      [](Index i) { return fmt::format("{}", 990 + i); },
      [](Index i) { return fmt::format("{},5", i); },
      [](Index i) { return fmt::format("1\u2019{:03}", i * 20); },
      [](Index i) { return fmt::format("1/{}/2021 {}", 11 + i / 2, i % 2 == 0 ? "12:30 AM" : "1:30 PM"); },
      [&](Index i) { return fmt::format("{}-{:02}", month(i), 20 + i / 12); },
      [&](Index i) { return fmt::format("{} {}, {}", month(i), 28 - i / 12, 2020 + i / 12); },
      [](Index i) { return fmt::format("{:02}/{:02}/{}", 1 + i % 28, 1 + i / 28, 2021); },
      [](Index i) { return fmt::format("2021-W{:02}", 5 + i); },
      [](Index i) { return fmt::format("{:02}{:02}2021", 1 + i % 28, 1 + i / 28); }};
  for (std::size_t i = 0; i < forms.size(); ++i) {
    SCOPED_TRACE(forms[i](39));
    write(forms[i]);
    data_.table.columns = {};
    if (i + 1 == forms.size()) {
      expect_parts(refusal("time(t, 0.1)"), {"'01012021', may have the year last", "t: date(dmy)"});
      data_.table.columns = {"t: date(dmy)"};
    }
    expect_last_four();
  }
}

TEST_F(LastOfTimes, AreNeverInTheOrderOfTheAlphabet) {
  const auto refused = [this](const std::function<std::string(Index)>& time,
                              const std::vector<std::string>& parts) {
    write(time);
    for (const char* part : {"time(t, 0.1)", "fold(1/4, by = time(t))"}) expect_parts(refusal(part), parts);
  };
  refused([](Index i) { return i == 20 ? "NA" : fmt::format("{}", i); },
          {"'NA' in record 20 (counted from 0) stands for a missing value", "'t'", "order of time"});
  refused([](Index i) { return i == 0 ? "NaT" : fmt::format("2021-01-{}", 1 + i % 28); },
          {"'NaT' in record 0"});
  refused([](Index i) { return fmt::format("week {}", i); },
          {"'week 0' in record 0 (counted from 0) is no number"});
  refused(
      [](Index i) {
        return i % 5 == 3 ? fmt::format("2021-01-{}", i) : fmt::format("{}.1.2021", 1 + i % 28);
      },
      {"'2021-01-3' in record 3", "is no date as in date(dmy)", "dates of one form"});
  refused([](Index i) { return fmt::format("{},{}00", i % 9 + 1, i % 9 + 1); },
          {"decimal comma", "number(thousands=comma)"});
}

TEST_F(ShareOfTable, ALargeTimeAtTheBorderGoesWhereItDisturbsLess) {
  const auto held_of = [&](const std::string& times) {
    std::string text = "x,y,t\n";
    for (const char time : times) text += fmt::format("1,{},{}\n", text.size() % 2 ? "a" : "b", time);
    write_file_atomically(file_, text);
    const auto fold_of = *assign("time(t, 0.2)").fold_of;
    return std::count(fold_of.begin(), fold_of.end(), 1);
  };
  EXPECT_EQ(held_of("1111111122"), 2);
  EXPECT_EQ(held_of("1111111222"), 3) << "one too many";
  EXPECT_EQ(held_of("1222222223"), 1) << "one too few";
  EXPECT_EQ(held_of("1111111112"), 1);
  EXPECT_EQ(held_of("1222222222"), 9) << "there is no other border";
}

TEST_F(ShareOfTable, WhatCannotBeDividedIsRefused) {
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

TEST_F(ShareOfTable, AnEmptyValueIsRefused) {
  write_file_atomically(file_, "x,y,shop\n1,a,s\n2,b,\n3,a,t\n");
  expect_parts(refusal("group(shop, 0.3)"), {"column 'shop' is empty in record 1"});
}

TEST(HoldOut, MadeUpRecordsHaveTheirOwnSet) {
  DataOptions data;
  data.format = "synthetic";
  data.synthetic.rows = 100;
  expect_parts(error_text<ConfigError>([&] { part_of(data, "stratified(0.1)", 1, alone()); }),
               {"synthetic", "data.synthetic_validation_rows"});
}

constexpr Index kFoldRows = 101;

// Columns x, y (classes of very different sizes), site (a text), day (not in order), part (0, 1, 2).
class Folds : public testing::Test {
 protected:
  Folds() {
    std::string text = "x,y,site,day,part\n";
    for (Index i = 0; i < kFoldRows; ++i) {
      text += fmt::format("{},{},s{},{},{}\n", i, class_of(i), site_of(i), day_of(i), i % 3);
    }
    write_file_atomically(file_, text);
    data_.train = file_;
    data_.format = "csv";
    data_.table.label = {"y"};
  }
  static Index class_of(Index i) { return i % 10 == 0 ? 2 : i % 2; }
  static Index site_of(Index i) { return i * i % 17; }
  static Index day_of(Index i) { return i * 37 % kFoldRows / 2; }  // two records a day

  HoldOut assign(const std::string& fold, std::uint64_t seed = 1) const {
    return part_of(data_, fmt::format("fold({})", fold), seed, alone());
  }
  static std::map<Index, Index> sizes(const HoldOut& held) {
    std::map<Index, Index> sizes;
    for (const Index fold : *held.fold_of) ++sizes[fold];
    return sizes;
  }

  TemporaryDirectory directory_;
  std::string file_ = directory_ / "table.csv";
  DataOptions data_;
};

TEST_F(Folds, OfRecordsAreOfOneSizeAndFollowTheSeed) {
  const HoldOut folds = assign("2/4");
  EXPECT_EQ(sizes(folds), (std::map<Index, Index>{{1, 26}, {2, 25}, {3, 25}, {4, 25}}));
  EXPECT_EQ(*assign("2/4").fold_of, *folds.fold_of);
  EXPECT_NE(*assign("2/4", 2).fold_of, *folds.fold_of);
  for (Index id = 0; id < kFoldRows; ++id) EXPECT_NE(folds.holds(id), folds.leaves(id));
}

TEST_F(Folds, OfClassesHaveAsManyOfEachClass) {
  const HoldOut folds = assign("1/5, by = class");
  for (const Index label : {0, 1, 2}) {
    std::vector<Index> counts(6);
    for (Index id = 0; id < kFoldRows; ++id) {
      if (class_of(id) == label) ++at(counts, at(*folds.fold_of, id));
    }
    EXPECT_EQ(counts[0], 0);
    const auto [least, most] = std::minmax_element(counts.begin() + 1, counts.end());
    EXPECT_LE(*most - *least, 1) << "class " << label;
  }
  EXPECT_EQ(sizes(folds)[1], 21);
  EXPECT_EQ(sizes(folds)[5], 20);
}

TEST_F(Folds, OfGroupsKeepThemTogetherAndAreOfLikeSize) {
  const HoldOut folds = assign("1/3, by = group(site)");
  std::map<Index, std::set<Index>> folds_of_site;
  for (Index id = 0; id < kFoldRows; ++id) {
    folds_of_site[site_of(id)].insert(at(*folds.fold_of, id));
  }
  for (const auto& [site, found] : folds_of_site) EXPECT_EQ(found.size(), 1U) << site;
  for (const auto& [fold, size] : sizes(folds))
    EXPECT_NEAR(static_cast<double>(size), kFoldRows / 3.0, 8) << fold;
}

TEST_F(Folds, OfTimeComeAfterWhatTheyAreTrainedOn) {
  HoldOut folds;
  for (Index fold = 1; fold <= 4; ++fold) {
    folds = assign(fmt::format("{}/4, by = time(day)", fold));
    Index last_trained = -1;
    Index first_validated = kFoldRows;
    for (Index id = 0; id < kFoldRows; ++id) {
      if (folds.leaves(id)) last_trained = std::max(last_trained, day_of(id));
      if (folds.holds(id)) first_validated = std::min(first_validated, day_of(id));
    }
    EXPECT_GE(last_trained, 0);
    EXPECT_LT(last_trained, first_validated) << "fold " << fold;
  }
  EXPECT_GE(sizes(folds)[0], 20) << "the first records are only trained on";
}

TEST_F(Folds, OfAColumnAreItsValuesInOrder) {
  const HoldOut folds = assign("1/3, by = column(part)");
  for (Index id = 0; id < kFoldRows; ++id) EXPECT_EQ(at(*folds.fold_of, id), id % 3 + 1);
}

TEST_F(Folds, OfAColumnAreItsNumbersHoweverTheyAreWritten) {
  std::string text = "x,y,part\n";
  for (Index i = 0; i < 24; ++i) {
    text += fmt::format("{},{},{}{}\n", i, i % 2, i % 12, i < 12 ? "" : ".0");
  }
  write_file_atomically(file_, text);
  const HoldOut folds = assign("1/12, by = column(part)");
  for (Index id = 0; id < 24; ++id) EXPECT_EQ(at(*folds.fold_of, id), id % 12 + 1);
}

TEST_F(Folds, WhatCannotBeDividedIsRefused) {
  const auto refusal = [this](const std::string& fold) {
    return error_text<ConfigError>([&] { assign(fold); });
  };
  expect_parts(refusal("1/3, by = group(sit)"), {"no column 'sit'", "did you mean 'site'"});
  expect_parts(refusal("1/4, by = column(part)"), {"3 different values", "expected 4"});
  expect_parts(refusal("1/18, by = group(site)"), {"too few", "18 folds"});
  expect_parts(refusal("1/200"), {"needs 200 records", "has 101"});
  expect_parts(refusal("1/90, by = time(day)"), {"too few different times"});
}

}  // namespace
}  // namespace lockstep::test::hold_out_test
