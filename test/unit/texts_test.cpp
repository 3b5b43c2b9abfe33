// Texts whose size or order counts, and arrays of tokens; others: cases/texts.case.
#include "lockstep/data/text/texts.h"

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/kinds/kind.h"
#include "lockstep/data/loading/sampler.h"
#include "lockstep/data/text/vocabulary.h"
#include "support/error_text.h"
#include "support/loaded.h"
#include "support/numpy_files.h"
#include "support/special_files.h"
#include "support/temporary_directory.h"

namespace lockstep::texts_test {

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
  static DataSets open(const DataOptions& data) {
    return open_sets({.data = data, .wanted = {Split::kTrain}, .peers = alone()});
  }
  static Gathered read(const RecordSource& source, const std::vector<Index>& ids) {
    return gather(*load(source, everything(source), {}), source.info(), ids);
  }
  TemporaryDirectory directory_;
};

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

TEST_F(Texts, PiecesAndWordsAreTheTextAgain) {
  const Vocabulary pieces(
      open(options("low low low lower Gr\u00fc\u00dfe Gr\u00fc\u00dfe", "pieces(400)", 2)).train->schema());
  for (const std::string any : {"Gr\u00fc\u00dfe \xff\x80\xe2 low", "", " ", "\n \n", "\t x  "})
    EXPECT_EQ(pieces.decode(pieces.encode(any)), any);
  double characters = 0;
  for (const Index id : pieces.encode(" Gr\u00fc\u00dfe Gr\u00f6\u00dfe"))
    characters += pieces.characters(id);
  EXPECT_EQ(characters, 12);
  const Vocabulary words({.kind = TokenKind::kWords}, {"Gr\u00fc\u00dfe", ",", " Bob1", " ", "\n"});
  const std::string text = "Gr\u00fc\u00dfe, Bob1  Bob1\n";
  EXPECT_EQ(words.decode(words.encode(text)), text);
  EXPECT_EQ(words.characters(0), 5);
  const Vocabulary one({.kind = TokenKind::kWords, .replaces = true}, {" the"});
  EXPECT_EQ(one.decode(one.encode(" the cat")), " the\uFFFD");
  EXPECT_EQ(one.characters(0), 4);
}

TEST_F(Texts, BytesCountTheCharactersOfTheirText) {
  const Vocabulary bytes(TokenRule{.kind = TokenKind::kBytes}, {});
  double characters = 0;
  for (const Index id : bytes.encode("Gr\u00fc\u00dfe")) characters += bytes.characters(id);
  EXPECT_EQ(characters, 5);
  EXPECT_EQ(Vocabulary(bytes.schema()).decode(bytes.encode("\xff ")), "\xff ");
}

TEST_F(Texts, WindowsAnywhereAreDrawnByEpochAndRecordAlone) {
  DataOptions data = options(std::string(50, 'a') + std::string(50, 'b'), "bytes", 9);
  data.text.draw = "anywhere";
  const DataSets sets = open(data);
  const DatasetInfo& info = sets.train->info();
  EXPECT_EQ(info.starts, 91);
  EXPECT_EQ(read(*sets.train, {info.rows + 90}).targets.back(), Scalar{'b'});
  std::set<Index> begins;
  std::multiset<Index> of_one, of_three;
  for (const Index replicas : {Index{1}, Index{3}}) {
    const auto sampler = make_sampler(
        {.rows = info.rows, .replicas = replicas, .global_batch = info.rows, .starts = info.starts});
    std::vector<Index> ids;
    for (Index epoch = 0; epoch < 40; ++epoch)
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
  const auto time = std::filesystem::last_write_time(data.train);
  options("abdc", "characters", 2);
  std::filesystem::last_write_time(data.train, time);
  EXPECT_NE(*open(data).train->fingerprint(), first) << "of the same size and time";
  EXPECT_EQ(files(), 2);
}

// The first seven bytes of the footer of a text of no tokens, or of tokens of no bytes, say what they are.
TEST_F(Texts, DamagedEncodedTextsAreEncodedAnew) {
  const DataOptions data = options("abcdabcd", "characters", 3);
  const Fingerprint sound = *open(data).train->fingerprint();
  const std::string path = std::filesystem::directory_iterator(directory_ / "cache")->path();
  const std::string whole = read_file(path);
  ASSERT_EQ(whole.size(), 16 + 32) << "tokens of two bytes, and the footer";
  const auto numbers = [&](std::int64_t width, std::int64_t tokens) {
    return whole.substr(16, 8) + bytes_of(std::vector<std::int64_t>{width, tokens, 0});
  };
  std::string flipped = whole;
  flipped[5] ^= 1;
  for (const std::string& damaged : {whole.substr(0, 5), whole.substr(0, 39), flipped, numbers(0, 1 << 30),
                                     numbers(2, 0), "xx" + numbers(1, 2), "xx" + numbers(4, 1)}) {
    write_file_atomically(path, damaged);
    EXPECT_EQ(*open(data).train->fingerprint(), sound) << damaged.size();
    EXPECT_EQ(read_file(path), whole) << damaged.size();
  }
  std::filesystem::remove(path);
  make_fifo(path);
  expect_parts(error_text<DataError>([&] { open(data); }), {path, "FIFO"});
}

TEST_F(Texts, AnEncodedTextThatIsCutWhileItIsReadIsAnError) {
  const DataSets sets = open(options("abcdabcd", "characters", 3));
  EXPECT_EQ(read(*sets.train, {1}).targets, (std::vector<Scalar>{0, 1, 2}));
  const std::string path = std::filesystem::directory_iterator(directory_ / "cache")->path();
  std::filesystem::resize_file(path, 12);
  EXPECT_EQ(read(*sets.train, {0}).targets, (std::vector<Scalar>{1, 2, 3}));
  expect_parts(error_text<DataError>([&] { read(*sets.train, {1}); }), {path, "has become shorter"});
}

TEST_F(Texts, AllSetsHaveTheVocabularyThatTrainingHasLearnt) {
  DataOptions data = options("abcabcabcabd", "characters", 2);
  data.test = directory_ / "other.txt";
  write_file_atomically(data.test, "cab");
  data.text.unknown = "replace";
  data.validation = "share(0.4)";
  const std::set<Split> all{Split::kTrain, Split::kValidation, Split::kTest};
  const DataSets sets = open_sets({.data = data, .wanted = all, .peers = alone()});
  EXPECT_EQ(sets.train->vocabulary()->size(), 4) << "a, b, c and what stands for d";
  EXPECT_EQ(sets.validation->vocabulary(), sets.train->vocabulary());
  EXPECT_EQ(sets.test->vocabulary(), sets.train->vocabulary());
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
  data.record = RecordShape::kSequence;
  expect_parts(error_text<DataError>([&] { open(data); }), {"ids.npy", "data.record"});
}

TEST_F(Texts, IdsAreReadAndWrittenAsNumbers) {
  const Vocabulary ids = Vocabulary::of_ids(13);
  EXPECT_EQ(ids.encode("12 7\n 9 "), (std::vector<Index>{12, 7, 9}));
  EXPECT_EQ(ids.decode(ids.encode("12 7 9")), "12 7 9");
  for (const std::string wrong : {"13", "-1", "x", "7,9", "1.5"})
    expect_parts(error_text<DataError>([&] { ids.encode("3 " + wrong, "--prompt"); }),
                 {"--prompt, character 3 (byte 2", "'" + wrong + "'", "from 0 to 12"});
}

}  // namespace lockstep::texts_test
