// How often the bytes of a table are read before a first step: what the process reads is counted as the
// kernel counts it.
#include <zlib.h>

#include "lockstep/train/rank_peer_group.h"
#include "support/data_door.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"
#include "support/tiny_run.h"

namespace lockstep::test::table_reads_test {

// Bytes that this process has got from read() and its like.
Index bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string word;
  Index bytes = 0;
  io >> word >> bytes;
  return bytes;
}

// Without what it takes to see how a file is packed, and to read the counter.
double share_of(Index read, Index bytes) {
  constexpr Index kBeside = 1000;
  return static_cast<double>(read - kBeside) / static_cast<double>(bytes);
}

class Reads : public testing::Test {
 protected:
  // Records of one time in each of six series follow on.
  static std::string records(Index first, Index count) {
    std::string text = "t,shop,item,x,city,y\n";
    for (Index i = first; i < first + count; ++i)
      text +=
          fmt::format("{},s{},i{},{}.25,town{},{}\n", i / 6, i % 2, i / 2 % 3, i * 7919 % 1009, i % 5, i % 3);
    return text;
  }
  Index write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
    return std::ssize(text);
  }

  // How many times over the sets that the keys name are read until they are loaded, by so many ranks. Each
  // reads on behind the end of its share, which is left out.
  double times(const std::string& keys, Index bytes, int ranks = 1, const std::string& schema = "") {
    const Index before = bytes_read();
    run_thread_ranks(ranks, [&](Communicator& comm) {
      RankPeerGroup peers(comm);
      const DataDoor door = this->door(keys, peers);
      const Opened opened = door.open(schema);
      if (comm.rank() == 0) schema_ = opened.schema;
    });
    return share_of(bytes_read() - before - (ranks - 1) * kBehind, bytes);
  }
  DataDoor door(const std::string& keys, PeerGroup& peers) const {
    Config config;
    set_keys(config, keys);
    return {config.data, 1, peers};
  }

  static constexpr Index kRecords = 60'000;
  static constexpr Index kBehind = 4 * (Index{64} << 10);  // of four passes
  TemporaryDirectory directory_;
  std::string schema_;
};

TEST_F(Reads, ATableIsReadThreeTimesOverWhateverIsHeldBack) {
  const Index bytes = write("t.csv", records(0, kRecords));
  const std::string table = fmt::format("data.train={}; data.label=y; ", directory_ / "t.csv");
  for (const char* parts :
       {"", "data.validation=share(0.1)", "data.validation=stratified(0.1)", "data.validation=time(t, 0.1)",
        "data.validation=group(shop, 0.4); data.test_part=stratified(0.2)",
        "data.validation=fold(1/3, by = group(item))"}) {
    EXPECT_LE(times(table + parts, bytes), 3.0) << parts;
    EXPECT_LE(times(table + parts, bytes, 2), 3.0) << parts << " on two ranks";
    EXPECT_LE(times(table + parts, bytes, 1, schema_), 3.0) << parts << " by a schema";
  }
  EXPECT_LE(times(table + "data.numeric=t,x; data.categorical=shop,item,city,y", bytes), 2.0)
      << "nothing has to be found out";
}

TEST_F(Reads, AForecastReadsItsTableThreeTimesOverWithAnyNumberOfSeries) {
  const Index bytes = write("t.csv", records(0, kRecords));
  const std::string table = fmt::format(
      "data.train={}; data.label=y; data.time=t; data.window=5; data.horizon=2; ", directory_ / "t.csv");
  for (const char* parts :
       {"data.series=shop,item", "data.series=shop,item; data.validation=time(t, 0.1)",
        "data.series=shop,item; data.validation=time(t, 0.1); data.test_part=time(t, 0.1)",
        "data.series=item,shop; data.validation=group(item, 0.3)"})
    EXPECT_LE(times(table + parts, bytes), 3.0) << parts;
}

TEST_F(Reads, SeveralFilesAndAPackedOneAreReadNoMoreOften) {
  Index bytes = 0;
  std::filesystem::create_directory(directory_ / "parts");
  for (int i = 0; i < 3; ++i) bytes += write(fmt::format("parts/{}.csv", i), records(i * 30'000, 30'000));
  const std::string keys = "data.train={}; data.label=y; data.validation=share(0.1)";
  EXPECT_LE(times(fmt::format(fmt::runtime(keys), directory_ / "parts"), bytes), 3.0);
  const std::string packed = directory_ / "t.csv.gz";
  const std::string text = records(0, kRecords);
  gzFile file = gzopen(packed.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  EXPECT_LE(
      times(fmt::format(fmt::runtime(keys), packed), static_cast<Index>(std::filesystem::file_size(packed))),
      3.0);
}

TEST_F(Reads, AFileToPredictFromIsReadTwice) {
  const Index bytes = write("t.csv", records(0, kRecords));
  const DataDoor door = this->door(fmt::format("data.train={}; data.label=y", directory_ / "t.csv"), alone());
  const std::string schema = door.open().schema;
  const Index before = bytes_read();
  lines_of(*door.open_input("", schema), alone());
  EXPECT_LE(share_of(bytes_read() - before, bytes), 2.0);
}

}  // namespace lockstep::test::table_reads_test
