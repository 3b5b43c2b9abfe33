// The helper thread beside other calls, and what becomes of its errors.
#include "lockstep/comm/progress_thread.h"

#include "lockstep/base/errors.h"
#include "support/ranks.h"
#include "support/tiny_run.h"

namespace lockstep::progress_thread_test {
namespace {

using namespace std::chrono_literals;

// One rank, which counts its idle calls; from some call on they fail.
class Counting final : public Communicator {
 public:
  explicit Counting(std::atomic<int>& calls, int good = 1'000'000) : calls_(calls), good_(good) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void barrier() override {}
  void broadcast(Buffer, int) override {}
  void all_reduce_sum(Buffer) override {}
  std::unique_ptr<Request> start_all_reduce_sum(Buffer) override { return nullptr; }
  void all_gather(ConstBuffer, Buffer) override {}
  std::unique_ptr<Request> start_all_gather(Buffer, std::span<const Range>) override { return nullptr; }
  std::unique_ptr<Request> start_exchange(int, std::span<const Send>, std::span<const Receive>) override {
    return nullptr;
  }
  std::unique_ptr<Communicator> split(Index, Index) override {
    return std::make_unique<Counting>(calls_, good_);
  }
  std::unique_ptr<Communicator> split_by_node(Index) override { return nullptr; }
  std::unique_ptr<SharedWindow> shared_window(Index) override { return nullptr; }
  void idle() override {
    if (++calls_ > good_) throw CommError("the link is down");
  }
  bool takes_threads() const override { return true; }
  void abort(int) override {}

 private:
  std::atomic<int>& calls_;
  int good_;
};

TEST(ProgressThread, CallsInBetweenResumeAndPauseOnly) {
  std::atomic<int> calls = 0;
  Counting comm(calls);
  ProgressThread thread(comm);
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(calls, 0);
  thread.resume();
  while (calls < 3) std::this_thread::sleep_for(1ms);
  thread.pause();
  const int before = calls;
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(calls, before);
  thread.resume();
  while (calls == before) std::this_thread::sleep_for(1ms);
}

TEST(ProgressThread, ItsErrorIsThrownByPauseOnce) {
  std::atomic<int> calls = 0;
  Counting comm(calls, 2);
  ProgressThread thread(comm);
  thread.resume();
  while (calls < 3) std::this_thread::sleep_for(1ms);
  EXPECT_THROW(thread.pause(), CommError);
  EXPECT_NO_THROW(thread.pause());
}

TEST(ProgressThread, OtherCallsGoOnBesideIt) {
  test::on_ranks([](Communicator& comm) {
    if (!comm.takes_threads()) GTEST_SKIP() << "MPI was started for one thread";
    ProgressThread thread(comm);
    for (int round = 0; round < 20; ++round) {
      thread.resume();
      std::vector<float> values(10'000, 1.0F);
      const auto request = comm.start_all_reduce_sum(as_buffer(std::span(values)));
      std::this_thread::sleep_for(1ms);
      request->wait();
      thread.pause();
      EXPECT_EQ(values.back(), static_cast<float>(comm.size()));
    }
  });
}

// Several buckets in a layer; long enough for a step in which nothing leaves before backward is over.
TEST(ProgressThread, TrainingGivesTheSameBits) {
  Config config =
      test::tiny_config("model.layers=dense(300) relu dense(3); distribute.bucket_kib=1; train.epochs=5");
  const std::vector<Scalar> expected = test::train_tiny_alone(config).weights;
  config.distribute.progress_thread = true;
  for (const char* strategy : {"allreduce", "zero1"}) {
    config.distribute.strategy = strategy;
    for (const Index threads : {1, 2}) {
      config.train.threads = threads;
      test::on_ranks([&](Communicator& comm) {
        if (config.train.replicas / comm.size() < threads) return;
        EXPECT_EQ(test::train_tiny(comm, config).weights, expected) << strategy << ", threads " << threads;
      });
    }
  }
}

}  // namespace
}  // namespace lockstep::progress_thread_test
