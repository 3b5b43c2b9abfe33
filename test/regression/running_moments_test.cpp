// What becomes of running moments when four replicas feed them: the numbers that the guide on batch norm
// quotes. Normal data of mean 3.9 and deviation 12.4 in 10,000 batches of 100, momentum 0.1, 20 seeds; each
// seed's batches are the same for all ways of using them.
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/random.h"
#include "lockstep/math/statistics.h"
#include "lockstep/nn/model.h"
#include "support/common.h"

namespace lockstep::running_moments_test {
namespace {

constexpr double kMean = 3.9;
constexpr double kDeviation = 12.4;
constexpr Index kBatch = 100;
constexpr Index kBatches = 10'000;
constexpr std::size_t kReplicas = 4;
constexpr std::uint64_t kSeeds = 20;
constexpr double kMomentum = 0.1;

struct Spread {
  double mean = 0;
  double deviation = 0;  // between seeds
  double error() const { return deviation / std::sqrt(static_cast<double>(kSeeds)); }
};

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) spread.mean += value / n;
  for (const double value : values) spread.deviation += std::pow(value - spread.mean, 2) / (n - 1);
  spread.deviation = std::sqrt(spread.deviation);
  return spread;
}

// Mean and deviation that one way of updating ends with.
struct Estimate {
  std::vector<double> mean;
  std::vector<double> deviation;
};

// The layer's own arithmetic, on one feature.
class Experiment {
 public:
  void run(std::uint64_t seed) {
    const BatchStatistics& layer = *model_.op(0).layer->statistics();
    const auto mean_at = static_cast<std::size_t>(model_.state_layout().params[0].range.begin);
    const auto variance_at = static_cast<std::size_t>(model_.state_layout().params[1].range.begin);
    std::array<AlignedBuffer<Scalar>, 2> state{start(), start()};
    double averaged_mean = 0;
    double averaged_variance = 1;
    double deviations = 0;
    RandomStream random({.seed = seed, .purpose = Purpose::kSynthetic});
    std::vector<Scalar> values(kBatch);
    std::vector<double> sums(3);
    for (Index step = 0; step < kBatches / Index{kReplicas}; ++step) {
      std::vector<double> together(3);
      double mean = 0;
      double variance = 0;
      const AlignedBuffer<Scalar> zero(kAlignment);
      for (std::size_t replica = 0; replica < kReplicas; ++replica) {
        for (Scalar& value : values)
          value = static_cast<Scalar>(kMean + kDeviation * static_cast<double>(random.normal()));
        const ConstMatrix x(values.data(), kBatch, 1);
        layer.forward_sums(x, {}, state[0].span(), sums);
        layer.update_state(sums, state[0].span(), BatchStatistics::Update::kMove, state[0].span());  // (a)
        sum_moments(x, zero.span().first(1), sums);
        const Moments own = moments_of(sums, zero.span().first(1));
        const double unbiased = own.variance[0] * kBatch / (kBatch - 1);
        mean += own.mean[0] / kReplicas;
        variance += unbiased / kReplicas;
        deviations += std::sqrt(unbiased) / kBatches;
        layer.forward_sums(x, {}, state[1].span(), sums);
        for (std::size_t i = 0; i < sums.size(); ++i) together[i] += sums[i];
      }
      averaged_mean += kMomentum * (mean - averaged_mean);  // (b)
      averaged_variance += kMomentum * (variance - averaged_variance);
      layer.update_state(together, state[1].span(), BatchStatistics::Update::kMove, state[1].span());  // (c)
    }
    add(each_, state[0].data()[mean_at], state[0].data()[variance_at]);
    add(averaged_, averaged_mean, averaged_variance);
    add(together_, state[1].data()[mean_at], state[1].data()[variance_at]);
    mean_deviation_.push_back(deviations);
  }

  const Estimate& each() const { return each_; }
  const Estimate& averaged() const { return averaged_; }
  const Estimate& together() const { return together_; }
  const std::vector<double>& mean_deviation() const { return mean_deviation_; }

 private:
  AlignedBuffer<Scalar> start() const {
    AlignedBuffer<Scalar> state(model_.state_layout().size);
    initialise({&model_.state_layout(), state.span()}, 1, 0);
    return state;
  }
  static void add(Estimate& estimate, double mean, double variance) {
    estimate.mean.push_back(mean);
    estimate.deviation.push_back(std::sqrt(variance));
  }

  Model model_{{.layers = "batch_norm dense(1)"}, {{1}}};
  Estimate each_;
  Estimate averaged_;
  Estimate together_;
  std::vector<double> mean_deviation_;
};

Spread difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(a[i] - b[i]);
  return spread_of(differences);
}

TEST(RunningMoments, FourReplicasHalveTheSpreadAndMoveNoMean) {
  Experiment experiment;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) experiment.run(seed);

  fmt::print(
      "| update of the running moments | mean | spread | deviation | spread |\n|---|---|---|---|---|\n");
  const auto print = [](const char* name, const Estimate& estimate) {
    const Spread mean = spread_of(estimate.mean);
    const Spread deviation = spread_of(estimate.deviation);
    fmt::print("| {} | {:.3f} | {:.3f} | {:.3f} | {:.3f} |\n", name, mean.mean, mean.deviation,
               deviation.mean, deviation.deviation);
    // The truth is within four standard errors.
    EXPECT_NEAR(mean.mean, kMean, 4 * mean.error());
    EXPECT_NEAR(deviation.mean, kDeviation, 4 * deviation.error());
  };
  print("(a) after each batch", experiment.each());
  print("(b) moments of four replicas averaged, one update", experiment.averaged());
  print("(c) moments of the four batches together, one update", experiment.together());
  const Spread biased = spread_of(experiment.mean_deviation());
  fmt::print("deviations averaged instead of variances: {:.4f} +- {:.4f} ({:+.2f} %)\n", biased.mean,
             biased.error(), 100 * (biased.mean / kDeviation - 1));

  // (b) and (c) agree but for what the four means differ among themselves, which (c) counts and (b)
  // estimates: nothing to be seen beside the spread.
  const Spread means = difference(experiment.averaged().mean, experiment.together().mean);
  const Spread deviations = difference(experiment.averaged().deviation, experiment.together().deviation);
  fmt::print("(b) - (c): mean {:+.5f} +- {:.5f}, deviation {:+.5f} +- {:.5f}\n", means.mean, means.error(),
             deviations.mean, deviations.error());
  EXPECT_NEAR(means.mean, 0, 1e-5);
  EXPECT_NEAR(deviations.mean, 0, 4 * deviations.error());
  EXPECT_LT(deviations.deviation, spread_of(experiment.together().deviation).deviation / 5);

  // A moving average with momentum m has sqrt(m / (2 - m)) of the spread of what goes in.
  const double memory = std::sqrt(kMomentum / (2 - kMomentum));
  const double of_batch = kDeviation / std::sqrt(static_cast<double>(kBatch)) * memory;
  EXPECT_NEAR(spread_of(experiment.each().mean).deviation, of_batch, 0.4 * of_batch);
  EXPECT_NEAR(spread_of(experiment.together().mean).deviation, of_batch / 2, 0.4 * of_batch / 2);

  // The mean of sample deviations is too low by a factor of about 1 - 1 / (4 (n - 1)).
  EXPECT_NEAR(biased.mean / kDeviation - 1, -1.0 / (4 * (kBatch - 1)), 4 * biased.error() / kDeviation);
}

}  // namespace
}  // namespace lockstep::running_moments_test
