// Once a run is warm, a step takes no memory that grows with the model or the batch, and gives back what
// little it takes. Counted at operator new and aligned_alloc, over all ranks of the process.
#include <malloc.h>

#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/math/convolution.h"
#include "support/idx_files.h"
#include "support/ranks.h"
#include "support/temporary_directory.h"
#include "support/tiny_run.h"

namespace {

// Arenas, activations and batches of the run below are all larger; lists of replicas, buckets and messages
// are not.
constexpr std::size_t kLarge = 4096;

std::atomic<long> large_allocations = 0;
std::atomic<long> held = 0;

void* counted(std::size_t size, std::size_t alignment) {
  if (size >= kLarge) ++large_allocations;
  void* memory =
      alignment > alignof(std::max_align_t) ? memalign(alignment, size) : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  ++held;
  return memory;
}

void released(void* memory) {
  if (memory == nullptr) return;
  --held;
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(size, 1);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  released(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  released(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  released(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  released(memory);
}

// Arenas, activations and batches. (oneDNN takes room for its sgemm with posix_memalign, in each call.)
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  if (size >= kLarge) ++large_allocations;
  return memalign(alignment, size);
}

namespace lockstep::allocation_test {
namespace {

constexpr Index kWarm = 10;
constexpr Index kSteps = 60;
const std::vector<int> kRanks{1, 2, 3,
                              8};  // how many there are changes who holds what, not how often it is made

struct Counts {
  long large = 0;
  long held = 0;
};

// Passes on, and looks at the counters when a step asks how many samples it has.
class WatchingSampler final : public Sampler {
 public:
  WatchingSampler(std::unique_ptr<Sampler> sampler, Counts& warm, Counts& end)
      : sampler_(std::move(sampler)), warm_(warm), end_(end) {}

  const EpochPlan& epoch() const override { return sampler_->epoch(); }
  Index replicas() const override { return sampler_->replicas(); }
  Index count(Index step, Index replica) const override { return sampler_->count(step, replica); }
  Index max_count() const override { return sampler_->max_count(); }
  Index step_samples(Index step) const override {
    if (step == kWarm) warm_ = {large_allocations, held};
    if (step == kSteps - 2) end_ = {large_allocations, held};
    return sampler_->step_samples(step);
  }
  void ids(Index step, Index replica, std::vector<Index>& out) const override {
    sampler_->ids(step, replica, out);
  }
  Index walk(Index step, Index replica) const override { return sampler_->walk(step, replica); }
  Range replicas_of(Index record) const override { return sampler_->replicas_of(record); }
  Index needed(Range replicas) const override { return sampler_->needed(replicas); }

 private:
  std::unique_ptr<Sampler> sampler_;
  Counts& warm_;
  Counts& end_;
};

Config large_enough(const std::string& strategy, Reduction reduction) {
  Config config = test::tiny_config();
  test::set_keys(
      config,
      "data.synthetic_rows=1000; model.layers=dense(128) batch_norm relu dense(128) relu dense(3); "
      "train.replicas=16; train.global_batch=256");
  config.train.steps = kSteps;
  test::set_keys(config, "train.epochs=0; run.log_every=1000");
  config.eval.batch = 1000;  // one block: sums of evaluations are kept by block
  config.distribute.strategy = strategy;
  config.distribute.reduction = reduction;
  return config;
}

void expect_flat(Communicator& comm, const Config& config) {
  Counts warm;
  Counts end;
  const auto watched = [&](const SamplingOptions& options) -> std::unique_ptr<Sampler> {
    return std::make_unique<WatchingSampler>(make_sampler(options), warm, end);
  };
  test::train_tiny(comm, config, watched);
  EXPECT_EQ(end.large - warm.large, 0) << config.distribute.strategy;
  // Ranks of one process are not at the same place of a step when rank 0 looks.
  EXPECT_NEAR(static_cast<double>(end.held), static_cast<double>(warm.held), 40.0 * comm.size())
      << config.distribute.strategy;
}

TEST(Allocation, AWarmStepTakesNoMemoryThatGrowsWithTheModel) {
  for (const StrategyEntry& entry : strategy_catalog()) {
    if (entry.has_servers) continue;
    // Messages between ranks that are threads are copies.
    if (entry.promises.divides_optimizer_state && !test::under_mpi()) continue;
    for (const Reduction reduction : {Reduction::kNative, Reduction::kOrdered}) {
      for (const Index threads : {Index{1}, Index{2}}) {
        SCOPED_TRACE(entry.name);
        Config config = large_enough(entry.name, reduction);
        config.train.threads = threads;
        test::on_ranks(kRanks, [&](Communicator& comm) { expect_flat(comm, config); });
      }
    }
  }
}

TEST(Allocation, FactorsOfGradientsTakeNoMoreEither) {
  Config config = large_enough("central_storage", Reduction::kNative);
  test::set_keys(config, "model.layers=dense(128) relu dense(300) relu dense(3); train.global_batch=16");
  test::on_ranks(kRanks, [&](Communicator& comm) { expect_flat(comm, config); });
}

TEST(Allocation, NorDoOptimizersOfWholeTensors) {
  for (const std::string strategy : {"allreduce", "central_storage"}) {
    for (const std::string optimizer : {"adafactor", "muon"}) {
      Config config = large_enough(strategy, Reduction::kNative);
      config.optimizer.optimizer = optimizer;
      test::on_ranks({1, 3}, [&](Communicator& comm) { expect_flat(comm, config); });
    }
  }
}

Config in(Precision precision) {
  Config config = large_enough("central_storage", Reduction::kNative);
  config.model.precision = precision;
  return config;
}

TEST(Allocation, NorDoesRoundingToBf16) {
  if (bf16_support() == Bf16Support::kNone) GTEST_SKIP() << kernel_back_end() << " has no bf16";
  const Config config = in(Precision::kBf16);
  test::on_ranks(kRanks, [&](Communicator& comm) { expect_flat(comm, config); });
}

TEST(Allocation, NorDoConvolutions) {
  const test::TemporaryDirectory directory;
  const test::IdxPairOptions images{.rows = 500, .shape = {{10, 10}}, .classes = 3};
  const test::IdxPair files = test::write_idx_pair(directory / "images", images);
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    if (precision == Precision::kBf16 && bf16_support() == Bf16Support::kNone) continue;
    Config config = in(precision);
    config.data.format = "idx";
    config.data.train = config.data.test = files.images;
    config.data.train_labels = config.data.test_labels = files.labels;
    config.train.global_batch = 64;  // an activation is large enough
    config.model.layers = "conv2d(16, 3) relu conv2d(32, 3) relu conv2d(32, 3) flatten dense(3)";
    test::on_ranks(kRanks, [&](Communicator& comm) { expect_flat(comm, config); });
  }
}

}  // namespace
}  // namespace lockstep::allocation_test
