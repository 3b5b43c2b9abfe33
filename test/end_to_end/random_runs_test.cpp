// Random experiments, each run on one rank, on several, and ended early and resumed in another way: the bytes
// must be the same where that is promised, the exit codes those that are documented, and nothing hangs or
// stays behind.
//
// One more draw is made while LOCKSTEP_DRAW_SECONDS (30) are not over, or LOCKSTEP_DRAWS are not made. To
// repeat one alone: the printed --seed, and LOCKSTEP_DRAW=its number.
#include <csignal>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/timer.h"
#include "support/random_experiment.h"
#include "support/running_job.h"
#include "support/seed.h"
#include "support/small_experiment.h"
#include "support/temporary_directory.h"

namespace lockstep::test::random_runs_test {
namespace {

constexpr double kMaxSeconds = 120;   // of a run that takes about one
constexpr double kStartSeconds = 20;  // after which a launcher does not end whose rank died at its start
constexpr double kLongestLife = 1.5;  // seconds until a run is ended, if it lasts that long

Index from_environment(const char* name, Index otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

struct Outcome {
  int exit_code = 0;
  std::string errors;
  std::string model;
  std::string metrics;
};

class Draw {
 public:
  explicit Draw(Index number) : dice_(seed(), number), experiment_(dice_, directory_.path()) {
    write_file_atomically(directory_ / "run.toml", experiment_.config());
  }

  /// The exit code of the undisturbed run.
  int check();
  /// Its config, and what was done with it.
  std::string describe() const { return experiment_.config() + story_; }
  /// Keeps the files.
  void keep(const std::string& path) const {
    std::filesystem::copy(directory_.path(), path, std::filesystem::copy_options::recursive);
  }

 private:
  enum class End { kKilledRank, kStopSignal, kStopFile, kFailingRank };

  RandomExperiment::Way any_way() {
    const std::vector<Index> workers = experiment_.workers();
    return experiment_.draw_way(dice_, at(workers, dice_.whole(0, std::ssize(workers) - 1)));
  }
  std::string arguments(const std::string& run, const RandomExperiment::Way& way);
  Outcome finish(RunningJob& job, const std::string& run);
  Outcome run_whole(const std::string& name, const RandomExperiment::Way& way);
  void expect_same(const Outcome& found, const Outcome& expected) const;
  void end_early(const std::string& name, Index steps);
  void interrupt(RunningJob& job, End end, const std::string& run);

  TemporaryDirectory directory_;
  Dice dice_;
  RandomExperiment experiment_;
  std::string story_;
};

std::string Draw::arguments(const std::string& run, const RandomExperiment::Way& way) {
  const std::string arguments =
      fmt::format("--config {} --run.dir {} --run.progress none {}", directory_ / "run.toml", run, way.flags);
  story_ += fmt::format("np {}: trainer {}\n", way.ranks(), arguments);
  return arguments;
}

std::string content_of(const std::string& path) {
  return std::filesystem::exists(path) ? read_file(path) : "";
}

Outcome Draw::finish(RunningJob& job, const std::string& run) {
  const int exit_code = job.wait(kMaxSeconds);
  EXPECT_NE(exit_code, -1) << "hangs: " << job.output() << job.errors();
  EXPECT_EQ(job.processes_left(), 0);
  story_ += fmt::format("ends with {}\n", exit_code);
  const bool has_metrics = std::filesystem::exists(run + "/metrics.jsonl");
  return {.exit_code = exit_code,
          .errors = job.errors(),
          .model = content_of(run + "/model.safetensors"),
          .metrics = has_metrics ? metrics_of(run) : ""};
}

Outcome Draw::run_whole(const std::string& name, const RandomExperiment::Way& way) {
  const std::string run = directory_ / name;
  RunningJob job(static_cast<int>(way.ranks()), arguments(run, way));
  return finish(job, run);
}

void Draw::expect_same(const Outcome& found, const Outcome& expected) const {
  EXPECT_EQ(found.exit_code, expected.exit_code) << found.errors << "\ninstead of\n" << expected.errors;
  if (!experiment_.same_bits() || expected.exit_code != 0) return;
  EXPECT_TRUE(found.model == expected.model) << "another model";
  EXPECT_EQ(found.metrics, expected.metrics);
}

int Draw::check() {
  const Outcome alone = run_whole("alone", experiment_.draw_way(dice_, 1));
  const std::array documented{0, kExitConfig, kExitData, kExitTraining};
  EXPECT_NE(std::ranges::find(documented, alone.exit_code), documented.end())
      << alone.exit_code << ": " << alone.errors;
  expect_same(run_whole("several", experiment_.draw_way(dice_, experiment_.workers().back())), alone);
  if (alone.exit_code != 0) {
    const std::size_t error = std::min(alone.errors.find("error: "), alone.errors.size());
    const std::string line = alone.errors.substr(error, alone.errors.find('\n', error) - error);
    std::printf("ends with %d: %s\n", alone.exit_code, line.c_str());
    return alone.exit_code;
  }
  const auto summary = parse_json<nlohmann::json>(read_file(directory_ / "alone/summary.json"));
  const Index steps = summary.at("steps");
  for (Index ends = dice_.whole(1, 2); ends-- > 0;) end_early("resumed", steps);
  expect_same(run_whole("resumed", any_way()), alone);
  return 0;
}

// Steps are slowed down, so that there is something to be ended.
void Draw::end_early(const std::string& name, Index steps) {
  const auto end = static_cast<End>(dice_.whole(0, 3));
  RandomExperiment::Way way = any_way();
  way.flags += fmt::format(" --debug.delay_rank 0 --debug.delay_ms {}", std::min<Index>(50, 1000 / steps));
  if (end == End::kFailingRank) {
    way.flags += fmt::format(" --debug.fail_rank {} --debug.fail_step {}", dice_.whole(0, way.ranks() - 1),
                             dice_.whole(0, steps - 1));
  }
  const std::string run = directory_ / name;
  RunningJob job(static_cast<int>(way.ranks()), arguments(run, way));
  interrupt(job, end, run);
  const bool starting = end == End::kKilledRank && job.output().empty();
  if (starting && job.wait(kStartSeconds) == -1) return job.kill_launcher();  // as in kill_test
  const Outcome outcome = finish(job, run);
  if (end == End::kStopSignal || end == End::kStopFile) {
    EXPECT_TRUE(outcome.exit_code == 0 || outcome.exit_code == kExitStopped)
        << outcome.exit_code << ": " << outcome.errors;
  }
}

void Draw::interrupt(RunningJob& job, End end, const std::string& run) {
  const auto sleep = [](double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  };
  const double life = dice_.real(0, kLongestLife);
  const auto victim = static_cast<std::size_t>(dice_.whole(0, 2));
  const int signal = std::array{SIGTERM, SIGINT, SIGUSR1}[static_cast<std::size_t>(dice_.whole(0, 2))];
  if (end == End::kFailingRank) return;
  const std::vector<pid_t> pids = job.started_ranks();
  const pid_t pid = pids[victim % pids.size()];
  const Stopwatch watch;
  const auto starts = [&] { return job.wait(0) < 0 && watch.seconds() < kMaxSeconds; };
  // From its plan on a run stops when it is asked to.
  while (end != End::kKilledRank && starts() && !job.says("plan:", 0.05)) {
  }
  sleep(life);
  constexpr std::array kEnds{"SIGKILL", "a signal to stop", "a file to stop"};
  story_ += fmt::format("{} after {:.3f} s\n", kEnds[static_cast<std::size_t>(end)], life);
  if (end == End::kStopFile && std::filesystem::exists(run)) write_file_atomically(run + "/stop", "");
  if (end == End::kStopSignal && pid > 0) ::kill(pid, signal);
  if (end == End::kKilledRank && pid > 0) ::kill(pid, SIGKILL);
}

TEST(RandomRuns, KeepTheirPromises) {
  const Index draws = from_environment("LOCKSTEP_DRAWS", 0);
  const Index only = from_environment("LOCKSTEP_DRAW", -1);
  const auto seconds = static_cast<double>(from_environment("LOCKSTEP_DRAW_SECONDS", 30));
  const Stopwatch watch;
  const testing::TestResult& result = *testing::UnitTest::GetInstance()->current_test_info()->result();
  std::map<int, int> ends;  // draws by exit code
  for (Index number = std::max<Index>(only, 0);; ++number) {
    const bool more = draws > 0 ? number < draws : watch.seconds() < seconds;
    if (only >= 0 ? number > only : !more) break;
    const int failures_before = result.total_part_count();
    Draw draw(number);
    ++ends[draw.check()];
    if (result.total_part_count() == failures_before) continue;
    const std::string kept = fmt::format("{}lockstep-draw-{}-{}", testing::TempDir(), seed(), number);
    draw.keep(kept);
    ADD_FAILURE() << "draw " << number << " (repeat it with --seed=" << seed()
                  << " and LOCKSTEP_DRAW=" << number << "; its files are in " << kept << "):\n"
                  << draw.describe();
  }
  for (const auto& [code, count] : ends) std::printf("draws that end with %d: %d\n", code, count);
}

}  // namespace
}  // namespace lockstep::test::random_runs_test
