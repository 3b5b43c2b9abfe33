// The order of streamed records: each record once in an epoch, a function of (seed, epoch, replica) alone and
// another for each of these, random enough, and made of few reads.
#include "lockstep/data/loading/streamed_records.h"

#include "support/numbered_source.h"

namespace lockstep::stream_order_test {

using namespace test;

SamplingOptions options(Index rows, Index replicas, Index chunk, Index window) {
  return {
      .rows = rows,
      .replicas = replicas,
      .global_batch = std::max<Index>(replicas, 10),
      .stream = StreamOptions{.chunks = std::make_shared<const std::vector<Chunk>>(chunks_of(rows, chunk)),
                              .shard_by = ShardBy::kRecord,
                              .window = window}};
}

std::vector<Index> epoch_ids(const Sampler& sampler, Index epoch, Index replica) {
  std::vector<Index> ids, all;
  for (Index step = 0; step < sampler.epoch().steps; ++step) {
    sampler.ids(epoch * sampler.epoch().steps + step, replica, ids);
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

std::set<Index> shard(const Sampler& sampler, Index epoch, Index replica) {
  const std::vector<Index> ids = epoch_ids(sampler, epoch, replica);
  return {ids.begin(), ids.end()};
}

TEST(StreamOrder, EachRecordComesOnceInAnEpochWhateverTheSizes) {
  for (const Index rows : {1, 10, 97, 400})
    for (const Index replicas : {1, 3, 8})
      for (const Index chunk : {1, 7, 1000})
        for (const Index window : {1, 20, 1000})
          for (const Reshuffle reshuffle : {Reshuffle::kShard, Reshuffle::kGlobal}) {
            SamplingOptions sampling = options(rows, replicas, chunk, window);
            sampling.reshuffle = reshuffle;
            const auto sampler = make_sampler(sampling);
            for (const Index epoch : {0, 1, 5}) {
              std::set<Index> seen;
              for (Index replica = 0; replica < replicas; ++replica)
                for (const Index id : epoch_ids(*sampler, epoch, replica)) {
                  EXPECT_TRUE(seen.insert(id).second);
                  EXPECT_TRUE(sampler->replicas_of(id).contains(replica));
                }
              EXPECT_EQ(std::ssize(seen), rows);
            }
          }
}

TEST(StreamOrder, InFullModeEveryReplicaWalksAllInItsOwnOrder) {
  SamplingOptions sampling = options(100, 3, 7, 20);
  sampling.mode = DataMode::kFull;
  const auto sampler = make_sampler(sampling);
  std::set<std::vector<Index>> orders;
  for (Index replica = 0; replica < 3; ++replica) {
    const std::vector<Index> ids = epoch_ids(*sampler, 1, replica);
    EXPECT_EQ(std::set<Index>(ids.begin(), ids.end()).size(), 100U);
    orders.insert(ids);
  }
  EXPECT_EQ(orders.size(), 3U);
}

TEST(StreamOrder, AnyStepComesOutTheSameInAnyOrder) {
  const SamplingOptions sampling = options(203, 4, 9, 16);
  const auto forwards = make_sampler(sampling);
  const auto backwards = make_sampler(sampling);
  std::map<std::pair<Index, Index>, std::vector<Index>> seen;
  const Index steps = 3 * forwards->epoch().steps;
  for (Index step = 0; step < steps; ++step)
    for (Index replica = 0; replica < 4; ++replica) forwards->ids(step, replica, seen[{step, replica}]);
  std::vector<Index> ids;
  for (Index step = steps; step-- > 0;)
    for (Index replica = 4; replica-- > 0;) {
      backwards->ids(step, replica, ids);
      EXPECT_EQ(ids, (seen[{step, replica}]));
    }
}

// data.reshuffle = shard.
TEST(StreamOrder, AReplicaKeepsItsSamplesForTheWholeRun) {
  const auto sampler = make_sampler(options(300, 3, 10, 50));
  for (Index replica = 0; replica < 3; ++replica)
    for (const Index epoch : {1, 2, 7}) {
      EXPECT_EQ(shard(*sampler, epoch, replica), shard(*sampler, 0, replica));
      EXPECT_NE(epoch_ids(*sampler, epoch, replica), epoch_ids(*sampler, 0, replica));
    }
}

// data.reshuffle = global.
TEST(StreamOrder, DealtAnewAReplicaHasOtherSamplesInEachEpoch) {
  SamplingOptions sampling = options(300, 3, 10, 50);
  const auto kept = make_sampler(sampling);
  sampling.reshuffle = Reshuffle::kGlobal;
  const auto anew = make_sampler(sampling);
  for (Index replica = 0; replica < 3; ++replica) {
    EXPECT_EQ(shard(*anew, 0, replica), shard(*kept, 0, replica));
    std::set<std::set<Index>> shards;
    for (Index epoch = 0; epoch < 5; ++epoch) shards.insert(shard(*anew, epoch, replica));
    EXPECT_EQ(shards.size(), 5U);
  }
  EXPECT_EQ(anew->replicas_of(5), (Range{0, 3}));
}

TEST(StreamOrder, EachSeedDealsShardsOfItsOwn) {
  SamplingOptions sampling = options(300, 3, 10, 50);
  std::set<std::set<Index>> shards;
  for (sampling.seed = 1; sampling.seed <= 5; ++sampling.seed)
    shards.insert(shard(*make_sampler(sampling), 0, 1));
  EXPECT_EQ(shards.size(), 5U);
}

// Calls visit(order, epoch, replica) where all have the same records to put in order.
void visit_orders(SamplingOptions sampling,
                  const std::function<void(const SamplingOptions&, Index, Index)>& visit) {
  sampling.mode = DataMode::kFull;
  sampling.shard_order = ShardOrder::kContiguous;
  for (sampling.seed = 1; sampling.seed <= 2; ++sampling.seed)
    for (Index epoch = 0; epoch < 4; ++epoch)
      for (Index replica = 0; replica < sampling.replicas; ++replica) visit(sampling, epoch, replica);
}

TEST(StreamOrder, PiecesComeInAnotherOrderInEachEpochOfEachReplica) {
  std::set<std::vector<Index>> orders;
  visit_orders(options(200, 3, 10, 1), [&](const SamplingOptions& sampling, Index epoch, Index replica) {
    const auto walk = StreamOrder(sampling).walk(epoch, replica);
    std::vector<Index> begins;
    for (const Range& piece : walk->pieces) begins.push_back(piece.begin);
    EXPECT_EQ(begins.size(), 20U);
    EXPECT_FALSE(std::ranges::is_sorted(begins));
    EXPECT_TRUE(orders.insert(begins).second) << "epoch " << epoch << ", replica " << replica;
  });
}

// Of a single chunk, so that a window is a run of the file.
TEST(StreamOrder, SamplesComeInAnotherOrderInEachWindowOfEachEpochAndReplica) {
  constexpr Index kWindow = 20;
  std::set<std::vector<Index>> orders;
  visit_orders(options(60, 3, 60, kWindow), [&](const SamplingOptions& sampling, Index epoch, Index replica) {
    const std::vector<Index> ids = epoch_ids(*make_sampler(sampling), epoch, replica);
    for (Index begin = 0; begin < std::ssize(ids); begin += kWindow) {
      std::vector<Index> order(ids.begin() + begin, ids.begin() + begin + kWindow);
      for (Index& id : order) id -= begin;
      EXPECT_EQ(*std::ranges::min_element(order), 0);
      EXPECT_EQ(*std::ranges::max_element(order), kWindow - 1);
      EXPECT_FALSE(std::ranges::is_sorted(order));
      EXPECT_TRUE(orders.insert(order).second) << "epoch " << epoch << ", replica " << replica;
    }
  });
}

// So that a buffer of data.shuffle_buffer records is enough.
TEST(StreamOrder, AWindowHoldsTheNextRecordsOfTheWalk) {
  const SamplingOptions sampling = options(203, 2, 9, 16);
  const auto sampler = make_sampler(sampling);
  const StreamOrder order(sampling);
  for (const Index epoch : {0, 1}) {
    const std::vector<Index> ids = epoch_ids(*sampler, epoch, 1);
    const auto walk = order.walk(epoch, 1);
    ASSERT_EQ(std::ssize(ids), walk->size());
    for (Index begin = 0; begin < walk->size(); begin += 16) {
      const Index end = std::min<Index>(begin + 16, walk->size());
      std::set<Index> expected;
      for (Index k = begin; k < end; ++k) expected.insert(walk->record(k));
      EXPECT_EQ(std::set<Index>(ids.begin() + begin, ids.begin() + end), expected);
    }
  }
}

// Sorted by class, every window of a replica holds records from many places.
TEST(StreamOrder, AWindowMixesManyPlacesOfASortedFile) {
  const std::vector<Index> ids = epoch_ids(*make_sampler(options(10'000, 2, 50, 1000)), 0, 1);
  for (std::size_t begin = 0; begin + 1000 <= ids.size(); begin += 1000) {
    std::set<Index> tenths;
    for (std::size_t i = begin; i < begin + 1000; ++i) tenths.insert(ids[i] / 1000);
    EXPECT_GE(tenths.size(), 5U);
  }
}

// What comes within a window is not in the order of the file.
TEST(StreamOrder, RecordsAreMixedWithinAWindow) {
  const std::vector<Index> ids = epoch_ids(*make_sampler(options(1000, 1, 1000, 1000)), 0, 0);
  Index ascending = 0;
  for (std::size_t i = 1; i < ids.size(); ++i) ascending += ids[i] > ids[i - 1] ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(ascending), 500, 80);
}

TEST(StreamOrder, FilesAndChunksThatFollowOnStayTogether) {
  for (const bool files : {true, false}) {
    std::vector<Chunk> chunks;
    for (Index file = 0; file < 20; ++file)
      for (Index part = 0; part < 5; ++part) {
        const Index begin = file * 50 + part * 10;
        chunks.push_back({{begin, begin + 10}, !files && part > 0, files ? file : 0});
      }
    SamplingOptions sampling = options(1000, 2, 1, 1);
    sampling.stream->chunks = std::make_shared<const std::vector<Chunk>>(chunks);
    sampling.stream->shard_by = files ? ShardBy::kAuto : ShardBy::kRecord;
    const StreamOrder order(sampling);
    const auto walk = order.walk(0, 1);
    EXPECT_EQ(walk->size(), 500);
    std::set<Index> begun;
    for (std::size_t i = 0; i < walk->pieces.size(); ++i) {
      const bool goes_on = i > 0 && walk->pieces[i].begin == walk->pieces[i - 1].end;
      if (goes_on) continue;
      EXPECT_TRUE(begun.insert(walk->pieces[i].begin / 50).second);
    }
    EXPECT_LE(begun.size(), 11U);
  }
}

// Files of three chunks of ten records.
SamplingOptions files(Index count, Index replicas, ShardBy by) {
  std::vector<Chunk> chunks = chunks_of(count * 30, 10);
  for (Chunk& chunk : chunks) chunk.file = chunk.records.begin / 30;
  SamplingOptions sampling = options(count * 30, replicas, 1, 1);
  sampling.stream->chunks = std::make_shared<const std::vector<Chunk>>(chunks);
  sampling.stream->shard_by = by;
  return sampling;
}

TEST(StreamOrder, FilesStayWholeByThemselvesIfThereAreFourForEachReplica) {
  const auto pieces = [](Index count, Index replicas, ShardBy by) {
    return StreamOrder(files(count, replicas, by)).walk(0, 0)->pieces;
  };
  for (const Index replicas : {1, 2, 5})
    for (const Index count : {4 * replicas - 1, 4 * replicas, 4 * replicas + 1}) {
      const auto by_file = pieces(count, replicas, ShardBy::kFile);
      const auto by_record = pieces(count, replicas, ShardBy::kRecord);
      EXPECT_NE(by_file, by_record);
      EXPECT_EQ(pieces(count, replicas, ShardBy::kAuto), count >= 4 * replicas ? by_file : by_record)
          << count << " files, " << replicas << " replicas";
    }
}

TEST(StreamOrder, OneFileIsCutIntoEvenRuns) {
  SamplingOptions sampling = options(60, 5, 10, 1);
  sampling.stream->shard_by = ShardBy::kFile;
  const StreamOrder order(sampling);
  for (Index replica = 0; replica < 5; ++replica) {
    const auto walk = order.walk(0, replica);
    EXPECT_EQ(walk->size(), 12);
    EXPECT_EQ(walk->pieces.back().end - walk->pieces.front().begin, 12);
  }
}

TEST(StreamOrder, OnlyAtTheBordersOfShardsIsAChunkReadTwice) {
  for (const Index replicas : {1, 3, 8}) {
    const StreamOrder order(options(400, replicas, 7, 20));
    Index pieces = 0;
    for (Index replica = 0; replica < replicas; ++replica)
      pieces += std::ssize(order.walk(1, replica)->pieces);
    EXPECT_LE(pieces, divide_up(400, 7) + replicas - 1);
  }
}

TEST(StreamOrder, ContiguousShardsAreRuns) {
  SamplingOptions sampling = options(100, 4, 10, 5);
  sampling.shard_order = ShardOrder::kContiguous;
  const auto sampler = make_sampler(sampling);
  for (const Index id : epoch_ids(*sampler, 2, 1)) EXPECT_TRUE((Range{25, 50}).contains(id));
}

}  // namespace lockstep::stream_order_test
