// The scenario that confuses: a table of 650,000 rows, six workers, batches of 128. What trainer plan
// predicts of steps and samples is what a run then records, in both data modes, with workers together and
// each at its own pace. The plans are of the whole table, the runs of a tenth of it.
#include "lockstep/base/types.h"
#include "support/trainer_runs.h"

namespace lockstep::test::epochs_test {
namespace {

using Json = nlohmann::json;

struct Counts {
  Index steps = 0;
  Index samples = 0;
  bool operator==(const Counts&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Counts& counts) {
  return out << counts.steps << " steps, " << counts.samples << " samples";
}

// What was planned, and what the run says at its end.
struct Outcome {
  Counts plan;
  Counts recorded;  // in the last line of metrics.jsonl
  Json summary;
};

Counts last_counts(const std::string& path) {
  Counts last;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line);
    EXPECT_GE(json.at("step").get<Index>(), last.steps) << line;
    last = {json.at("step"), json.at("samples_seen")};
  }
  return last;
}

// A table such as a census: two numbers with some missing, two categories, and an income class that depends
// on them.
void write_census(const std::string& path, Index rows) {
  std::mt19937_64 random(1);
  const auto below = [&random](Index end) {
    return static_cast<Index>(random() % static_cast<std::uint64_t>(end));
  };
  std::ofstream out(path);
  out << "age,hours,work,region,income\n";
  for (Index row = 0; row < rows; ++row) {
    const Index age = 17 + below(74);
    const Index hours = 10 + below(50);
    const Index work = below(8);
    const bool high = age + hours + 5 * work + below(60) > 130;
    out << age << ',' << (below(50) == 0 ? "" : std::to_string(hours)) << ",\"work, class " << work
        << "\",region" << below(50) << ',' << (high ? ">50K" : "<=50K") << '\n';
  }
}

// An experiment with a model so small that the steps are quick.
class Epochs : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = std::make_unique<TemporaryDirectory>();
    write_census(*directory_ / "all.csv", 650'000);
    write_census(*directory_ / "tenth.csv", 65'000);
    write_census(*directory_ / "test.csv", 1'000);
    std::ofstream(config()) << fmt::format(
        "[data]\ntest = \"{}\"\nlabel = \"income\"\n"
        "[model]\nlayers = \"wide_deep(dense(1) | dense(16) relu dense(1))\"\n"
        "[train]\nloss = \"binary_cross_entropy\"\nper_replica_batch = 128\nreplicas = 6\nlr = 0.05\n"
        "epochs = 1\n[eval]\nevery = \"never\"\n",
        *directory_ / "test.csv");
  }
  static void TearDownTestSuite() { directory_.reset(); }

  // The plan of the whole table.
  static Counts plan_all(int ranks, const std::string& flags) { return plan(ranks, "all.csv", flags); }

  // A run on a tenth of it, with its own plan.
  Outcome train(int ranks, const std::string& flags) {
    const std::string run = *directory_ / fmt::format("run{}", runs_++);
    succeed(ranks, fmt::format("--config {} --data.train {} --run.dir {} {}", config(),
                               *directory_ / "tenth.csv", run, flags));
    const Json summary = Json::parse(read_file(run + "/summary.json"));
    const Counts recorded = last_counts(run + "/metrics.jsonl");
    EXPECT_EQ((Counts{summary.at("steps"), summary.at("samples_seen")}), recorded);
    return {.plan = plan(ranks, "tenth.csv", flags), .recorded = recorded, .summary = summary};
  }

 private:
  static Counts plan(int ranks, const std::string& table, const std::string& flags) {
    const Json planned =
        json_of(run_trainer(fmt::format("plan --config {} --data.train {} --np {} {} --json -", config(),
                                        *directory_ / table, ranks, flags)));
    return {planned.at(0).at("steps"), planned.at(0).at("samples")};
  }
  static std::string config() { return *directory_ / "run.toml"; }

  static inline std::unique_ptr<TemporaryDirectory> directory_;
  static inline int runs_ = 0;
};

TEST_F(Epochs, InShardModeAllReplicasTogetherWalkTheRowsOnce) {
  EXPECT_EQ(plan_all(6, "--data.mode shard"), (Counts{847, 650'000}));
  const Outcome outcome = train(6, "--data.mode shard");
  EXPECT_EQ(outcome.plan, (Counts{85, 65'000}));
  EXPECT_EQ(outcome.recorded, outcome.plan);
}

TEST_F(Epochs, InFullModeEachReplicaWalksThemAll) {
  EXPECT_EQ(plan_all(6, "--data.mode full"), (Counts{5'079, 3'900'000}));
  const Outcome outcome = train(6, "--data.mode full");
  EXPECT_EQ(outcome.plan, (Counts{508, 390'000}));
  EXPECT_EQ(outcome.recorded, outcome.plan);
}

// A fast worker begins its next walk while a slow one has not come to the short batch that ends its own: so
// the samples are those of the plan but for at most that batch of each worker.
TEST_F(Epochs, AtTheirOwnPaceWorkersMakeAStepOfEachBatch) {
  for (const auto& [mode, of_all, of_tenth] :
       {std::tuple("shard", Counts{5'082, 650'000}, Counts{510, 65'000}),
        {"full", {30'474, 3'900'000}, {3'048, 390'000}}}) {
    const std::string flags = fmt::format(
        "--data.mode {} --distribute.strategy parameter_server --distribute.servers 1 --distribute.mode "
        "async",
        mode);
    EXPECT_EQ(plan_all(7, flags), of_all);
    const Outcome outcome = train(7, flags);
    EXPECT_EQ(outcome.plan, of_tenth);
    EXPECT_EQ(outcome.recorded.steps, of_tenth.steps);
    EXPECT_NEAR(static_cast<double>(outcome.recorded.samples), static_cast<double>(of_tenth.samples),
                6 * 128);
    Counts of_workers;
    for (const Json& worker : outcome.summary.at("asynchrony").at("workers")) {
      of_workers.steps += worker.at("steps").get<Index>();
      of_workers.samples += worker.at("samples").get<Index>();
    }
    EXPECT_EQ(of_workers, outcome.recorded);
  }
}

}  // namespace
}  // namespace lockstep::test::epochs_test
