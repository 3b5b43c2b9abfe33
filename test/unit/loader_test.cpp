#include "lockstep/data/loading/loader.h"

#include "lockstep/base/errors.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/base/timer.h"
#include "support/error_text.h"
#include "support/prepared.h"

namespace lockstep::loader_test {

using namespace test;

// Record `id` has the features {id, id + 0.5}, the target -id and, if there are weights, id + 1. Remembers
// how many gathers were made, and fails at one of them if told.
class NumberedRecords : public Records {
 public:
  explicit NumberedRecords(Index fail_at = -1) : fail_at_(fail_at) {}
  Index rows() const override { return 0; }
  Index bytes() const override { return 0; }
  void gather(std::span<const Index> ids, Matrix& x, Matrix& targets) const override {
    if (gathers_++ == fail_at_) throw DataError("record 17 cannot be read");
    {
      const std::lock_guard lock(mutex_);
      ++by_thread_[std::this_thread::get_id()];
    }
    for (Index row = 0; row < std::ssize(ids); ++row) {
      const auto id = static_cast<Scalar>(at(ids, row));
      x(row, 0) = id;
      x(row, 1) = id + 0.5F;
      targets(row, 0) = -id;
      if (targets.cols() == 2) targets(row, 1) = id + 1;
    }
  }
  Index gathers() const { return gathers_; }
  Index gathers_by(std::thread::id thread) const {
    const std::lock_guard lock(mutex_);
    return by_thread_[thread];
  }

 private:
  Index fail_at_;
  mutable std::atomic<Index> gathers_ = 0;
  mutable std::mutex mutex_;
  mutable std::map<std::thread::id, Index> by_thread_;
};

struct Setting {
  explicit Setting(Index fail_at = -1) : records(fail_at) {}
  Loader loader(const LoaderOptions& options) const { return {records, info, *sampler, identity, options}; }
  NumberedRecords records;
  DatasetInfo info{.rows = 53, .features = {{2}}, .target_columns = 1, .name = "numbered"};
  // 53 records, 10 at a time, over 4 replicas: uneven shares and a last batch of 3.
  std::unique_ptr<Sampler> sampler = make_sampler({.rows = 53, .replicas = 4, .global_batch = 10});
  Normaliser identity{{0.0}, {1.0}, {{2}}};
};

void expect_step(const StepBatch& batch, const Sampler& sampler, Index step, Range replicas) {
  ASSERT_EQ(batch.step, step);
  ASSERT_EQ(std::ssize(batch.replicas), replicas.size());
  for (Index replica = replicas.begin; replica < replicas.end; ++replica) {
    const ReplicaBatch& samples = at(batch.replicas, replica - replicas.begin);
    std::vector<Index> ids;
    sampler.ids(step, replica, ids);
    ASSERT_EQ(samples.rows, std::ssize(ids));
    for (std::size_t row = 0; row < ids.size(); ++row) {
      const auto id = static_cast<Scalar>(ids[row]);
      EXPECT_EQ(samples.features.span()[2 * row], id);
      EXPECT_EQ(samples.features.span()[2 * row + 1], id + 0.5F);
      EXPECT_EQ(samples.targets.span()[row], -id);
      if (samples.weights.size() > 0) {
        EXPECT_EQ(samples.weights.span()[row], id + 1);
      }
    }
  }
}

TEST(Loader, DeliversWhatTheSamplerSaysInOrder) {
  const Setting setting;
  for (const Index prefetch : {0, 1, 2, 7, 40})
    for (const Range replicas : {Range{0, 4}, Range{1, 3}, Range{3, 4}, Range{2, 2}})
      for (const Range steps : {Range{0, 20}, Range{9, 13}, Range{5, 5}}) {
        Loader loader = setting.loader({.replicas = replicas, .steps = steps, .prefetch = prefetch});
        for (Index step = steps.begin; step < steps.end; ++step)
          expect_step(prepared(loader.next()), *setting.sampler, step, replicas);
      }
}

TEST(Loader, AtItsEndItThrowsAndNeverWaits) {
  const Setting setting;
  for (const Index prefetch : {0, 3})
    for (const Range steps : {Range{5, 7}, Range{5, 5}, Range{20, 10}}) {
      Loader loader = setting.loader({.replicas = {0, 4}, .steps = steps, .prefetch = prefetch});
      for (Index step = steps.begin; step < steps.end; ++step) loader.next();
      for (int tries = 0; tries < 2; ++tries) {
        expect_parts(error_text<std::logic_error>([&] { loader.next(); }), {"no further step"});
      }
    }
}

TEST(Loader, NormalisesTheFeaturesOnly) {
  const Setting setting;
  const Normaliser normaliser({1.0}, {0.5}, {{2}});
  Loader loader(setting.records, setting.info, *setting.sampler, normaliser,
                {.replicas = {0, 1}, .steps = {0, 1}, .prefetch = 1});
  const ReplicaBatch& samples = prepared(loader.next()).replicas[0];
  ASSERT_GT(samples.rows, 0);
  for (Index row = 0; row < samples.rows; ++row) {
    const Scalar id = -samples.targets.data()[row];
    EXPECT_EQ(samples.features.data()[2 * row], (id - 1) * 2);
    EXPECT_EQ(samples.features.data()[2 * row + 1], (id - 0.5F) * 2);
  }
}

TEST(Loader, AStepStaysWholeWhileItIsRead) {
  const Setting setting;
  Loader loader = setting.loader({.replicas = {0, 4}, .steps = {0, 30}, .prefetch = 2});
  for (Index step = 0; step < 30; ++step) {
    const StepBatch& batch = loader.next();
    // Time for the thread to run as far ahead as it may.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    expect_step(batch, *setting.sampler, step, {0, 4});
  }
}

TEST(Loader, RunsAheadByThePrefetchAndNoFurther) {
  const Setting setting;
  Loader loader = setting.loader({.replicas = {0, 1}, .steps = {0, 100}, .prefetch = 3});
  const auto wait_for_gathers = [&](Index wanted) {
    const Stopwatch watch;
    while (setting.records.gathers() < wanted && watch.seconds() < 10) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return setting.records.gathers();
  };
  EXPECT_EQ(wait_for_gathers(3), 3);
  loader.next();
  EXPECT_EQ(wait_for_gathers(3), 3) << "woken for one step";
  loader.next();
  EXPECT_EQ(wait_for_gathers(5), 5);
}

TEST(Loader, AllocatesItsBatchesOnce) {
  const Setting setting;
  for (const Index prefetch : {0, 2}) {
    Loader loader = setting.loader({.replicas = {0, 2}, .steps = {0, 60}, .prefetch = prefetch});
    // Three samples at most, of two features and a target.
    std::set<const Scalar*> places;
    for (Index step = 0; step < 60; ++step) places.insert(loader.next().replicas[1].features.data());
    EXPECT_EQ(std::ssize(places), prefetch + 1);
  }
}

TEST(Loader, AnErrorComesOutWhereItsStepIsDue) {
  for (const Index prefetch : {0, 1, 4}) {
    const Setting setting(6);
    Loader loader = setting.loader({.replicas = {0, 2}, .steps = {0, 20}, .prefetch = prefetch});
    for (Index step = 0; step < 3; ++step)
      expect_step(prepared(loader.next()), *setting.sampler, step, {0, 2});
    EXPECT_EQ(error_text<DataError>([&] { prepared(loader.next()); }), "record 17 cannot be read");
  }
}

TEST(Loader, WithoutPrefetchEachReplicaIsLeftToWhoTrainsOnIt) {
  const Setting setting;
  Loader loader = setting.loader({.replicas = {0, 4}, .steps = {0, 12}, .prefetch = 0});
  for (Index step = 0; step < 12; ++step) {
    const Index gathers = setting.records.gathers();
    const StepBatch& batch = loader.next();
    EXPECT_EQ(setting.records.gathers(), gathers);
    for (Index replica = 0; replica < 4; ++replica) {
      const ReplicaBatch& samples = at(batch.replicas, replica);
      EXPECT_EQ(samples.rows, setting.sampler->count(step, replica));
      EXPECT_EQ(samples.ids.count(), 0) << "not those of the step before";
    }
    std::jthread([&] {
      prepared(batch);
      EXPECT_GT(setting.records.gathers_by(std::this_thread::get_id()), 0);
    }).join();
    expect_step(batch, *setting.sampler, step, {0, 4});
  }
}

TEST(Loader, WithoutPrefetchATeamPreparesWeightedSamplesAndEachThreadItsReplicas) {
  Setting setting;
  setting.info.weighted = true;
  ThreadTeam team(3);
  std::vector<std::thread::id> threads(3);
  team.run([&](int thread) { at(threads, thread) = std::this_thread::get_id(); });
  Loader loader = setting.loader({.replicas = {0, 4}, .steps = {0, 30}, .prefetch = 0, .team = &team});
  for (Index step = 0; step < 30; ++step) {
    const StepBatch& batch = loader.next();
    for (const ReplicaBatch& samples : batch.replicas) EXPECT_FALSE(samples.prepare);
    expect_step(batch, *setting.sampler, step, {0, 4});
  }
  EXPECT_EQ(setting.records.gathers_by(threads[0]), 60) << "replicas 0 and 1";
  EXPECT_EQ(setting.records.gathers_by(threads[1]), 30);
  EXPECT_EQ(setting.records.gathers_by(threads[2]), 30);
}

TEST(Loader, AnErrorOfAnyThreadOfATeamComesOutWhereItsStepIsDue) {
  Setting setting(6);
  setting.info.weighted = true;
  ThreadTeam team(2);
  Loader loader = setting.loader({.replicas = {0, 2}, .steps = {0, 20}, .prefetch = 0, .team = &team});
  for (Index step = 0; step < 3; ++step) expect_step(loader.next(), *setting.sampler, step, {0, 2});
  EXPECT_EQ(error_text<DataError>([&] { loader.next(); }), "record 17 cannot be read");
}

TEST(Loader, PreparesNothingAheadWhereThatWouldTakeACoreFromTraining) {
  DataOptions options;
  EXPECT_GT(steps_ahead(options, true, false), 0);
  EXPECT_EQ(steps_ahead(options, false, false), 0);
  EXPECT_GT(steps_ahead(options, false, true), 0) << "it waits for files";
  options.prefetch = 3;
  EXPECT_EQ(steps_ahead(options, false, false), 3);
  options.prefetch = 0;
  EXPECT_EQ(steps_ahead(options, true, true), 0);
}

TEST(Loader, StopsAtOnceInTheMiddle) {
  const Setting setting;
  for (int taken = 0; taken < 4; ++taken) {
    const Stopwatch watch;
    {
      Loader loader = setting.loader({.replicas = {0, 4}, .steps = {0, 1'000'000'000}, .prefetch = 2});
      for (int i = 0; i < taken; ++i) loader.next();
    }
    EXPECT_LT(watch.seconds(), 5);
  }
}

TEST(Normaliser, ScalesWithOneConstantOrOneForEachFeature) {
  std::vector<Scalar> values = {1, 2, 3, 4, 5, 6};
  Matrix x = as_matrix(std::span(values), 2, 3);
  Normaliser({0.0}, {1.0}, {{3}}).apply(x);
  EXPECT_EQ(values, (std::vector<Scalar>{1, 2, 3, 4, 5, 6}));
  Normaliser({1.0}, {0.5}, {{3}}).apply(x);
  EXPECT_EQ(values, (std::vector<Scalar>{0, 2, 4, 6, 8, 10}));
  Normaliser({0.0, 2.0, 4.0}, {2.0}, {{3}}).apply(x);
  EXPECT_EQ(values, (std::vector<Scalar>{0, 0, 0, 3, 3, 3}));
  Normaliser({1.0}, {1.0, 2.0, 4.0}, {{3}}).apply(x);
  EXPECT_EQ(values, (std::vector<Scalar>{-1, -0.5, -0.25, 2, 1, 0.5}));
}

TEST(Normaliser, ScalesEachChannelOfASequenceAlike) {
  std::vector<Scalar> values = {1, 2, 3, 4, 5, 6};
  Matrix x = as_matrix(std::span(values), 1, 6);
  Normaliser({1.0, 2.0}, {1.0, 0.5}, SequenceShape{.positions = 3, .channels = 2}.shape()).apply(x);
  EXPECT_EQ(values, (std::vector<Scalar>{0, 0, 2, 4, 4, 8}));
}

TEST(Normaliser, RefusesWhatCannotBe) {
  const auto error = [](const std::vector<double>& mean, const std::vector<double>& std,
                        const Shape& features = {{784}}) {
    return error_text<ConfigError>([&] { Normaliser(mean, std, features); });
  };
  expect_parts(error({0, 0, 0}, {1}), {"data.mean has 3", "1 or 784"});
  expect_parts(error({0}, {1, 1}), {"data.std has 2", "1 or 784"});
  expect_parts(error({}, {1}), {"data.mean has 0"});
  expect_parts(error({0, 0}, {1}, {{4, 3}, true}), {"data.mean has 2", "1, 3 (one for each channel) or 12"});
  expect_parts(error({0}, {0}), {"data.std holds 0", "above 0"});
  expect_parts(error({0}, {-2}), {"data.std holds -2", "above 0"});
}

}  // namespace lockstep::loader_test
