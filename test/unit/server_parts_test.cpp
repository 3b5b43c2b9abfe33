// What a parameter server is made of, each part by itself.
#include "distributed/strategies/parameter_server/request_queue.h"
#include "distributed/strategies/parameter_server/server.h"
#include "distributed/strategies/parameter_server/worker_client.h"
#include "lockstep/base/errors.h"
#include "support/error_text.h"
#include "support/thread_ranks.h"

namespace lockstep::server_parts_test {

// ---- a step of several workers --------------------------------------------------------------------------

using Members = std::vector<Index>;

// Three workers, of whom a step takes two, with two weights each.
class Collecting : public testing::Test {
 protected:
  void add(std::size_t worker, double weight, std::array<Scalar, 2> mean) {
    std::ranges::copy(mean, collector_.gradient_of(worker).begin());
    collector_.add(worker, weight, 0.25);
  }
  UpdateRequest take() { return collector_.take(sum_); }
  StepCollector collector_{3, 2, 2};
  std::array<Scalar, 2> sum_{99, 99};
};

TEST_F(Collecting, AStepIsDecidedOnceEnoughGradientsAreThere) {
  EXPECT_FALSE(collector_.decide());
  add(2, 1, {1, 1});
  EXPECT_FALSE(collector_.decide());
  add(0, 1, {1, 1});
  EXPECT_EQ(collector_.decide(), (Members{1, 0, 1}));
}

TEST_F(Collecting, TheSumHasEachMeanAsOftenAsItsSamplesWeigh) {
  add(0, 3, {1, -2});
  add(2, 0.5, {8, 4});
  collector_.set_members({1, 0, 1});
  const UpdateRequest request = take();
  EXPECT_EQ(sum_, (std::array<Scalar, 2>{3 * 1 + 0.5F * 8, 3 * -2 + 0.5F * 4}));
  EXPECT_EQ(request.weight, 3.5);
  EXPECT_EQ(request.lr, 0.25);
}

TEST_F(Collecting, AStepWaitsForTheGradientsOfItsMembersAlone) {
  add(0, 1, {1, 1});
  add(1, 1, {1, 1});
  EXPECT_FALSE(collector_.complete()) << "nobody has decided";
  collector_.set_members({1, 0, 1});
  EXPECT_TRUE(collector_.takes(0));
  EXPECT_FALSE(collector_.takes(1));
  EXPECT_FALSE(collector_.complete()) << "the last member is missing";
  add(2, 1, {1, 1});
  EXPECT_TRUE(collector_.complete());
}

TEST_F(Collecting, GradientsThatAStepDidNotTakeAreForgotten) {
  add(0, 1, {1, 1});
  add(1, 1, {100, 100});
  add(2, 1, {3, 3});
  collector_.set_members({1, 0, 1});
  EXPECT_EQ(take().weight, 2);
  EXPECT_EQ(sum_, (std::array<Scalar, 2>{4, 4}));
  EXPECT_FALSE(collector_.complete());
  add(0, 1, {5, 5});
  EXPECT_FALSE(collector_.decide()) << "that of worker 1 was for the step before";
}

// ---- who may go on --------------------------------------------------------------------------------------

TEST(Leave, BoundedWorkersWaitBeyondTheBoundAndNoSooner) {
  for (const Index bound : {0, 1, 3}) {
    SCOPED_TRACE(bound);
    const DistOptions options{.mode = ServerMode::kBounded, .staleness = bound};
    AdmissionPolicy rule(options, 2);
    rule.begin_round(100);
    for (Index ahead = 0; ahead <= bound; ++ahead) {
      EXPECT_EQ(rule.ahead(0), ahead);
      EXPECT_EQ(rule.ask(0, 0), Permit::kGo);
      rule.go(0, 0);
      rule.pushed(0);
    }
    EXPECT_EQ(rule.ask(0, 0), Permit::kWait);
    EXPECT_EQ(rule.ask(1, 0), Permit::kGo) << "the slowest one";
    EXPECT_EQ(rule.slowest(), 0);
    rule.pushed(1);
    EXPECT_EQ(rule.slowest(), 1);
    EXPECT_EQ(rule.ask(0, 0), Permit::kGo);
  }
}

TEST(Leave, WithoutABoundNobodyWaits) {
  const DistOptions options{.mode = ServerMode::kAsync, .staleness = 0};
  AdmissionPolicy rule(options, 2);
  rule.begin_round(20);
  for (Index step = 0; step < 20; ++step) {
    EXPECT_EQ(rule.ask(0, 0), Permit::kGo);
    EXPECT_EQ(rule.go(0, 0), step) << "steps are numbered as permission is given";
    rule.pushed(0);
  }
  EXPECT_EQ(rule.ask(1, 0), Permit::kStop) << "all steps are given away";
  EXPECT_EQ(rule.slowest(), 0);
}

TEST(Leave, AWorkerHasOnePartInAStepOfSeveral) {
  const DistOptions options{.mode = ServerMode::kSync, .backup_workers = 1};
  AdmissionPolicy rule(options, 2);
  rule.begin_round(2);
  EXPECT_EQ(rule.ask(0, 0), Permit::kGo);
  EXPECT_EQ(rule.go(0, 0), 0);
  EXPECT_EQ(rule.ask(0, 0), Permit::kWait) << "for the step that it has its part in";
  EXPECT_EQ(rule.ask(1, 0), Permit::kGo);
  EXPECT_EQ(rule.ask(0, 1), Permit::kGo);
  EXPECT_EQ(rule.go(0, 1), 1);
  EXPECT_EQ(rule.ask(0, 2), Permit::kStop);
}

TEST(Leave, AStretchThatIsCutShortEndsAloneAndABadNumberEndsAll) {
  const DistOptions options{.mode = ServerMode::kAsync};
  AdmissionPolicy rule(options, 1);
  rule.begin_round(10);
  rule.cut_short();
  EXPECT_EQ(rule.ask(0, 0), Permit::kStop);
  rule.begin_round(10);
  EXPECT_EQ(rule.ask(0, 0), Permit::kGo);
  rule.stop();
  rule.begin_round(10);
  EXPECT_EQ(rule.ask(0, 0), Permit::kStop);
}

// ---- what is counted ------------------------------------------------------------------------------------

TEST(WorkerStats, CountsEveryGradientAndItsSamplesOnAllRanks) {
  run_thread_ranks(2, [](Communicator& comm) {
    WorkerStats stats(2);
    if (comm.rank() == 0) {  // the worker itself
      for (int i = 0; i < 5; ++i) stats.count_computed(1);
    } else {
      stats.count_step(1, 7);
      stats.count_step(1, 5);
      stats.count_step(0, 1);
      for (const Index samples : {10, 20, 30}) stats.count_drop(1, samples);
      for (const Index ahead : {2, 4, 3}) stats.count_ahead(1, ahead);
    }
    const std::vector<WorkerRecord> records = stats.gather(comm);
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(std::tuple(records[0].samples, records[0].dropped, records[1].computed, records[1].steps),
              std::tuple(1, 0, 5, 2));
    EXPECT_EQ(std::tuple(records[1].samples, records[1].dropped, records[1].dropped_samples),
              std::tuple(12, 3, 60));
    EXPECT_EQ(records[1].max_ahead, 4);
  });
}

TEST(WorkerStats, SumsUpStalenessBeyondItsHistogramToo) {
  run_thread_ranks(1, [](Communicator& comm) {
    WorkerStats stats(1);
    for (const Index staleness : {0, 2, 2, 5000}) stats.count_staleness(0, staleness);
    const WorkerRecord record = stats.gather(comm).front();
    ASSERT_EQ(record.staleness.size(), 1024u) << "the last place is \"or more\"";
    EXPECT_EQ(std::tuple(record.staleness[0], record.staleness[1], record.staleness[2]), std::tuple(1, 0, 2));
    EXPECT_EQ(record.staleness[1023], 1);
    EXPECT_EQ(record.staleness_sum, 5004);
  });
}

TEST(WorkersReport, StalenessIsThatOfTheGradientsOfAllWorkers) {
  WorkersReport report;
  EXPECT_EQ(report.mean_staleness(), 0);
  EXPECT_EQ(report.staleness_percentile(0.5), 0);
  report.workers = {{.staleness_sum = 4, .staleness = {2, 4}},
                    {.staleness_sum = 9, .staleness = {1, 0, 0, 3}}};
  EXPECT_DOUBLE_EQ(report.mean_staleness(), 1.3);
  EXPECT_EQ(report.staleness_percentile(0.3), 0) << "3 of 10 have none";
  EXPECT_EQ(report.staleness_percentile(0.31), 1);
  EXPECT_EQ(report.staleness_percentile(0.7), 1);
  EXPECT_EQ(report.staleness_percentile(0.71), 3);
  EXPECT_EQ(report.staleness_percentile(1), 3);
}

// ---- whose message is next ------------------------------------------------------------------------------

// The last rank takes `count` messages from each other one, all of which are there when it begins.
std::vector<std::size_t> order_of_arrivals(int peers, Index count) {
  std::vector<std::size_t> order;
  run_thread_ranks(peers + 1, [&](Communicator& comm) {
    std::vector<std::unique_ptr<Request>> sent;
    const MessageHeader header{.kind = MessageKind::kPush};
    for (Index i = 0; comm.rank() < peers && i < count; ++i) {
      const Send send{peers, bytes_of(header)};
      sent.push_back(comm.start_exchange(kHeaders, std::span(&send, 1), {}));
    }
    comm.barrier();
    if (comm.rank() == peers) {
      RequestQueueOptions options;
      options.timeout_seconds = 60;
      options.peers.resize(static_cast<std::size_t>(peers));
      std::iota(options.peers.begin(), options.peers.end(), 0);
      RequestQueue arrivals(comm, options);
      for (std::size_t peer = 0; peer < arrivals.peers(); ++peer) arrivals.expect(peer);
      std::vector<Index> left(arrivals.peers(), count);
      for (Index i = 0; i < count * peers; ++i) {
        order.push_back(arrivals.next());
        if (--left[order.back()] > 0) arrivals.expect(order.back());
      }
    }
    for (const auto& request : sent) request->wait();
  });
  return order;
}

// Whoever is served has its next message there at once: it must not keep others waiting for ever.
TEST(RequestQueue, WorkersThatAreAllReadyAreServedInTurn) {
  constexpr std::size_t kPeers = 3;
  const std::vector<std::size_t> order = order_of_arrivals(kPeers, 4);
  ASSERT_EQ(order.size(), 12u);
  for (std::size_t i = kPeers; i < order.size(); ++i)
    EXPECT_EQ(order[i], order[i - kPeers]) << "message " << i;
  EXPECT_EQ(std::set(order.begin(), order.begin() + kPeers).size(), kPeers);
}

// Of four peers the first has sent its message, and none is expected of the second.
TEST(RequestQueue, NamesThoseThatAreSilentAndHowLong) {
  run_thread_ranks(5, [&](Communicator& comm) {
    const MessageHeader header{.kind = MessageKind::kPush};
    const Send send{4, bytes_of(header)};
    if (comm.rank() == 0) comm.start_exchange(kHeaders, std::span(&send, 1), {})->wait();
    if (comm.rank() < 4) return;
    RequestQueue arrivals(comm,
                          {.peers = {0, 1, 2, 3}, .timeout_seconds = 0.6, .record_to = "", .replay = ""});
    for (const std::size_t peer : {2, 0}) arrivals.expect(peer);
    EXPECT_EQ(arrivals.next(), 0);
    arrivals.expect(3);
    test::expect_parts(test::error_text<CommError>([&] { arrivals.next(); }),
                       {"no sign of life from ranks 2, 3 for 1 s"});
  });
}

}  // namespace lockstep::server_parts_test
