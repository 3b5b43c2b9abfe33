// Loading by all ranks together: every chunk is read by one rank, every record gets to those who need it, and
// what fails on one rank fails on all.
#include "lockstep/data/loading/load_records.h"

#include "data/loading/loaded_records.h"
#include "lockstep/base/file.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/loading/sampler.h"
#include "lockstep/train/rank_peer_group.h"
#include "support/error_text.h"
#include "support/idx_files.h"
#include "support/loaded.h"
#include "support/note.h"
#include "support/numbered_source.h"
#include "support/ranks.h"
#include "support/temporary_directory.h"

namespace lockstep::load_records_test {
namespace {

using namespace test;

std::unique_ptr<RecordSource> open_idx(const IdxPair& files) {
  DataOptions options;
  options.format = "idx";
  options.train = files.images;
  options.train_labels = files.labels;
  return choose_format(options).open({options, Split::kTrain, 1, alone()});
}

void expect_records(const Records& records, const RecordSource& source, const std::vector<Index>& ids) {
  EXPECT_EQ(records.rows(), std::ssize(ids));
  const Gathered found = gather(records, source.info(), ids);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(found.features[2 * i], static_cast<Scalar>(ids[i]));
    EXPECT_EQ(found.targets[i], -static_cast<Scalar>(ids[i]));
  }
}

TEST(LoadRecords, EveryChunkIsReadOnceAndEveryRecordComesToItsOwner) {
  on_ranks([](Communicator& comm) {
    RankPeerGroup peers(comm);
    for (const Index size : {1, 7, 100}) {
      const NumberedSource source(chunks_of(100, size));
      const auto owner = [&](Index id) { return id * 7 % comm.size(); };
      std::vector<Index> mine;
      for (Index id = 0; id < 100; ++id) {
        if (owner(id) == comm.rank()) mine.push_back(id);
      }
      const auto records = load_records(source, {}, needed_by_owner(owner, std::ssize(mine)), peers);
      std::ranges::reverse(mine);
      expect_records(*records, source, mine);
      std::vector<Index> reads = source.reads();
      comm.all_reduce_sum(as_buffer(std::span(reads)));
      EXPECT_EQ(reads, std::vector<Index>(reads.size(), 1));
    }
  });
}

TEST(LoadRecords, NothingIsSharedWhereTheMemoryIsNotToBeHad) {
  on_ranks([](Communicator& comm) {
    RankPeerGroup peers(comm);
    EXPECT_EQ(peers.share_on_node(Index{1} << 50), nullptr);
    EXPECT_EQ(peers.share_on_node(1000) != nullptr, comm.size() > 1);
  });
}

// All of them in one batch, of which 256 are gathered at a time: each keeps its own target.
TEST(LoadRecords, WhatEveryoneNeedsComesToEveryone) {
  on_ranks([](Communicator& comm) {
    RankPeerGroup peers(comm);
    const Index size = comm.size();
    for (const Index rows : {50, 1000}) {
      const NumberedSource source(chunks_of(rows, rows / 16));
      std::vector<Index> all(static_cast<std::size_t>(rows));
      std::iota(all.begin(), all.end(), Index{0});
      for (const bool everyone : {false, true}) {
        const RecordNeeds needs{.ranks =
                                    [size](Index) {
                                      return Range{0, size};
                                    },
                                .count = rows,
                                .everyone = everyone};
        const auto records = load_records(source, {}, needs, peers);
        expect_records(*records, source, all);
        EXPECT_EQ(dynamic_cast<const LoadedRecords&>(*records).is_shared(), everyone && size > 1);
        comm.barrier();
      }
    }
  });
}

// What a stage of a model needs that reads no features, and what one needs that is in the middle.
TEST(LoadRecords, APartOfEachRecordTakesLess) {
  const TemporaryDirectory directory;
  const auto source = open_idx(write_idx_pair(directory / "part", {.rows = 300}));
  std::vector<Index> all(300);
  std::iota(all.begin(), all.end(), Index{0});
  on_ranks([&](Communicator& comm) {
    RankPeerGroup peers(comm);
    const Index size = comm.size();
    for (const bool everyone : {false, true}) {
      RecordNeeds needs{.ranks =
                            [size](Index) {
                              return Range{0, size};
                            },
                        .count = 300,
                        .everyone = everyone};
      const auto whole = load_records(*source, {}, needs, peers);
      needs.part = RecordPart::kTargets;
      Fingerprint fingerprint;
      const auto targets = load_records(*source, {}, needs, peers, &fingerprint);
      EXPECT_EQ(gather(*targets, source->info(), all).targets, gather(*whole, source->info(), all).targets);
      EXPECT_EQ(targets->rows(), 300);
      EXPECT_EQ(whole->bytes() - targets->bytes(), 300 * 4 * 3) << "the features are 12 bytes";
      EXPECT_EQ(fingerprint.kind, Fingerprint::kRecords);
      needs.part = RecordPart::kNothing;
      const auto nothing = load_records(*source, {}, needs, peers);
      EXPECT_EQ(nothing->rows(), 0);
      EXPECT_EQ(nothing->bytes(), 0);
      comm.barrier();
    }
  });
}

// More than the rounds of an exchange take at once.
TEST(LoadRecords, ManyRoundsAndUnevenSharesBringTheSame) {
  on_ranks([](Communicator& comm) {
    RankPeerGroup peers(comm);
    std::vector<Chunk> chunks = chunks_of(2'500'000, 40'000);
    chunks.push_back({{2'500'000, 4'000'000}});
    const NumberedSource source(std::move(chunks));
    const Index rows = source.info().rows;
    const Index last = comm.size() - 1;
    const auto records = load_records(
        source, {}, needed_by_owner([=](Index) { return last; }, comm.rank() == last ? rows : 0), peers);
    EXPECT_EQ(records->rows(), comm.rank() == last ? rows : 0);
    if (comm.rank() < last) return;
    EXPECT_EQ(gather(*records, source.info(), {rows - 1}).targets[0], -static_cast<Scalar>(rows - 1));
  });
}

TEST(LoadRecords, ChunksThatFollowOnAreReadByOneRank) {
  for (const Index ranks : {1, 2, 3, 5}) {
    std::vector<Chunk> chunks = chunks_of(90, 10, true);
    EXPECT_EQ(share_chunks(chunks, ranks).front(), (Range{0, 9}));
    for (const Index begin : {90, 180}) {
      for (const Chunk& chunk : chunks_of(90, 10, true))
        chunks.push_back({{begin + chunk.records.begin, begin + chunk.records.end}, chunk.follows_on});
    }
    const std::vector<Range> shares = share_chunks(chunks, ranks);
    Index end = 0;
    for (const Range share : shares) {
      EXPECT_EQ(share.begin, end);
      EXPECT_EQ(share.size() % 9, 0);
      end = share.end;
    }
    EXPECT_EQ(end, 27);
  }
  EXPECT_EQ(share_chunks(chunks_of(100, 1), 3), (std::vector<Range>{{0, 34}, {34, 67}, {67, 100}}));
}

TEST(LoadRecords, WhatOneRankCannotReadFailsOnAll) {
  on_ranks([](Communicator& comm) {
    RankPeerGroup peers(comm);
    for (const Index bad : {0, 57, 99}) {
      const NumberedSource source(chunks_of(100, 10), bad);
      const auto load = [&] {
        load_records(source, {}, needed_by_owner([](Index) { return 0; }, comm.rank() == 0 ? 100 : 0), peers);
      };
      expect_parts(comm.size() == 1 ? error_text<Error>(load) : error_text<AgreedError>(load),
                   {"record " + std::to_string(bad) + " is bad"});
    }
  });
}

// Whoever needs the records, however they are cut, shared and left out.
TEST(LoadRecords, TheFingerprintIsThatOfTheContent) {
  const auto of = [](Index size, const RecordNeeds& needs, PeerGroup& peers) {
    Fingerprint fingerprint;
    load_records(NumberedSource(chunks_of(101, size)), {}, needs, peers, &fingerprint);
    return fingerprint;
  };
  const Fingerprint expected = of(101, needed_by_owner([](Index) { return 0; }, 101), alone());
  EXPECT_EQ(expected.parts.size(), 3U);
  on_ranks([&](Communicator& comm) {
    RankPeerGroup peers(comm);
    const Index ranks = comm.size();
    const auto to_all = [=](Index) { return Range{0, ranks}; };
    for (const Index size : {1, 7, 101}) {
      EXPECT_EQ(of(size, {.ranks = to_all, .count = 101}, peers), expected);
      EXPECT_EQ(of(size, {.ranks = to_all, .count = 101, .everyone = true}, peers), expected);
      const Index last = comm.rank() == ranks - 1 ? 101 : 0;
      EXPECT_EQ(of(size, needed_by_owner([=](Index) { return ranks - 1; }, last), peers), expected);
      EXPECT_EQ(of(size, {.ranks = [](Index) { return Range{}; }, .count = 0}, peers), expected);
    }
  });
}

TEST(LoadRecords, SampledFilesHaveOneFingerprintOnAnyRanks) {
  const TemporaryDirectory directory;
  IdxPair files = write_idx_pair(directory / "x", {.rows = 50'000, .compressed = false});
  const auto source = open_idx(files);
  const Fingerprint expected = sample_files(*source, alone());
  EXPECT_EQ(expected.parts.size(), 2U);
  on_ranks([&](Communicator& comm) {
    RankPeerGroup peers(comm);
    EXPECT_EQ(sample_files(*source, peers), expected);
  });
}

// Ranks share the chunks of a table, and each meets some of the categories that the training data lack.
TEST(LoadRecords, UnseenCategoriesAreCountedOverAllRanks) {
  const TemporaryDirectory directory;
  DataOptions options;
  options.format = "csv";
  options.table.label = {"y"};
  options.table.chunk_kib = 1;
  options.train = directory / "train.csv";
  options.test = directory / "test.csv";
  write_file_atomically(options.train, "kind,y\nold,0\nolder,1\nold,1\n");
  std::string text = "kind,y\n";
  for (int row = 0; row < 4000; ++row) text += row % 10 == 0 ? "new,0\n" : "old,1\n";
  write_file_atomically(options.test, text);
  const FormatEntry& format = choose_format(options);
  const std::string schema = format.open({options, Split::kTrain, 1, alone()})->schema();
  on_ranks([&](Communicator& comm) {
    RankPeerGroup peers(comm);
    const auto source = format.open({options, Split::kTest, 1, peers, schema});
    ASSERT_FALSE(source->notes().empty());
    expect_told(source->notes().back());
    expect_parts(source->notes().back().text, {"column 'kind': 400 of 4,000 records have a category"});
  });
}

// Whether a field that is open is ever closed may stand in the chunk of another rank.
TEST(LoadRecords, AStrayQuoteCostsTheSameRecordOnAnyNumberOfRanks) {
  const TemporaryDirectory directory;
  DataOptions options;
  options.format = "csv";
  options.table = {.label = {"y"},
                   .skip_lines = 1,
                   .on_bad_record = OnBadRecord::kSkip,
                   .max_bad_share = 1,
                   .chunk_kib = 1};
  options.train = directory / "train.csv";
  std::string text = "a \"title\nkind,y\n";
  for (int row = 0; row < 3000; ++row) {
    const bool begins = row == 7 || row == 1500 || row == 2999;
    text += begins           ? "\"never closed,1\n"
            : row % 100 == 0 ? "\"closed\n\n\"\"later\"\"\",1\n"
            : row % 3 == 0   ? "5\" disk,0\n"
                             : "plain,1\n";
  }
  write_file_atomically(options.train, text);
  on_ranks([&](Communicator& comm) {
    RankPeerGroup peers(comm);
    const auto source = choose_format(options).open({options, Split::kTrain, 1, peers});
    EXPECT_EQ(source->info().rows, 2997);
    const auto skipped = source->skipped();
    EXPECT_EQ((std::vector<Index>{skipped.begin(), skipped.end()}), (std::vector<Index>{7, 1500, 2999}));
    ASSERT_EQ(source->rejects().size(), 3U);
    // Line 1 is the title and line 2 the header; row 0 has three lines.
    expect_parts(source->rejects().front(), {"line 12, column 1 ('kind'): found a quote that opens"});
  });
}

TEST(LoadRecords, ReplicasGetTheirShardAndServersNothing) {
  on_ranks([](Communicator& comm) {
    RankPeerGroup peers(comm);
    const Index workers = std::max(1, comm.size() - 1);
    for (const DataMode mode : {DataMode::kShard, DataMode::kFull}) {
      const auto sampler = make_sampler({.rows = 101, .replicas = 6, .global_batch = 12, .mode = mode});
      std::vector<Range> hosted;
      for (Index rank = 0; rank < workers; ++rank) hosted.push_back(split_evenly(6, workers, rank));
      hosted.resize(static_cast<std::size_t>(comm.size()));
      const NumberedSource source(chunks_of(101, 4));
      const auto records = load_records(source, {}, records_for(*sampler, hosted, comm.rank()), peers);
      std::vector<Index> mine;
      const Range replicas = at(hosted, comm.rank());
      for (Index id = 0; id < 101; ++id) {
        if (!intersect(sampler->replicas_of(id), replicas).empty()) mine.push_back(id);
      }
      expect_records(*records, source, mine);
      EXPECT_EQ(mine.empty(), replicas.empty());
    }
  });
}

}  // namespace
}  // namespace lockstep::load_records_test
