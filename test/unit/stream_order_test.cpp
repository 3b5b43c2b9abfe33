// The order of streamed records: each record once in an epoch, a function of (seed, epoch, replica) alone,
// random enough, and made of few reads.
#include "lockstep/data/stream_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "lockstep/base/errors.h"
#include "support/error_text.h"
#include "support/numbered_source.h"

namespace lockstep {
namespace {

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
  std::vector<Index> ids;
  std::vector<Index> all;
  for (Index step = 0; step < sampler.epoch().steps; ++step) {
    sampler.ids(epoch * sampler.epoch().steps + step, replica, ids);
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

TEST(StreamOrder, EachRecordComesOnceInAnEpochWhateverTheSizes) {
  for (const Index rows : {1, 10, 97, 400}) {
    for (const Index replicas : {1, 3, 8}) {
      for (const Index chunk : {1, 7, 1000}) {
        for (const Index window : {1, 20, 1000}) {
          for (const Reshuffle reshuffle : {Reshuffle::kShard, Reshuffle::kGlobal}) {
            SamplingOptions sampling = options(rows, replicas, chunk, window);
            sampling.reshuffle = reshuffle;
            const auto sampler = make_sampler(sampling);
            for (const Index epoch : {0, 1, 5}) {
              std::set<Index> seen;
              for (Index replica = 0; replica < replicas; ++replica) {
                for (const Index id : epoch_ids(*sampler, epoch, replica)) {
                  EXPECT_TRUE(seen.insert(id).second);
                  EXPECT_TRUE(sampler->replicas_of(id).contains(replica));
                }
              }
              EXPECT_EQ(static_cast<Index>(seen.size()), rows);
            }
          }
        }
      }
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
  for (Index step = 0; step < steps; ++step) {
    for (Index replica = 0; replica < 4; ++replica) forwards->ids(step, replica, seen[{step, replica}]);
  }
  std::vector<Index> ids;
  for (Index step = steps; step-- > 0;) {
    for (Index replica = 4; replica-- > 0;) {
      backwards->ids(step, replica, ids);
      EXPECT_EQ(ids, (seen[{step, replica}]));
    }
  }
}

TEST(StreamOrder, SeedsAndEpochsDiffer) {
  SamplingOptions sampling = options(300, 2, 10, 50);
  const auto one = make_sampler(sampling);
  sampling.seed = 2;
  const auto two = make_sampler(sampling);
  EXPECT_NE(epoch_ids(*one, 0, 0), epoch_ids(*two, 0, 0));
  EXPECT_NE(epoch_ids(*one, 0, 0), epoch_ids(*one, 1, 0));
}

// Sorted by class, every window of a replica holds records from many places.
TEST(StreamOrder, AWindowMixesManyPlacesOfASortedFile) {
  const auto sampler = make_sampler(options(10'000, 2, 50, 1000));
  const std::vector<Index> ids = epoch_ids(*sampler, 0, 1);
  for (std::size_t begin = 0; begin + 1000 <= ids.size(); begin += 1000) {
    std::set<Index> tenths;
    for (std::size_t i = begin; i < begin + 1000; ++i) tenths.insert(ids[i] / 1000);
    EXPECT_GE(tenths.size(), 5U);
  }
}

// What comes within a window is not in the order of the file.
TEST(StreamOrder, RecordsAreMixedWithinAWindow) {
  const auto sampler = make_sampler(options(1000, 1, 1000, 1000));
  const std::vector<Index> ids = epoch_ids(*sampler, 0, 0);
  Index ascending = 0;
  for (std::size_t i = 1; i < ids.size(); ++i) ascending += ids[i] > ids[i - 1] ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(ascending), 500, 80);
}

TEST(StreamOrder, FilesAndChunksThatFollowOnStayTogether) {
  for (const bool files : {true, false}) {
    std::vector<Chunk> chunks;
    for (Index file = 0; file < 20; ++file) {
      for (Index part = 0; part < 5; ++part) {
        const Index begin = file * 50 + part * 10;
        chunks.push_back({{begin, begin + 10}, !files && part > 0, files ? file : 0});
      }
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

// "global" deals the records anew in each epoch; "shard" leaves each replica its own.
TEST(StreamOrder, OnlyAGlobalReshuffleDealsTheRecordsAnew) {
  for (const Reshuffle reshuffle : {Reshuffle::kShard, Reshuffle::kGlobal}) {
    SamplingOptions sampling = options(400, 2, 10, 20);
    sampling.reshuffle = reshuffle;
    const auto sampler = make_sampler(sampling);
    for (Index replica = 0; replica < 2; ++replica) {
      const auto records = [&](Index epoch) {
        const std::vector<Index> ids = epoch_ids(*sampler, epoch, replica);
        return std::set<Index>(ids.begin(), ids.end());
      };
      EXPECT_EQ(records(0) == records(1), reshuffle == Reshuffle::kShard);
      EXPECT_EQ(records(1) == records(2), reshuffle == Reshuffle::kShard);
    }
  }
}

// How many orders there are over three epochs of every replica, where each walks all records.
std::size_t count_orders(SamplingOptions sampling) {
  sampling.mode = DataMode::kFull;
  const auto sampler = make_sampler(sampling);
  std::set<std::vector<Index>> orders;
  for (const Index epoch : {0, 1, 2}) {
    for (Index replica = 0; replica < sampling.replicas; ++replica) {
      orders.insert(epoch_ids(*sampler, epoch, replica));
    }
  }
  return orders.size();
}

// With a window of one record, what is left is the order of the chunks.
TEST(StreamOrder, ChunksComeInAnotherOrderInEachEpochAndReplica) {
  EXPECT_EQ(count_orders(options(400, 2, 10, 1)), 6U);
}

// With one chunk and one window, what is left is the order within the window.
TEST(StreamOrder, AWindowIsMixedAnewInEachEpochAndReplica) {
  EXPECT_EQ(count_orders(options(100, 3, 100, 100)), 9U);
}

// "auto" keeps files whole from four for each replica on: less are read in pieces of all.
TEST(StreamOrder, FourFilesForEachReplicaAreKeptWhole) {
  for (const Index files : {7, 8}) {
    std::vector<Chunk> chunks;
    for (Index i = 0; i < files * 10; ++i) chunks.push_back({{i * 10, i * 10 + 10}, false, i / 10});
    SamplingOptions sampling = options(files * 100, 2, 1, 1);
    sampling.stream->chunks = std::make_shared<const std::vector<Chunk>>(chunks);
    sampling.stream->shard_by = ShardBy::kAuto;
    const StreamOrder order(sampling);
    std::set<Index> read;
    for (const Range piece : order.walk(0, 0)->pieces) read.insert(piece.begin / 100);
    EXPECT_EQ(read.size() == 4, files == 8) << read.size();
  }
}

TEST(StreamOrder, ContiguousShardsAreRunsAndStridesAreRefused) {
  SamplingOptions sampling = options(100, 4, 10, 5);
  sampling.shard_order = ShardOrder::kContiguous;
  const auto sampler = make_sampler(sampling);
  for (const Index id : epoch_ids(*sampler, 2, 1)) EXPECT_TRUE((Range{25, 50}).contains(id));
  sampling.shard_order = ShardOrder::kStrided;
  expect_parts(error_text<ConfigError>([&] { make_sampler(sampling); }),
               {"data.shard_order = strided", "data.memory = load"});
}

}  // namespace
}  // namespace lockstep
