// Streamed records are the records, in bounded memory; what cannot be read is told to who asks for it.
#include "lockstep/data/loading/streamed_records.h"

#include "lockstep/base/errors.h"
#include "support/error_text.h"
#include "support/loaded.h"
#include "support/numbered_source.h"

namespace lockstep::streamed_records_test {

using namespace test;

SamplingOptions sampling_of(const RecordSource& source, Index replicas, Index window) {
  const std::span<const Chunk> chunks = source.chunks();
  return {.rows = source.info().rows,
          .replicas = replicas,
          .global_batch = 12,
          .stream = StreamOptions{
              .chunks = std::make_shared<const std::vector<Chunk>>(chunks.begin(), chunks.end()),
              .shard_by = ShardBy::kRecord,
              .window = window}};
}

void expect_right(const Records& records, const RecordSource& source, const std::vector<Index>& ids) {
  const Gathered found = gather(records, source.info(), ids);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(found.features[2 * i + 1], static_cast<Scalar>(ids[i]) + 0.5F);
    EXPECT_EQ(found.targets[i], -static_cast<Scalar>(ids[i]));
  }
}

TEST(StreamedRecords, AreTheRecordsInTheMemoryThatWasStated) {
  const NumberedSource source(chunks_of(2000, 10));
  for (const Range replicas : {Range{0, 4}, Range{1, 3}, Range{2, 3}}) {
    const SamplingOptions sampling = sampling_of(source, 4, 30);
    const auto sampler = make_sampler(sampling);
    const StreamedRecords records(source, {}, sampling, replicas);
    const Index most = stream_bytes(source.info(), sampling, replicas.size());
    EXPECT_LT(most, 2000 * source.info().record_bytes / 3);
    std::vector<Index> ids;
    for (Index step = 0; step < 3 * sampler->epoch().steps; ++step) {
      records.expect(step);
      for (Index replica = replicas.begin; replica < replicas.end; ++replica) {
        sampler->ids(step, replica, ids);
        expect_right(records, source, ids);
        EXPECT_LE(records.bytes(), most);
      }
    }
  }
}

// Once all that a window needs is read, two windows are held: the stated memory, and little more.
TEST(StreamedRecords, TheStatedMemoryIsCloseToWhatIsHeld) {
  const NumberedSource source(chunks_of(4000, 10));
  for (const Index replicas : {1, 2}) {
    const SamplingOptions sampling = sampling_of(source, 4, 200);
    const StreamedRecords records(source, {}, sampling, {0, replicas});
    const Index most = stream_bytes(source.info(), sampling, replicas);
    const Index windows = replicas * 2 * 200 * source.info().record_bytes;
    Index held = 0;
    for (Index step = 0; step < make_sampler(sampling)->epoch().steps; ++step) {
      records.expect(step);
      records.wait();
      held = std::max(held, records.bytes());
      EXPECT_LE(records.bytes(), most);
    }
    EXPECT_GE(held, windows);
    EXPECT_LE(most - held, (3 * replicas + 4) * 10 * source.info().record_bytes);
  }
}

// The largest chunk has 10 of the 2,000 records.
TEST(StreamedRecords, ARankKeepsFourChunksOutOfTurnHoweverManyReplicasItHosts) {
  const NumberedSource source(chunks_of(2000, 10));
  const SamplingOptions sampling = sampling_of(source, 4, 30);
  const auto records = [&](Index replicas) {
    return stream_bytes(source.info(), sampling, replicas) / source.info().record_bytes;
  };
  const Index of_a_replica = records(2) - records(1);
  EXPECT_EQ(of_a_replica, 2 * 30 + 3 * 10) << "the windows of now and next, and the chunks at their ends";
  for (const Index replicas : {1, 2, 4}) EXPECT_EQ(records(replicas) - replicas * of_a_replica, 4 * 10);
  EXPECT_EQ(records(100), 2000) << "never more than there are";
}

// But for chunks that two windows or two replicas share.
TEST(StreamedRecords, ReadAChunkOnceInAnEpoch) {
  const NumberedSource source(chunks_of(2000, 10));
  const SamplingOptions sampling = sampling_of(source, 2, 100);
  const auto sampler = make_sampler(sampling);
  {
    const StreamedRecords records(source, {}, sampling, {0, 2});
    std::vector<Index> ids;
    for (Index step = 0; step < sampler->epoch().steps; ++step) {
      records.expect(step);
      for (Index replica = 0; replica < 2; ++replica) {
        sampler->ids(step, replica, ids);
        expect_right(records, source, ids);
      }
    }
  }
  Index reads = 0;
  for (const Index chunk : source.reads()) reads += chunk;
  EXPECT_LE(reads, 200 + 30);  // and the first window of the next epoch
}

TEST(StreamedRecords, AnyRecordIsThereAtAnyTimeFromSeveralThreads) {
  const NumberedSource source(chunks_of(500, 7));
  const StreamedRecords records(source, {}, sampling_of(source, 2, 20), {0, 2});
  std::vector<std::jthread> threads;
  for (Index thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (Index i = 0; i < 200; ++i) {
        if (i % 20 == 0) records.expect(i / 2);
        expect_right(records, source, {(i * 31 + thread) % 500, (i * 17) % 500});
      }
    });
  }
}

TEST(StreamedRecords, AutoStreamsWhatIsLargerThanTheLimit) {
  const NumberedSource source(chunks_of(1 << 17, 1000));  // 1 MiB
  DataOptions options;
  EXPECT_FALSE(is_streamed(options, source.info()));
  options.memory_limit = 1.0 / 1024;
  EXPECT_FALSE(is_streamed(options, source.info()));
  options.memory_limit = 0.999 / 1024;
  EXPECT_TRUE(is_streamed(options, source.info()));
  options.memory = MemoryMode::kLoad;
  EXPECT_FALSE(is_streamed(options, source.info()));
  options.memory = MemoryMode::kStream;
  options.memory_limit = 4;
  EXPECT_TRUE(is_streamed(options, source.info()));
}

TEST(StreamedRecords, WhatIsExpectedIsThereAfterWaiting) {
  const NumberedSource good(chunks_of(500, 10));
  const StreamedRecords records(good, {}, sampling_of(good, 1, 50), {0, 1});
  records.expect(0);
  records.wait();
  EXPECT_GE(records.rows(), 100);
  const NumberedSource bad(chunks_of(500, 500), 123);
  const StreamedRecords failing(bad, {}, sampling_of(bad, 1, 50), {0, 1});
  failing.expect(0);
  expect_parts(error_text<DataError>([&] { failing.wait(); }), {"record 123 is bad"});
}

TEST(StreamedRecords, WhatCannotBeReadIsTold) {
  const NumberedSource source(chunks_of(500, 10), 123);
  const StreamedRecords records(source, {}, sampling_of(source, 1, 20), {0, 1});
  expect_right(records, source, {5, 7});
  expect_parts(error_text<DataError>([&] { gather(records, source.info(), {120}); }), {"record 123 is bad"});
  expect_right(records, source, {5, 7});
}

}  // namespace lockstep::streamed_records_test
