// Temperature scaling: SciPy's temperature, the same bits on any ranks and threads, sets that have none.
#include "lockstep/train/evaluation/metrics.h"

#include "support/thread_ranks.h"
#include "support/torch_references.h"

namespace lockstep::test::calibration_test {

constexpr Scalar kNaN = std::numeric_limits<Scalar>::quiet_NaN();
constexpr Index kBlock = 10;

struct Set {
  TargetKind kind = TargetKind::kClass;
  Index rows = 0;
  std::vector<Scalar> outputs, targets, weights = {};
  Index columns() const { return std::ssize(outputs) / rows; }
  Index target_columns() const { return std::ssize(targets) / rows; }
};

Set read_set(const nlohmann::json& reference) {
  Set set{.kind = reference.at("targets_are") == "classes" ? TargetKind::kClass : TargetKind::kBinary,
          .rows = reference.at("rows"),
          .outputs = reference.at("outputs").get<std::vector<Scalar>>(),
          .targets = {},
          .weights = reference.value("weights", std::vector<Scalar>())};
  for (const nlohmann::json& target : reference.at("targets"))
    set.targets.push_back(target.is_null() ? kNaN : target.get<Scalar>());
  return set;
}

// How many targets each row has.
std::vector<Scalar> present_in(const Set& set) {
  std::vector<Scalar> present;
  for (Index row = 0; row < set.rows; ++row) {
    const auto first = set.targets.begin() + row * set.target_columns();
    present.push_back(static_cast<Scalar>(std::count_if(first, first + set.target_columns(),
                                                        [](Scalar target) { return !std::isnan(target); })));
  }
  return present;
}

Calibration calibrate(Communicator& comm, int threads, const Set& set) {
  const Index blocks = divide_up(set.rows, kBlock);
  const Range local = split_evenly(blocks, comm.size(), comm.rank());
  KeptBlocks kept{.local = local, .all = blocks, .outputs = set.columns()};
  const std::vector<Scalar> present = present_in(set);
  const bool misses = std::ranges::any_of(set.targets, [](Scalar target) { return std::isnan(target); });
  for (Index block = local.begin; block < local.end; ++block) {
    const Range range = intersect({block * kBlock, (block + 1) * kBlock}, {0, set.rows});
    SampleWeights weights{.values = {}, .present = {}, .targets = set.target_columns()};
    if (!set.weights.empty()) weights.values = part(std::span<const Scalar>(set.weights), range);
    if (misses) weights.present = part(std::span<const Scalar>(present), range);
    const auto cut = [&](const std::vector<Scalar>& values, Index columns) {
      return ConstMatrix(values.data() + range.begin * columns, range.size(), columns);
    };
    const ConstMatrix outputs = cut(set.outputs, set.columns());
    const ConstMatrix targets = cut(set.targets, set.target_columns());
    kept.blocks.emplace_back(kBlock, set.columns(), set.target_columns(), !set.weights.empty());
    kept.blocks.back().keep({.outputs = outputs, .targets = targets, .weights = weights});
  }
  ThreadTeam team(threads);
  return fit_temperature(comm, team, set.kind, kept);
}

Calibration calibrate_alone(const Set& set) {
  Calibration found;
  run_thread_ranks(1, [&](Communicator& comm) { found = calibrate(comm, 1, set); });
  return found;
}

TEST(Calibration, FindsTheTemperatureThatSciPyFinds) {
  for (const nlohmann::json& reference : torch_references("calibration", "calibration_references.json")) {
    SCOPED_TRACE(reference.at("targets_are").get<std::string>());
    const Calibration found = calibrate_alone(read_set(reference));
    const double expected = reference.at("temperature");
    EXPECT_TRUE(found.found);
    EXPECT_NEAR(found.temperature, expected, 1e-5 * expected);
    EXPECT_NEAR(found.loss_before, reference.at("loss_before").get<double>(), 1e-12);
    EXPECT_NEAR(found.loss_after, reference.at("loss_after").get<double>(), 1e-7);
    EXPECT_NEAR(found.ece_before, reference.at("ece_before").get<double>(), 1e-12);
    EXPECT_NEAR(found.ece_after, reference.at("ece_after").get<double>(), 1e-5);
    EXPECT_LE(found.loss_after, found.loss_before);
  }
}

TEST(Calibration, HasTheSameBitsOnAnyRanksAndThreads) {
  for (const nlohmann::json& reference : torch_references("calibration", "calibration_references.json")) {
    const Set set = read_set(reference);
    const Calibration alone = calibrate_alone(set);
    for (const int ranks : {1, 3, 8}) {
      run_thread_ranks(ranks, [&](Communicator& comm) {
        for (const int threads : {1, 2}) {
          const Calibration found = calibrate(comm, threads, set);
          EXPECT_EQ(std::tuple(found.temperature, found.loss_after, found.ece_after),
                    std::tuple(alone.temperature, alone.loss_after, alone.ece_after));
        }
      });
    }
  }
}

void expect_none(const Set& set) {
  const Calibration none = calibrate_alone(set);
  EXPECT_FALSE(none.found);
  EXPECT_EQ(none.temperature, 1);
}

TEST(Calibration, LeavesTheOutputsAsTheyAreWhereNoTemperatureIsBest) {
  {
    SCOPED_TRACE("all are right: the smaller the temperature, the better");
    expect_none({.kind = TargetKind::kBinary, .rows = 3, .outputs = {1, -2, 3}, .targets = {1, 0, 1}});
    expect_none({.kind = TargetKind::kClass, .rows = 2, .outputs = {2, 1, 0, 0, 1, 5}, .targets = {0, 2}});
  }
  {
    SCOPED_TRACE("all are wrong: the larger, the better");
    expect_none({.kind = TargetKind::kBinary, .rows = 2, .outputs = {1, -2}, .targets = {0, 1}});
  }
  {
    SCOPED_TRACE("all outputs are equal");
    expect_none({.kind = TargetKind::kClass, .rows = 2, .outputs = {0, 0, 0, 0}, .targets = {0, 1}});
  }
  {
    SCOPED_TRACE("one class, of which the likely ones are the more the surer");
    expect_none({.kind = TargetKind::kBinary, .rows = 3, .outputs = {1, -2, -3}, .targets = {0, 0, 0}});
    expect_none({.kind = TargetKind::kClass, .rows = 2, .outputs = {2, 1, 0, 0, 1, 5}, .targets = {1, 1}});
  }
  {
    SCOPED_TRACE("not a number");
    expect_none({.kind = TargetKind::kClass, .rows = 2, .outputs = {kNaN, 1, 0, 1}, .targets = {0, 0}});
  }
}

TEST(DivideOutputs, DividesEachAndLeavesThemWhereTheTemperatureIsOne) {
  const std::vector<Scalar> outputs{3, -6, 0, 1};
  const ConstMatrix matrix(outputs.data(), 2, 2);
  std::vector<Scalar> scaled(6);
  const ConstMatrix divided = divide_outputs(matrix, 3, scaled);
  EXPECT_EQ(divided.rows(), 2);
  EXPECT_EQ(divided(0, 0), 1);
  EXPECT_EQ(divided(0, 1), -2);
  EXPECT_EQ(divided(1, 1), Scalar{1} / 3);
  EXPECT_EQ(divide_outputs(matrix, 1, {}).data(), outputs.data());
}

}  // namespace lockstep::test::calibration_test
