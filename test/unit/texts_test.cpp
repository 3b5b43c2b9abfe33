// Texts: tokens and their numbers, the windows that are records, and where they begin.
#include "lockstep/data/texts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <string>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/data/format.h"
#include "lockstep/data/sampler.h"
#include "lockstep/data/vocabulary.h"
#include "support/error_text.h"
#include "support/loaded.h"
#include "support/numpy_files.h"
#include "support/temporary_directory.h"

namespace lockstep::texts_test {
namespace {

using namespace test;

class Texts : public testing::Test {
 protected:
  DataOptions options(const std::string& text, const std::string& tokens, Index window) const {
    DataOptions data;
    data.format = "text";
    data.train = directory_ / "t.txt";
    data.table.windows.window = window;
    data.text = {.tokens = tokens, .cache = directory_ / "cache"};
    write_file_atomically(data.train, text);
    return data;
  }
  static DataSets open(const DataOptions& data, const DataParts& parts = {}, const std::string& schema = "") {
    return open_texts(data, parts, {Split::kTrain, Split::kValidation, Split::kTest}, schema, alone());
  }
  static Gathered read(const RecordSource& source, const std::vector<Index>& ids) {
    return gather(*load(source, everything(source), {}), source.info(), ids);
  }

  TemporaryDirectory directory_;
};

TEST_F(Texts, TargetsAreTheTokensAfterEachOfAWindow) {
  const DataSets sets = open(options("abcabdca", "characters", 3));
  const RecordSource& train = *sets.train;
  EXPECT_EQ(train.info().rows, 2);  // the eighth token is the last target
  EXPECT_EQ(train.info().target_classes, 4);
  const Gathered windows = read(train, {1, 0});
  EXPECT_EQ(windows.features, (std::vector<Scalar>{0, 1, 3, 0, 1, 2}));
  EXPECT_EQ(windows.targets, (std::vector<Scalar>{1, 3, 2, 1, 2, 0}));
  EXPECT_EQ(Vocabulary(train.schema()).encode("dab"), (std::vector<Index>{3, 0, 1}));
}

TEST_F(Texts, WordsAreTheTextAgainAndTheRestOneToken) {
  DataOptions data = options("the cat and  the dog. the end\n", "words(3)", 2);
  expect_parts(error_text<DataError>([&] { open(data); }),
               {"t.txt', byte 0", "the word 'the'", "data.unknown"});
  data.text.unknown = "replace";
  const Vocabulary vocabulary(open(data).train->schema());
  EXPECT_EQ(vocabulary.size(), 4);
  EXPECT_EQ(vocabulary.decode(vocabulary.encode(" the cat ")), " the\uFFFD ");
  EXPECT_EQ(vocabulary.encode(" the").front(), 0);  // the most frequent
  EXPECT_EQ(vocabulary.characters(0), 4);
  const Vocabulary whole({.kind = TokenKind::kWords}, {"Gr\u00fc\u00dfe", ",", " Bob1", " ", "\n"});
  const std::string text = "Gr\u00fc\u00dfe, Bob1  Bob1\n";
  EXPECT_EQ(whole.decode(whole.encode(text)), text);
  EXPECT_EQ(whole.characters(0), 5);
}

// The numbers are those of an independent program, which counts all pairs anew for each piece.
TEST_F(Texts, PiecesAreThePairsThatStandSideBySideMostOften) {
  const std::string text =
      "low low low low low lower lower newest newest newest newest newest newest widest widest widest, "
      "aaaa aaaa Gr\u00fc\u00dfe Gr\u00fc\u00dfe 1984 1984\n\n  x\n\n  x";
  const DataSets sets = open(options(text, "pieces(400)", 2));
  const Vocabulary vocabulary(sets.train->schema());
  EXPECT_EQ(vocabulary.size(), 288);  // no pair is left that stands twice
  const std::vector<std::string> first{"es", "est", "lo", "low", " n", " low", "aa", "ew", " new", " newest"};
  for (Index i = 0; i < std::ssize(first); ++i)
    EXPECT_EQ(vocabulary.decode(std::vector<Index>{256 + i}), at(first, i));
  EXPECT_EQ(
      vocabulary.encode("lowest  Gr\u00f6\u00dfe 1985, aaa\n\n  y"),
      (std::vector<Index>{259, 257, 32, 284, 182, 195, 279, 271, 57, 56, 53, 44, 274, 97, 282, 32, 121}));
  EXPECT_EQ(vocabulary.encode("\u00dfes"), (std::vector<Index>{195, 159, 256}));  // not the first pair first
  for (const std::string any : {"Gr\u00fc\u00dfe \xff\x80\xe2 newest", "", " ", "\n \n", "\t x  "}) {
    const std::vector<Index> ids = vocabulary.encode(any);
    EXPECT_EQ(vocabulary.decode(ids), any);
  }
  double characters = 0;
  for (const Index id : vocabulary.encode(" Gr\u00fc\u00dfe Gr\u00f6\u00dfe"))
    characters += vocabulary.characters(id);
  EXPECT_EQ(characters, 12);
  EXPECT_EQ(Vocabulary(open(options(text, "pieces(260)", 2)).train->schema()).size(), 260);
}

TEST_F(Texts, PiecesAreTheTextAgainOverTheBordersOfBlocks) {
  std::string text;
  for (Index i = 0; std::ssize(text) < 2'500'000; ++i)
    text += i % 97 == 0 ? std::string(static_cast<std::size_t>(i % 300), "\u00e4 7.a"[i % 6])
                        : fmt::format(" w{}\u4e2d\u6587,\n   ", i * i % 1009);
  const Index window = 500;
  const DataSets sets = open(options(text, "pieces(600)", window));
  std::vector<Index> rows;
  for (Index row = 0; row < sets.train->info().rows; ++row) rows.push_back(row);
  std::vector<Index> ids;
  for (const Scalar id : read(*sets.train, rows).features) ids.push_back(static_cast<Index>(id));
  const std::string again = Vocabulary(sets.train->schema()).decode(ids);
  EXPECT_GT(again.size(), text.size() - 20'000);
  EXPECT_TRUE(text.starts_with(again));
}

TEST_F(Texts, BytesCountTheCharactersOfTheirText) {
  const Vocabulary bytes(TokenRule{.kind = TokenKind::kBytes}, {});
  double characters = 0;
  for (const Index id : bytes.encode("Gr\u00fc\u00dfe")) characters += bytes.characters(id);
  EXPECT_EQ(characters, 5);
  EXPECT_EQ(Vocabulary(bytes.schema()).decode(bytes.encode("\xff ")), "\xff ");
}

TEST_F(Texts, PartsAreTheLastTokensAndTeachNothing) {
  DataOptions data = options(std::string(80, 'a') + "b" + std::string(19, 'a'), "characters", 4);
  const DataParts parts{.validation = ValidationPart{.share = 0.25}, .test = ValidationPart{.share = 0.1}};
  expect_parts(error_text<DataError>([&] { open(data, parts); }), {"byte 80", "the character 'b'"});
  data.text.unknown = "replace";
  const DataSets sets = open(data, parts);
  EXPECT_EQ(sets.train->info().rows, 16);      // of 67
  EXPECT_EQ(sets.validation->info().rows, 5);  // of 23
  EXPECT_EQ(sets.test->info().rows, 2);        // of 10
  EXPECT_EQ(read(*sets.validation, {3}).features, (std::vector<Scalar>{0, 1, 0, 0}));
}

TEST_F(Texts, WindowsAnywhereAreDrawnByEpochAndRecordAlone) {
  DataOptions data = options(std::string(50, 'a') + std::string(50, 'b'), "bytes", 9);
  data.text.draw = "anywhere";
  const DataSets sets = open(data);
  const DatasetInfo& info = sets.train->info();
  EXPECT_EQ(info.starts, 91);
  EXPECT_EQ(read(*sets.train, {info.rows + 90}).targets.back(), Scalar{'b'});
  std::set<Index> begins;
  std::multiset<Index> of_one;
  std::multiset<Index> of_three;
  for (const Index replicas : {Index{1}, Index{3}}) {
    const auto sampler = make_sampler(
        {.rows = info.rows, .replicas = replicas, .global_batch = info.rows, .starts = info.starts});
    std::vector<Index> ids;
    for (Index epoch = 0; epoch < 40; ++epoch) {
      for (Index replica = 0; replica < replicas; ++replica) {
        sampler->ids(epoch, replica, ids);
        for (const Index id : ids) {
          ASSERT_GE(id, info.rows);
          ASSERT_LT(id, info.rows + info.starts);
          (replicas == 1 ? of_one : of_three).insert(epoch * 1000 + id);
          begins.insert(id);
        }
      }
    }
  }
  EXPECT_EQ(of_one, of_three);
  EXPECT_GT(std::ssize(begins), 80);
}

TEST_F(Texts, AreEncodedOnceAndAnewWhenTheyChange) {
  const DataOptions data = options("abcd", "characters", 2);
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(directory_ / "cache"), {});
  };
  const Fingerprint first = *open(data).train->fingerprint();
  EXPECT_EQ(*open(data).train->fingerprint(), first);
  EXPECT_EQ(files(), 1);
  options("abcdd", "characters", 2);
  EXPECT_NE(*open(data).train->fingerprint(), first);
  EXPECT_EQ(files(), 2);
  const auto entry = *std::filesystem::directory_iterator(directory_ / "cache");
  std::filesystem::resize_file(entry, 5);  // a file that is not whole is written again
  EXPECT_EQ(open(data).train->info().rows, 2);
}

TEST_F(Texts, LongTextsAreCutTheSameInEachBlock) {
  std::string text = "x";
  while (text.size() < 3'000'000) text += "\u00e4\u20ac word";
  const DataOptions data = options(text, "words(5)", 10);
  const DataSets sets = open(data);
  const Vocabulary vocabulary(sets.train->schema());
  std::vector<Index> ids;
  for (const Scalar id : read(*sets.train, {0, sets.train->info().rows - 1}).features)
    ids.push_back(static_cast<Index>(id));
  EXPECT_EQ(vocabulary.size(), 3);  // the first, the last, and all between
  EXPECT_EQ(vocabulary.decode(ids).substr(0, 6), text.substr(0, 6));
}

TEST_F(Texts, WhatCannotBeReadIsNamed) {
  expect_parts(error_text<DataError>([&] { open(options("", "bytes", 2)); }),
               {"data.train", "t.txt", "empty"});
  expect_parts(error_text<DataError>([&] { open(options("ab\xff", "characters", 1)); }),
               {"t.txt', byte 2", "'\\xff'", "UTF-8"});
  expect_parts(error_text<DataError>([&] {
                 open(
                     options("\xff\xfe"
                             "a",
                             "pieces(300)", 1));
               }),
               {"t.txt', byte 0", "'\\xff\\xfe'", "iconv -f UTF-16"});
  const std::string wide("\xff\xfe\0\0a\0\0\0", 8);
  expect_parts(error_text<DataError>([&] { open(options(wide, "characters", 1)); }), {"iconv -f UTF-32"});
  const DataSets marked =
      open(options("\ufeff"
                   "ab\ufeff",
                   "characters", 1));  // it is text behind the front
  EXPECT_EQ(Vocabulary(marked.train->schema()).decode(std::vector<Index>{0, 1, 2}), "ab\ufeff");
  EXPECT_EQ(read(*marked.train, {0}).features, (std::vector<Scalar>{0}));
  expect_parts(error_text<DataError>([&] { open(options("abc", "characters", 3)); }),
               {"t.txt", "3 tokens", "needs 4", "data.window"});
  expect_parts(error_text<ConfigError>([&] { open(options("abc", "words(x)", 1)); }),
               {"words(x)", "words(N)", "pieces(4096)"});
  expect_parts(error_text<ConfigError>([&] { open(options("abc", "pieces(256)", 1)); }),
               {"from 257 to 500,000"});
  expect_parts(error_text<ConfigError>([&] { open(options("abc", "bytes", 0)); }),
               {"data.window is missing"});
}

TEST_F(Texts, IdsOfAnArrayAreTokens) {
  DataOptions data = options("", "ids", 2);
  data.format = "numpy";
  data.train = directory_ / "ids.npy";
  write_file_atomically(data.train,
                        npy_content("<u2", {5}, bytes_of(std::vector<std::uint16_t>{7, 300, 0, 2, 1})));
  const DataSets sets = open(data);
  EXPECT_EQ(sets.train->info().target_classes, 301);
  EXPECT_EQ(read(*sets.train, {0}).targets, (std::vector<Scalar>{300, 0}));
  write_file_atomically(data.train,
                        npy_content("|u1", {4}, bytes_of(std::vector<std::uint8_t>{9, 255, 1, 0})));
  EXPECT_EQ(read(*open(data).train, {0}).features, (std::vector<Scalar>{9, 255}));
  write_file_atomically(data.train, npy_content("<f4", {2}, bytes_of(std::vector<float>{1, 1.5F})));
  expect_parts(error_text<DataError>([&] { open(data); }), {"ids.npy", "record 1", "found 1.5"});
}

TEST_F(Texts, CountsTellTheNextTokenTheBetterTheMoreTheySee) {
  std::string text;
  for (Index i = 0; i < 4000; ++i) text += "abcbd"[i % 5];
  const TextSummary summary = summarise_text(options(text, "characters", 0), 0.1);
  ASSERT_EQ(std::ssize(summary.bits), 4);
  EXPECT_EQ(summary.vocabulary, 4);
  EXPECT_EQ(summary.tokens, 4000);
  // a, c and d each a fifth, b two: 1.92 bits; after a b it is a c or a d, and behind two tokens all is
  // known.
  EXPECT_NEAR(summary.bits[0], 0.6 * std::log2(5) + 0.4 * std::log2(2.5), 0.01);
  EXPECT_NEAR(summary.bits[1], 0.4, 0.01);
  EXPECT_LT(summary.bits[2], 0.02);
}

TEST_F(Texts, CountsOfAShortTextFallBackOnWhatThereIs) {
  const TextSummary summary = summarise_text(options("abcdefghij", "characters", 0), 0.1);
  for (const double bits : summary.bits) EXPECT_NEAR(bits, std::log2(20), 1e-6) << "half of a tenth";
  for (const char* text : {"a", "abcdefghi"}) {
    expect_parts(error_text<DataError>([&] { summarise_text(options(text, "characters", 0), 0.1); }),
                 {"t.txt' has ", " token", "expected 10 at least"});
  }
}

}  // namespace
}  // namespace lockstep::texts_test
