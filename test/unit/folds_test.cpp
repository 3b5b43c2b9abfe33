#include "lockstep/data/folds/folds.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/data/format.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep::test {
namespace {

constexpr Index kRows = 101;

// Columns x, y (classes of very different sizes), site (a text), day (not in order), part (0, 1, 2).
class Folds : public testing::Test {
 protected:
  Folds() {
    std::string text = "x,y,site,day,part\n";
    for (Index i = 0; i < kRows; ++i) {
      text += fmt::format("{},{},s{},{},{}\n", i, class_of(i), site_of(i), day_of(i), i % 3);
    }
    write_file_atomically(file_, text);
    data_.train = file_;
    data_.format = "csv";
    data_.table.label = {"y"};
  }
  static Index class_of(Index i) { return i % 10 == 0 ? 2 : i % 2; }
  static Index site_of(Index i) { return i * i % 17; }
  static Index day_of(Index i) { return i * 37 % kRows / 2; }  // two records a day

  FoldAssignment assign(FoldOptions options, std::uint64_t seed = 1) const {
    const auto whole = choose_format(data_).open({data_, Split::kTrain, seed, alone()});
    return *assign_folds(options, data_, seed, *whole, alone());
  }
  static std::map<Index, Index> sizes(const FoldAssignment& folds) {
    std::map<Index, Index> sizes;
    for (const Index fold : folds.fold_of) ++sizes[fold];
    return sizes;
  }

  TemporaryDirectory directory_;
  std::string file_ = directory_ / "table.csv";
  DataOptions data_;
};

TEST_F(Folds, OfRecordsAreOfOneSizeAndFollowTheSeed) {
  const FoldAssignment folds = assign({.folds = 4});
  EXPECT_EQ(sizes(folds), (std::map<Index, Index>{{1, 26}, {2, 25}, {3, 25}, {4, 25}}));
  EXPECT_EQ(assign({.folds = 4}).fold_of, folds.fold_of);
  EXPECT_NE(assign({.folds = 4}, 2).fold_of, folds.fold_of);
  for (Index id = 0; id < kRows; ++id) EXPECT_NE(folds.validates(2, id), folds.trains(2, id));
}

TEST_F(Folds, OfClassesHaveAsManyOfEachClass) {
  const FoldAssignment folds = assign({.folds = 5, .by = "class"});
  for (const Index label : {0, 1, 2}) {
    std::vector<Index> counts(6);
    for (Index id = 0; id < kRows; ++id) {
      if (class_of(id) == label) ++at(counts, folds.fold_of[static_cast<std::size_t>(id)]);
    }
    EXPECT_EQ(counts[0], 0);
    const auto [least, most] = std::minmax_element(counts.begin() + 1, counts.end());
    EXPECT_LE(*most - *least, 1) << "class " << label;
  }
  EXPECT_EQ(sizes(folds)[1], 21);
  EXPECT_EQ(sizes(folds)[5], 20);
}

TEST_F(Folds, OfGroupsKeepThemTogetherAndAreOfLikeSize) {
  const FoldAssignment folds = assign({.folds = 3, .by = "group", .column = "site"});
  std::map<Index, std::set<Index>> folds_of_site;
  for (Index id = 0; id < kRows; ++id) {
    folds_of_site[site_of(id)].insert(folds.fold_of[static_cast<std::size_t>(id)]);
  }
  for (const auto& [site, found] : folds_of_site) EXPECT_EQ(found.size(), 1U) << site;
  for (const auto& [fold, size] : sizes(folds))
    EXPECT_NEAR(static_cast<double>(size), kRows / 3.0, 8) << fold;
}

TEST_F(Folds, OfTimeComeAfterWhatTheyAreTrainedOn) {
  const FoldAssignment folds = assign({.folds = 4, .by = "time", .column = "day"});
  for (Index fold = 1; fold <= 4; ++fold) {
    Index last_trained = -1;
    Index first_validated = kRows;
    for (Index id = 0; id < kRows; ++id) {
      if (folds.trains(fold, id)) last_trained = std::max(last_trained, day_of(id));
      if (folds.validates(fold, id)) first_validated = std::min(first_validated, day_of(id));
    }
    EXPECT_GE(last_trained, 0);
    EXPECT_LT(last_trained, first_validated) << "fold " << fold;
  }
  EXPECT_GE(sizes(folds)[0], 20) << "the first records are only trained on";
}

TEST_F(Folds, OfAColumnAreItsValuesInOrder) {
  const FoldAssignment folds = assign({.folds = 3, .by = "column", .column = "part"});
  for (Index id = 0; id < kRows; ++id) EXPECT_EQ(folds.fold_of[static_cast<std::size_t>(id)], id % 3 + 1);
}

TEST_F(Folds, OfAColumnAreItsNumbersHoweverTheyAreWritten) {
  std::string text = "x,y,part\n";
  for (Index i = 0; i < 24; ++i) {
    text += fmt::format("{},{},{}{}\n", i, i % 2, i % 12, i < 12 ? "" : ".0");
  }
  write_file_atomically(file_, text);
  const FoldAssignment folds = assign({.folds = 12, .by = "column", .column = "part"});
  for (Index id = 0; id < 24; ++id) EXPECT_EQ(folds.fold_of[static_cast<std::size_t>(id)], id % 12 + 1);
}

TEST_F(Folds, WhatCannotBeDividedIsRefused) {
  const auto refusal = [this](const FoldOptions& options) {
    return error_text<ConfigError>([&] { assign(options); });
  };
  expect_parts(refusal({.folds = 3, .by = "group", .column = "sit"}),
               {"no column 'sit'", "did you mean 'site'"});
  expect_parts(refusal({.folds = 4, .by = "column", .column = "part"}),
               {"3 different values", "data.folds = 4"});
  expect_parts(refusal({.folds = 18, .by = "group", .column = "site"}), {"too few", "data.folds = 18"});
  expect_parts(refusal({.folds = 200}), {"data.folds = 200", "has 101"});
  expect_parts(refusal({.folds = 90, .by = "time", .column = "day"}), {"too few different times"});
}

}  // namespace
}  // namespace lockstep::test
