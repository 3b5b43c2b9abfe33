// Signals that ask the program to stop, many at once, while ranks multiply large matrices: no crash, an
// orderly end, and the bits of a run that was left alone. LOCKSTEP_STORMS in the environment: how often each
// run is stopped.
#include <csignal>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "support/idx_files.h"
#include "support/running_job.h"
#include "support/temporary_directory.h"
#include "support/trainer_process.h"

namespace lockstep::test::signals_test {
namespace {

constexpr std::array kStopSignals{SIGTERM, SIGINT, SIGUSR1};

int storms() {
  const char* text = std::getenv("LOCKSTEP_STORMS");
  return text == nullptr ? 2 : std::atoi(text);
}

std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> threads;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), gone))
    threads.push_back(static_cast<pid_t>(std::stol(entry.path().filename())));
  return threads;
}

// Bit n - 1 is set where signal n is blocked.
std::uint64_t blocked_signals(pid_t process, pid_t thread) {
  const std::string status = read_file(fmt::format("/proc/{}/task/{}/status", process, thread));
  const std::string key = "SigBlk:\t";
  const char* const digits = status.data() + status.find(key) + key.size();
  std::uint64_t blocked = 0;
  std::from_chars(digits, digits + 16, blocked, 16);
  return blocked;
}

void expect_stop_signals_blocked(const std::vector<pid_t>& ranks) {
  std::uint64_t stops = 0;
  for (const int signal : kStopSignals) stops |= std::uint64_t{1} << (signal - 1);
  for (const pid_t rank : ranks) {
    for (const pid_t thread : threads_of(rank))
      EXPECT_EQ(blocked_signals(rank, thread) & stops, stops) << "rank " << rank << ", thread " << thread;
  }
}

class SignalStorm : public testing::TestWithParam<std::pair<int, int>> {  // ranks, threads
 protected:
  static void SetUpTestSuite() {
    directory_ = std::make_unique<TemporaryDirectory>();
    const IdxPair data =
        write_idx_pair(*directory_ / "train", {.rows = 4096, .shape = {{784}}, .compressed = false});
    write_file_atomically(*directory_ / "run.toml",
                          fmt::format(R"toml([data]
train = "{}"
train_labels = "{}"
[model]
layers = "dense(256) relu dense(128) relu dense(10)"
[train]
lr = 0.01
momentum = 0.9
global_batch = 2048
replicas = 4
epochs = {}
[distribute]
reduction = "ordered"
[checkpoint]
every = "never"
)toml",
                                      data.images, data.labels, 20 * (storms() + 1)));
    const std::string run = *directory_ / "undisturbed";
    const ProcessResult result = run_trainer(1, arguments(run));
    ASSERT_EQ(result.exit_code, 0) << result.errors;
    model_ = read_file(run + "/model.safetensors");
  }
  static void TearDownTestSuite() { directory_.reset(); }

  static std::string arguments(const std::string& run, int threads = 1, int prefetch = 0) {
    return fmt::format("--config {} --run.dir {} --run.progress none --train.threads {} --data.prefetch {}",
                       *directory_ / "run.toml", run, threads, prefetch);
  }

  static inline std::unique_ptr<TemporaryDirectory> directory_;
  static inline std::string model_;  // of the run that was left alone
};

TEST_P(SignalStorm, StopsInOrderAndKeepsEveryBit) {
  const auto [ranks, threads] = GetParam();
  const std::string run = *directory_ / fmt::format("run-{}-{}", ranks, threads);
  for (int storm = 0; storm <= storms(); ++storm) {
    const bool last = storm == storms();
    SCOPED_TRACE(fmt::format("start {}", storm + 1));
    RunningJob job(ranks, arguments(run, threads, storm % 2 == 0 ? 0 : 8));
    ASSERT_TRUE(job.says("loaded", 30)) << job.output() << job.errors();
    const std::vector<pid_t> pids = job.started_ranks();
    if (storm == 0) expect_stop_signals_blocked(pids);
    for (std::size_t i = 0; !last && i < 5 * kStopSignals.size(); ++i) {
      for (const pid_t pid : pids) ::kill(pid, kStopSignals[(i + static_cast<std::size_t>(storm)) % 3]);
    }
    ASSERT_EQ(job.wait(60), last ? 0 : kExitStopped) << job.output() << job.errors();
  }
  EXPECT_TRUE(read_file(run + "/model.safetensors") == model_);
}

INSTANTIATE_TEST_SUITE_P(Settings, SignalStorm,
                         testing::Values(std::pair{1, 1}, std::pair{1, 2}, std::pair{2, 1}, std::pair{2, 2}),
                         [](const auto& test) {
                           return fmt::format("{}ranks{}threads", test.param.first, test.param.second);
                         });

}  // namespace
}  // namespace lockstep::test::signals_test
