// Cutting text into records and fields, and files into chunks; and the files of other programs.
#include <zlib.h>

#include "lockstep/base/embedded_text.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/data/inputs/foreign.h"
#include "lockstep/data/table/text/row.h"
#include "lockstep/data/table/text/table_text.h"
#include "lockstep/data/table/text/text_files.h"
#include "lockstep/data/table/values/number.h"
#include "lockstep/train/rank_peer_group.h"
#include "support/error_text.h"
#include "support/seed.h"
#include "support/temporary_directory.h"
#include "support/text_lines.h"
#include "support/thread_ranks.h"

namespace lockstep::table_text_test {

using namespace test;

using Texts = std::vector<std::string>;

TEST(Header, HasTheLabelsOrTheColumnsOfTheModelOrNoNumber) {
  TableOptions options;
  EXPECT_TRUE(is_header({"k", "x"}, options, nullptr));
  EXPECT_FALSE(is_header({"k", "2019"}, options, nullptr));
  TableSchema schema;
  for (const char* name : {"k", "2019", "y"}) schema.columns.push_back({.name = name});
  schema.columns.back().label = true;
  EXPECT_TRUE(is_header({"2019", "k"}, options, &schema)) << "the label may be missing";
  EXPECT_FALSE(is_header({"2019", "y"}, options, &schema));
  options.label = {"y", "2019"};
  EXPECT_TRUE(is_header({"2019", "y"}, options, nullptr));
  EXPECT_FALSE(is_header({"2019", "k"}, options, nullptr));
}

TEST(Fields, TakeNumberTakesAllOrNothing) {
  FieldCursor cursor({});
  double value = 0;
  cursor.start("12,-3.5e1,x,4 ,\"5\",+6,inf,7");
  ASSERT_TRUE(cursor.take_number(value));
  EXPECT_EQ(value, 12);
  ASSERT_TRUE(cursor.take_number(value));
  EXPECT_EQ(value, -35);
  for (const char* text : {"x", "4", "5"}) {
    EXPECT_FALSE(cursor.take_number(value));
    EXPECT_EQ(cursor.take_text(), text);
  }
  ASSERT_TRUE(cursor.take_number(value));
  EXPECT_EQ(value, 6);
  EXPECT_FALSE(cursor.take_number(value));
  EXPECT_EQ(cursor.take_text(), "inf");
  EXPECT_FALSE(cursor.done());
  ASSERT_TRUE(cursor.take_number(value));
  EXPECT_TRUE(cursor.done());
  EXPECT_EQ(cursor.column(), 8);
}

TEST(Numbers, AreFiniteAndWhole) {
  EXPECT_EQ(parse_number("0.1"), 0.1);
  EXPECT_EQ(parse_number(".5"), 0.5);
  EXPECT_EQ(parse_number("+1"), 1);
  for (const char* text : {"", "+", "-", "+-1", "nan", "inf", "1e999", "1 ", " 1", "1,0", "0x10", "1_000"})
    EXPECT_FALSE(parse_number(text)) << text;
}

// Short numbers take another way than long ones, and both must give what the standard library gives.
TEST(Numbers, AreTheNearestDoubles) {
  RandomStream random({.seed = seed(), .purpose = Purpose::kSynthetic});
  const auto digits = [&] {
    std::string text;
    for (Index left = random.below(11); left > 0; --left)
      text += static_cast<char>('0' + static_cast<char>(random.below(10)));
    return text;
  };
  for (int trial = 0; trial < 20000; ++trial) {
    std::string text;
    if (random.below(3) == 0) text += '-';
    text += digits();
    if (random.below(2) == 0) text.append(1, '.').append(digits());
    if (random.below(5) == 0) text.append(1, 'e').append(digits(), 0, 2);
    double expected = 0;
    const std::string padded = text + ",                    ";
    const auto [stop, error] = std::from_chars(padded.data(), padded.data() + padded.size(), expected);
    double found = 0;
    const char* end = parse_number_prefix(padded.data(), padded.data() + padded.size(), found);
    if (error != std::errc()) {
      EXPECT_EQ(end, nullptr) << text;
    } else {
      EXPECT_EQ(end, stop) << text;
      EXPECT_EQ(found, expected) << text;
    }
    EXPECT_EQ(parse_number(text).has_value(), error == std::errc() && stop == padded.data() + text.size());
  }
}

// The records of a text with the lines that they begin in: "1:a,b".
Texts records_of(std::string_view text, const Dialect& rules = {}) {
  RecordLines lines(text, rules, 1);
  Texts records;
  for (std::string_view record; lines.next(record);)
    records.push_back(fmt::format("{}:{}", lines.line(), record));
  return records;
}

class TextFilesTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name, std::ios::binary) << text;
    return directory_ / name;
  }
  std::string write_gzip(const std::string& name, const std::string& text) {
    gzFile file = gzopen((directory_ / name).c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    return directory_ / name;
  }
  static Texts read_all(const TextFiles& files, bool backwards = false) {
    TextReader reader(files);
    Texts all;
    std::vector<TextChunk> chunks = files.chunks;
    if (backwards) std::ranges::reverse(chunks);
    for (const TextChunk& chunk : chunks) {
      const std::string_view text = reader.read(chunk);
      RecordLines lines(text, files.dialect, reader.first_line());
      Texts records;
      for (std::string_view record; lines.next(record);)
        records.push_back(fmt::format("{}:{}", lines.line(), record));
      all.insert(backwards ? all.begin() : all.end(), records.begin(), records.end());
    }
    return all;
  }
  // The records that the first pass takes on so many ranks.
  static Texts taken(std::span<const std::string> paths, Index chunk_bytes, int ranks) {
    std::vector<Texts> of_rank(static_cast<std::size_t>(ranks));
    run_thread_ranks(ranks, [&](Communicator& comm) {
      RankPeerGroup peers(comm);
      TextFiles files = look_at_files(paths, chunk_bytes, peers);
      LinesPass pass(files);
      read_text(files, peers, pass);
      at(of_rank, comm.rank()) = pass.lines;
    });
    Texts all;
    for (const Texts& lines : of_rank) all.insert(all.end(), lines.begin(), lines.end());
    return all;
  }
  TemporaryDirectory directory_;
};

// A rank that supposes wrongly how its share begins takes it again; one that was right does not.
TEST_F(TextFilesTest, AShareThatBeginsInsideQuotesIsTakenTwice) {
  const std::string inside = "a,b\n1,\"x\n\n\n\n\n\n\n\ny\"\n2,3\n";
  const std::string outside = "a,b\n1,x\n1,x\n1,x\n1,x\n2,3\n";
  for (const auto& [text, starts] : {std::pair(inside, 2), std::pair(outside, 1)}) {
    const std::string paths[] = {write("t.csv", text)};
    std::vector<int> found(2);
    run_thread_ranks(2, [&](Communicator& comm) {
      RankPeerGroup peers(comm);
      TextFiles files = look_at_files(paths, 4, peers);
      LinesPass pass(files);
      pass.tells_lines = false;
      read_text(files, peers, pass);
      at(found, comm.rank()) = pass.starts;
    });
    EXPECT_EQ(found, (std::vector{1, starts})) << text;
  }
}

TEST_F(TextFilesTest, ChunksOfAnySizeHoldEachRecordOnce) {
  RandomStream random({.seed = seed(), .purpose = Purpose::kSynthetic});
  for (int trial = 0; trial < 300; ++trial) {
    std::string text;
    const auto length = random.below(120);
    for (Index i = 0; i < length; ++i) text += "ab, \"\"\"\n\n"[random.below(9)];
    if (text.empty()) text += 'x';
    // Line ends of all kinds, one in a file, as the first one decides.
    const auto line_end = random.below(3);
    if (line_end == 1)
      for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2)
        text.insert(at, 1, '\r');
    const Texts expected = records_of(text), unquoted = records_of(text, {.quotes = false});
    if (line_end == 2) std::ranges::replace(text, '\n', '\r');
    const std::string paths[] = {write("t.csv", text)};
    const std::string packed[] = {write_gzip("t.csv.gz", text)};
    for (const Index bytes : {1, 2, 3, 7, 50, 1000}) {
      const TextFiles files = index_text(paths, bytes, alone());
      EXPECT_EQ(read_all(files), expected) << bytes << " " << in_quotes(text);
      EXPECT_EQ(read_all(files, true), expected) << bytes;
      EXPECT_EQ(read_all(index_text(packed, bytes, alone())), expected) << bytes;
      EXPECT_EQ(read_all(index_text(paths, bytes, alone(), false)), unquoted);
      if (trial % 10 != 0) continue;
      const int ranks = 1 + trial / 10 % 3;
      EXPECT_EQ(taken(paths, bytes, ranks), expected) << bytes << " on " << ranks << " " << in_quotes(text);
    }
  }
}

TEST_F(TextFilesTest, FilesThatChangeAreNoticed) {
  const std::string paths[] = {write("t.csv", std::string(1000, 'x'))};
  const TextFiles files = index_text(paths, 100, alone());
  write("t.csv", "short");
  expect_parts(error_text<DataError>([&] { read_all(files); }), {"t.csv", "changed", "1,000", "5"});
  std::filesystem::remove(paths[0]);
  expect_parts(error_text<DataError>([&] { read_all(files); }), {"t.csv", "No such file"});
  const std::string empty[] = {write("e.csv", "")};
  expect_parts(error_text<DataError>([&] { index_text(empty, 100, alone()); }), {"e.csv", "is empty"});
}

TEST_F(TextFilesTest, ALineOfTenMegabytesIsReadWhole) {
  const std::string line(10'000'000, 'x');
  const std::string paths[] = {write("t.csv", "a\n" + line + "\nb\n")};
  EXPECT_EQ(read_all(index_text(paths, 1 << 16, alone())), (Texts{"1:a", fmt::format("2:{}", line), "3:b"}));
}

TEST_F(TextFilesTest, SharesCoverAllChunksAndKeepCompressedFilesWhole) {
  const std::string text(1000, '\n');
  const std::string paths[] = {write("a.csv", text), write_gzip("b.csv.gz", text), write("c.csv", text)};
  const TextFiles files = index_text(paths, 100, alone());
  ASSERT_EQ(files.chunks.size(), 30u);
  for (const Index ranks : {1, 2, 3, 7, 50}) {
    Index next = 0;
    for (const Range share : share_text_chunks(files, ranks)) {
      EXPECT_EQ(share.begin, next);
      EXPECT_TRUE(share.begin <= 10 || share.begin >= 20);
      next = share.end;
    }
    EXPECT_EQ(next, 30);
  }
  EXPECT_EQ(share_text_chunks(files, 3)[1], (Range{10, 20}));
}

TEST(ForeignFiles, AreToldByTheirEndsAndByTheirFirstBytes) {
  const std::set<std::string> fields{"ends", "start", "bytes", "convert"};
  for (const TextEntry& entry : embedded_entries("texts/foreign-files.txt")) {
    for (const auto& [field, text] : entry.fields) EXPECT_TRUE(fields.contains(field)) << entry.name << field;
    EXPECT_FALSE(entry.get("convert").empty()) << entry.name;
    const std::vector<std::string> ends = entry.get_words("ends");
    EXPECT_FALSE(ends.empty()) << entry.name;
    for (const std::string& end : ends) {
      EXPECT_TRUE(describe_foreign("t" + end).starts_with(entry.name + ": ")) << end;
      EXPECT_EQ(has_known_start("t" + end), !(entry.get("start") + entry.get("bytes")).empty()) << end;
    }
  }
  const auto by_start = [](std::string_view start) { return describe_foreign("a", start); };
  EXPECT_EQ(by_start("\xfd\x37\x7aXZ..."), "packed with xz: unpack it with unxz 'a'");
  EXPECT_EQ(by_start("\x28\xb5\x2f\xfd..."), "packed with zstd: unpack it with unzstd 'a'");
  EXPECT_TRUE(by_start("\xd0\xcf\x11\xe0...").starts_with("a spreadsheet: "));
  EXPECT_EQ(by_start("\x28\xb5\x2f"), "");
}

}  // namespace lockstep::table_text_test
