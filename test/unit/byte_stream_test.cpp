// Bytes of gzip files come out as they went in, from any place, however they are cut up.
#include "lockstep/data/inputs/byte_stream.h"

#include "lockstep/base/errors.h"
#include "lockstep/data/inputs/reading_row.h"
#include "support/error_text.h"
#include "support/idx_files.h"
#include "support/special_files.h"
#include "support/temporary_directory.h"

namespace lockstep::test::byte_stream_test {

// Half a megabyte, partly easy to pack.
std::string content(unsigned seed) {
  std::string bytes;
  for (unsigned i = 0; i < 500'000; ++i) {
    seed = seed * 1'664'525 + 1'013'904'223;
    bytes.push_back(static_cast<char>(i % 1000 < 300 ? i / 1000 : seed >> 24));
  }
  return bytes;
}

std::string read(ByteStream& stream, std::size_t count) {
  std::string bytes(count, '\0');
  const Index got = stream.read(std::as_writable_bytes(std::span(bytes)));
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

TEST(ReadingRow, SaysHowFarAFileIsReadOrHowMuchCameOutOfIt) {
  EXPECT_EQ(ReadingRow::text("/a/sales.csv", 2'990, 10'000, false), "reading sales.csv: 29 %");
  EXPECT_EQ(ReadingRow::text("sales.csv.gz", 3 * 1024, 1024, true), "reading sales.csv.gz: 3.0 KiB");
  EXPECT_EQ(ReadingRow::text("/a/\x1b", 0, 0, false), "reading \\x1b: 0 B");
}

TEST(ByteStreams, AreOfRegularFilesOnly) {
  const TemporaryDirectory directory;
  for (const std::string name : {"x.csv", "x.gz", "x.npz:a", "x.h5:a", "X.NPZ:a", "X.Npy:a"}) {
    const std::string path = directory / name;
    make_fifo(split_array_path(path).file);
    expect_parts(error_text<DataError>([&] { ByteStream stream(path); }),
                 {split_array_path(path).file + "': it is a FIFO (named pipe), expected a regular file"});
  }
}

struct GzipFile : ::testing::Test {
  TemporaryDirectory directory;
  std::string path = directory / "data.gz";
  ByteStream written(const std::string& packed) {
    std::ofstream(path, std::ios::binary) << packed;
    return ByteStream(path);
  }
};

TEST_F(GzipFile, ReadsInPartsOfAnySize) {
  const std::string bytes = content(1);
  for (const std::size_t part : {std::size_t{7919}, std::size_t{1} << 18, std::size_t{1'000'000}}) {
    ByteStream stream = written(gzipped(bytes));
    EXPECT_TRUE(stream.compressed());
    std::string all;
    for (std::string next = read(stream, part); !next.empty(); next = read(stream, part)) all += next;
    EXPECT_TRUE(all == bytes) << part;
    EXPECT_EQ(stream.cut_off(), "");
  }
}

TEST_F(GzipFile, GoesForwardsAndBack) {
  const std::string bytes = content(2);
  ByteStream stream = written(gzipped(bytes));
  for (const std::size_t place : {400'000U, 100U, 499'990U, 0U}) {
    stream.go_to(static_cast<Index>(place));
    EXPECT_TRUE(read(stream, 1000) == bytes.substr(place, 1000)) << place;
  }
}

TEST_F(GzipFile, StreamsOneAfterTheOtherAreOne) {
  ByteStream stream = written(gzipped(content(3)) + gzipped("") + gzipped("end") + "junk");
  EXPECT_TRUE(read(stream, 1'000'000) == content(3) + "end");
}

TEST_F(GzipFile, SaysWhereItIsCutOffOrDamaged) {
  std::string packed = gzipped(content(4));
  for (const std::size_t kept : {std::size_t{20}, packed.size() / 2, packed.size() - 8, packed.size() - 1}) {
    ByteStream stream = written(packed.substr(0, kept));
    std::string all;
    for (std::string next = read(stream, 9973); !next.empty(); next = read(stream, 9973)) all += next;
    EXPECT_TRUE(content(4).starts_with(all));
    EXPECT_EQ(stream.cut_off(), " (the gzip stream is cut off)") << kept;
  }
  packed[packed.size() - 6] ^= 1;  // of the check sum
  ByteStream stream = written(packed);
  EXPECT_THROW(read(stream, 1'000'000), DataError);
}

TEST_F(GzipFile, OthersAreReadAsTheyAre) {
  for (const std::string bytes : {"", "\x1f", "plain"}) {
    ByteStream stream = written(bytes);
    EXPECT_FALSE(stream.compressed());
    EXPECT_EQ(read(stream, 100), bytes);
  }
}

}  // namespace lockstep::test::byte_stream_test
