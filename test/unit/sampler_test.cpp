#include "lockstep/data/loading/sampler.h"

#include "lockstep/base/errors.h"
#include "support/error_text.h"
#include "support/seed.h"

namespace lockstep::sampler_test {

using namespace test;

std::vector<Index> ids_of(const Sampler& sampler, Index step, Index replica) {
  std::vector<Index> ids = {-1, -2};
  sampler.ids(step, replica, ids);
  return ids;
}

std::string describe(const SamplingOptions& o) {
  return testing::PrintToString(std::vector<Index>{o.rows, o.replicas, o.global_batch,
                                                   o.mode == DataMode::kFull, o.tail == Tail::kDrop}) +
         " = rows, replicas, batch, full, drop";
}

// Every small combination that is allowed.
void for_each_small(const std::function<void(const SamplingOptions&)>& check) {
  for (const Index rows : {1, 2, 5, 8, 13, 24, 31})
    for (const Index replicas : {1, 2, 3, 4, 5, 8})
      for (const Index batch : {1, 2, 3, 4, 5, 7, 8, 9, 16, 50})
        for (const DataMode mode : {DataMode::kShard, DataMode::kFull})
          for (const Tail tail : {Tail::kKeep, Tail::kDrop}) {
            const Index positions = mode == DataMode::kFull ? rows * replicas : rows;
            if (batch < replicas || (tail == Tail::kDrop && positions < batch)) continue;
            const SamplingOptions options{rows, replicas, batch, mode, tail, 11};
            SCOPED_TRACE(describe(options));
            check(options);
          }
}

TEST(Sampler, GlobalBatchesAreExactAndSharesDifferByAtMostOne) {
  for_each_small([](const SamplingOptions& options) {
    const auto sampler = make_sampler(options);
    const EpochPlan& epoch = sampler->epoch();
    Index before = 0, largest = 0;
    for (Index step = 0; step < 2 * epoch.steps; ++step) {
      Index sum = 0, least = options.global_batch, most = 0;
      for (Index replica = 0; replica < options.replicas; ++replica) {
        const Index count = sampler->count(step, replica);
        EXPECT_EQ(static_cast<Index>(ids_of(*sampler, step, replica).size()), count);
        sum += count;
        least = std::min(least, count);
        most = std::max(most, count);
      }
      const bool last = step % epoch.steps == epoch.steps - 1;
      EXPECT_EQ(sum, last ? epoch.last_batch : options.global_batch);
      EXPECT_EQ(sum, sampler->step_samples(step));
      EXPECT_LE(most - least, 1);
      largest = std::max(largest, most);
      before += sum;
    }
    EXPECT_EQ(before, 2 * epoch.samples);
    EXPECT_EQ(sampler->max_count(), largest);
    EXPECT_EQ(epoch.samples, options.tail == Tail::kKeep
                                 ? epoch.positions
                                 : epoch.positions / options.global_batch * options.global_batch);
  });
}

TEST(Sampler, AnEpochSeesEachRecordAsOftenAsItsModeSays) {
  for_each_small([](const SamplingOptions& options) {
    const auto sampler = make_sampler(options);
    const EpochPlan& epoch = sampler->epoch();
    for (Index first_step = 0; first_step < 2 * epoch.steps; first_step += epoch.steps) {
      std::map<Index, Index> seen;
      for (Index replica = 0; replica < options.replicas; ++replica) {
        std::set<Index> seen_here;
        for (Index step = first_step; step < first_step + epoch.steps; ++step)
          for (const Index id : ids_of(*sampler, step, replica)) {
            EXPECT_TRUE(id >= 0 && id < options.rows);
            EXPECT_TRUE(seen_here.insert(id).second) << "a replica met record " << id << " twice in an epoch";
            ++seen[id];
          }
      }
      const Index times = options.mode == DataMode::kFull ? options.replicas : 1;
      Index total = 0;
      for (const auto& [id, count] : seen) {
        EXPECT_LE(count, times);
        total += count;
      }
      EXPECT_EQ(total, epoch.samples);
      if (options.tail == Tail::kKeep) {
        EXPECT_EQ(total, options.rows * times);
      }
    }
  });
}

TEST(Sampler, ShardsAreDisjointCoverTheDataAndAreAllThatARankNeeds) {
  for_each_small([](const SamplingOptions& options) {
    if (options.tail == Tail::kDrop) return;
    const auto sampler = make_sampler(options);
    for (Index first = 0; first < options.replicas; ++first)
      for (Index end = first; end <= options.replicas; ++end) {
        std::set<Index> used;
        for (Index step = 0; step < sampler->epoch().steps; ++step)
          for (Index replica = first; replica < end; ++replica)
            for (const Index id : ids_of(*sampler, step, replica)) used.insert(id);
        EXPECT_EQ(sampler->needed({first, end}), std::ssize(used));
        for (Index id = 0; id < options.rows; ++id)
          EXPECT_EQ(!intersect(sampler->replicas_of(id), {first, end}).empty(), used.contains(id));
      }
  });
}

TEST(Sampler, AllEpochsStayInsideWhatARankNeedsWhenTheTailIsDropped) {
  const auto sampler = make_sampler({.rows = 31, .replicas = 4, .global_batch = 8, .tail = Tail::kDrop});
  std::set<Index> used;
  for (Index step = 0; step < 100 * sampler->epoch().steps; ++step)
    for (const Index id : ids_of(*sampler, step, 2)) used.insert(id);
  EXPECT_EQ(std::ssize(used), sampler->needed({2, 3}));
  for (const Index id : used) EXPECT_TRUE((sampler->replicas_of(id) == Range{2, 3}));
}

TEST(Sampler, IdsArePureInAnyOrder) {
  for (const DataMode mode : {DataMode::kShard, DataMode::kFull}) {
    const SamplingOptions options{.rows = 101, .replicas = 3, .global_batch = 10, .mode = mode};
    const auto walked = make_sampler(options);
    std::vector<std::pair<Index, Index>> questions;
    for (Index step = 0; step < 40; ++step)
      for (Index replica = 0; replica < 3; ++replica) questions.emplace_back(step, replica);
    std::map<std::pair<Index, Index>, std::vector<Index>> answers;
    for (const auto& [step, replica] : questions) answers[{step, replica}] = ids_of(*walked, step, replica);
    std::mt19937_64 random(test::seed());
    std::shuffle(questions.begin(), questions.end(), random);
    const auto jumped = make_sampler(options);
    for (const auto& [step, replica] : questions)
      EXPECT_EQ(ids_of(*jumped, step, replica), (answers[{step, replica}]));
  }
}

TEST(Sampler, EpochsReplicasAndSeedsHaveOrdersOfTheirOwn) {
  const auto order = [](Index epoch, Index replica, std::uint64_t seed) {
    const auto sampler =
        make_sampler({.rows = 64, .replicas = 2, .global_batch = 128, .mode = DataMode::kFull, .seed = seed});
    return ids_of(*sampler, epoch, replica);
  };
  EXPECT_EQ(order(0, 0, 1), order(0, 0, 1));
  EXPECT_NE(order(0, 0, 1), order(1, 0, 1));
  EXPECT_NE(order(0, 0, 1), order(0, 1, 1));
  EXPECT_NE(order(0, 0, 1), order(0, 0, 2));
  std::vector<Index> sorted(64);
  for (Index i = 0; i < 64; ++i) at(sorted, i) = i;
  EXPECT_NE(order(0, 0, 1), sorted);
}

TEST(Sampler, AShardDoesNotChangeWithTheEpoch) {
  const auto sampler = make_sampler({.rows = 90, .replicas = 3, .global_batch = 90});
  std::vector<Index> first = ids_of(*sampler, 0, 1), second = ids_of(*sampler, 1, 1);
  EXPECT_NE(first, second);
  std::ranges::sort(first);
  std::ranges::sort(second);
  EXPECT_EQ(first, second);
}

std::vector<Index> shard(const ShardMap& map, Index replica) {
  std::vector<Index> records(static_cast<std::size_t>(map.size(replica)));
  std::iota(records.begin(), records.end(), Index{0});
  map.to_records(replica, records);
  return records;
}

TEST(ShardMap, SizesAndInverse) {
  for (const ShardOrder order : {ShardOrder::kShuffled, ShardOrder::kContiguous, ShardOrder::kStrided})
    for (const Index rows : {1, 7, 64, 1000})
      for (const Index replicas : {1, 3, 8}) {
        const ShardMap map({.rows = rows, .replicas = replicas, .seed = 3, .shard_order = order}, 0);
        Index total = 0;
        for (Index replica = 0; replica < replicas; ++replica) {
          EXPECT_LE(map.size(0) - map.size(replica), 1);
          for (const Index record : shard(map, replica)) EXPECT_EQ(map.replica_of(record), replica);
          total += map.size(replica);
        }
        EXPECT_EQ(total, rows);
      }
}

TEST(ShardMap, RunsAndStridesAreWhatTheySay) {
  const ShardMap runs({.rows = 10, .replicas = 3, .shard_order = ShardOrder::kContiguous}, 0);
  EXPECT_EQ(shard(runs, 1).front(), 4);
  EXPECT_EQ(shard(runs, 2).back(), 9);
  const ShardMap strides({.rows = 10, .replicas = 3, .shard_order = ShardOrder::kStrided}, 0);
  EXPECT_EQ(shard(strides, 1).front(), 1);
  EXPECT_EQ(shard(strides, 1).back(), 7);
}

TEST(Sampler, DealtAnewAShardChangesWithTheEpochAndEveryoneNeedsAll) {
  const SamplingOptions options = {
      .rows = 91, .replicas = 3, .global_batch = 91, .reshuffle = Reshuffle::kGlobal};
  const auto sampler = make_sampler(options);
  std::vector<Index> first = ids_of(*sampler, 0, 1), second = ids_of(*sampler, 1, 1);
  std::ranges::sort(first);
  std::ranges::sort(second);
  EXPECT_NE(first, second);
  std::set<Index> epoch;
  for (Index replica = 0; replica < 3; ++replica)
    for (const Index id : ids_of(*sampler, 1, replica)) EXPECT_TRUE(epoch.insert(id).second);
  EXPECT_EQ(epoch.size(), 91U);
  EXPECT_EQ(sampler->needed({1, 2}), 91);
  EXPECT_EQ(sampler->replicas_of(5), (Range{0, 3}));
  // The first epoch is that of the shards that are kept.
  SamplingOptions kept = options;
  kept.reshuffle = Reshuffle::kShard;
  EXPECT_EQ(ids_of(*sampler, 0, 2), ids_of(*make_sampler(kept), 0, 2));
}

// Together, and in order, 8 replicas of 8 have what one of 64 has, in each step of each epoch.
TEST(Sampler, ADividedBatchIsThatOfOneReplica) {
  SamplingOptions options{
      .rows = 203, .replicas = 1, .global_batch = 64, .seed = 7, .reshuffle = Reshuffle::kBatch};
  const auto one = make_sampler(options);
  SamplingOptions usual = options;
  usual.reshuffle = Reshuffle::kShard;
  options.replicas = 8;
  const auto eight = make_sampler(options);
  for (Index step = 0; step < 3 * one->epoch().steps; ++step) {
    const std::vector<Index> whole = ids_of(*one, step, 0);
    EXPECT_EQ(whole, ids_of(*make_sampler(usual), step, 0)) << "as without it";
    std::vector<Index> together(whole.size());
    for (Index replica = 0; replica < 8; ++replica) {
      const std::vector<Index> part = ids_of(*eight, step, replica);
      EXPECT_EQ(std::ssize(part), eight->count(step, replica));
      for (Index i = 0; i < std::ssize(part); ++i) at(together, replica + 8 * i) = at(part, i);
    }
    EXPECT_EQ(together, whole) << step;
  }
  EXPECT_EQ(eight->replicas_of(5), (Range{0, 8}));
}

// The figures of the usual confusions, worked out by hand.
TEST(EpochPlan, OnePassOverTheData) {
  const EpochPlan plan = plan_epoch({.rows = 650'000, .replicas = 6, .global_batch = 128});
  EXPECT_EQ(std::tuple(plan.steps, plan.samples, plan.last_batch, plan.times_each_seen),
            std::tuple(5'079, 650'000, 650'000 - 5'078 * 128, 1.0));
  const EpochPlan dropped =
      plan_epoch({.rows = 650'000, .replicas = 6, .global_batch = 128, .tail = Tail::kDrop});
  EXPECT_EQ(std::tuple(dropped.steps, dropped.samples, dropped.last_batch),
            std::tuple(5'078, 5'078 * 128, 128));
}

TEST(EpochPlan, EveryReplicaWalksAllTheData) {
  const EpochPlan plan =
      plan_epoch({.rows = 650'000, .replicas = 6, .global_batch = 6 * 128, .mode = DataMode::kFull});
  EXPECT_EQ(std::tuple(plan.samples, plan.times_each_seen, plan.steps), std::tuple(3'900'000, 6.0, 5'079));
}

TEST(EpochPlan, AGlobalBatchIsSharedOut) {
  const auto sampler = make_sampler({.rows = 6'400, .replicas = 8, .global_batch = 64});
  for (Index replica = 0; replica < 8; ++replica) EXPECT_EQ(sampler->count(0, replica), 8);
  EXPECT_EQ(sampler->step_samples(0), 64);
  EXPECT_EQ(sampler->epoch().steps, 100);
}

// Lengths that follow from the ids, some of them alike.
std::vector<Scalar> lengths_of(Index rows) {
  std::vector<Scalar> lengths;
  for (Index id = 0; id < rows; ++id) lengths.push_back(static_cast<Scalar>(1 + id * 37 % 23));
  return lengths;
}

SamplingOptions bucketed(SamplingOptions options, Index batches) {
  options.buckets = {.lengths = std::make_shared<const std::vector<Scalar>>(lengths_of(options.rows)),
                     .batches = batches};
  return options;
}

// The samples of a replica in these steps.
std::vector<Index> ids_of_steps(const Sampler& sampler, Range steps, Index replica) {
  std::vector<Index> all;
  for (Index step = steps.begin; step < steps.end; ++step)
    for (const Index id : ids_of(sampler, step, replica)) all.push_back(id);
  return all;
}

TEST(Sampler, BucketsMoveSamplesInsideOfARunAlone) {
  for_each_small([](const SamplingOptions& options) {
    const auto plain = make_sampler(options);
    const auto sampler = make_sampler(bucketed(options, 3));
    const Index steps = plain->epoch().steps;
    for (Index replica = 0; replica < options.replicas; ++replica) {
      for (Index begin = 0; begin < 2 * steps;
           begin += begin % steps + 3 < steps ? 3 : steps - begin % steps) {
        const Range run{begin, std::min(begin + 3, (begin / steps + 1) * steps)};
        for (Index step = run.begin; step < run.end; ++step)
          EXPECT_EQ(std::ssize(ids_of(*sampler, step, replica)), plain->count(step, replica));
        std::vector<Index> before = ids_of_steps(*plain, run, replica);
        std::vector<Index> after = ids_of_steps(*sampler, run, replica);
        std::ranges::sort(before);
        std::ranges::sort(after);
        EXPECT_EQ(before, after);
      }
    }
  });
}

// The batches of a run, one behind the other in order of their lengths, are its samples sorted by length, and
// those of one length stand as they came. In one step all replicas are at the same place of that order.
TEST(Sampler, ABatchOfABucketHasNeighboursInTheOrderOfLengths) {
  const SamplingOptions options{.rows = 240, .replicas = 3, .global_batch = 15};
  const std::vector<Scalar> lengths = lengths_of(options.rows);
  const auto plain = make_sampler(options);
  const auto sampler = make_sampler(bucketed(options, 8));
  std::set<std::vector<Index>> orders;
  for (Index begin = 0; begin < 4 * sampler->epoch().steps; begin += 8) {
    std::vector<Index> places;
    for (Index replica = 0; replica < options.replicas; ++replica) {
      std::vector<Index> sorted = ids_of_steps(*plain, {begin, begin + 8}, replica);
      std::ranges::stable_sort(sorted, {}, [&](Index id) { return at(lengths, id); });
      std::vector<Index> own;
      for (Index step = begin; step < begin + 8; ++step) {
        const std::vector<Index> ids = ids_of(*sampler, step, replica);
        const Index place = std::ranges::find(sorted, ids.front()) - sorted.begin();
        EXPECT_TRUE(std::equal(ids.begin(), ids.end(), sorted.begin() + place));
        own.push_back(place);
      }
      EXPECT_TRUE(replica == 0 || own == places);
      places = own;
    }
    orders.insert(places);
  }
  EXPECT_EQ(orders.size(), 8U);  // another one in each run of each epoch
  EXPECT_LT(padding_share(*sampler, lengths), 0.2);
  EXPECT_GT(padding_share(*plain, lengths), 0.3);
}

// As after resuming, or by another rank.
TEST(Sampler, IdsOfBucketsArePureInAnyOrder) {
  const SamplingOptions options =
      bucketed({.rows = 101, .replicas = 3, .global_batch = 10, .reshuffle = Reshuffle::kGlobal}, 4);
  const auto walked = make_sampler(options);
  const auto back = make_sampler(options);
  std::vector<std::vector<Index>> answers;
  for (Index step = 0; step < 40; ++step) answers.push_back(ids_of(*walked, step, step % 3));
  for (Index step = 39; step >= 0; --step) EXPECT_EQ(ids_of(*back, step, step % 3), at(answers, step));
}

TEST(Sampler, RefusesWhatCannotBe) {
  const auto error = [](const SamplingOptions& options) {
    return error_text<ConfigError>([&] { make_sampler(options); });
  };
  expect_parts(error({.rows = 0}), {"no records"});
  expect_parts(error({.rows = 100, .replicas = 8, .global_batch = 7}),
               {"batch of 7", "8 replicas", "at least 8"});
  expect_parts(error({.rows = 100, .replicas = 1, .global_batch = 0}), {"batch of 0"});
  expect_parts(error({.rows = 63, .replicas = 8, .global_batch = 64, .tail = Tail::kDrop}),
               {"63 samples", "batch of 64", "tail = keep"});
}

}  // namespace lockstep::sampler_test
