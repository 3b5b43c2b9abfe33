// What a sweep that starts again takes over from its directory.
#include "app/sweep/sweep_state.h"

#include "app/setup/catalogs.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/config/command_line.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"

namespace lockstep::sweep_state_test {

class SweepStateTest : public testing::Test {
 protected:
  CommandLine line(const std::string& grid = "train.lr=0.1,0.2,0.3,0.4,0.5") const {
    const std::string config = directory_ / "config.toml";
    write_file_atomically(config, "");
    return parse_command_line(
        {"sweep", "--config", config, "--grid", grid, "--run.dir", directory_ / "sweep"}, known_options());
  }

  static SweepState open(Communicator& comm, const CommandLine& line) {
    return {comm, line, "trial", [](const Config&, const SweepRequest& request) {
              return list_trials(request, known_options(), 1);
            }};
  }

  // Notes that the trials have ended so.
  void note(const std::vector<TrialState>& states) const {
    const CommandLine sweep = line();
    run_thread_ranks(1, [&](Communicator& comm) {
      const SweepState state = open(comm, sweep);
      for (std::size_t i = 0; i < states.size(); ++i) {
        TrialRow row = state.rows()[i];
        row.state = states[i];
        row.score = TrialScore{.value = 0.25, .step = 7, .epoch = 1};
        row.steps = 10;
        state.write_row(row);
      }
    });
  }

  RunDirectory trial(Index number) const {
    return SweepDirectory{.root = directory_ / "sweep"}.trial(number);
  }
  test::TemporaryDirectory directory_;
};

TEST_F(SweepStateTest, TakesATrialForDoneOnlyIfItsRunIsThere) {
  note({TrialState::kDone, TrialState::kDone, TrialState::kFailed, TrialState::kPaused});
  std::filesystem::create_directories(trial(1).root);
  write_file_atomically(trial(1).record(), "{}");
  std::filesystem::create_directories(trial(2).root);  // its record is gone
  const CommandLine sweep = line();
  for (const int ranks : {1, 2}) {
    run_thread_ranks(ranks, [&](Communicator& comm) {
      const SweepState state = open(comm, sweep);
      const std::vector<TrialRow>& rows = state.rows();
      ASSERT_EQ(rows.size(), 5U);
      EXPECT_EQ(rows[0].state, TrialState::kDone);
      EXPECT_EQ(rows[0].score->value, 0.25);
      EXPECT_EQ(rows[1].state, TrialState::kWaiting) << "it is made again";
      EXPECT_FALSE(rows[1].score);
      EXPECT_EQ(rows[2].state, TrialState::kFailed) << "it has no record, and is over";
      EXPECT_EQ(rows[3].state, TrialState::kPaused);
      EXPECT_EQ(rows[4].state, TrialState::kWaiting) << "nothing was noted";
      for (Index i = 0; i < 5; ++i) {
        EXPECT_EQ(at(rows, i).number, i + 1);
        ASSERT_EQ(at(rows, i).settings.size(), 1U);
        EXPECT_EQ(at(rows, i).settings[0].value, "0." + std::to_string(i + 1));
      }
    });
  }
}

TEST_F(SweepStateTest, RefusesARowOfOtherSettings) {
  note({TrialState::kFailed, TrialState::kFailed});
  std::filesystem::rename(SweepDirectory{.root = directory_ / "sweep"}.row(2),
                          SweepDirectory{.root = directory_ / "sweep"}.row(1));
  const CommandLine sweep = line();
  test::expect_parts(
      test::error_text<Error>([&] { run_thread_ranks(1, [&](Communicator& comm) { open(comm, sweep); }); }),
      {"trial-0001.json' is of a trial with train.lr 0.2, expected train.lr 0.1"});
}

TEST_F(SweepStateTest, NeedsRanksThatTrialsCanShare) {
  CommandLine sweep = line();
  sweep.flags["ranks-per-trial"] = {"2"};
  run_thread_ranks(4, [&](Communicator& comm) { EXPECT_EQ(open(comm, sweep).rows().size(), 5U); });
  const auto error = [&](int ranks) {
    return test::error_text<Error>(
        [&] { run_thread_ranks(ranks, [&](Communicator& comm) { open(comm, sweep); }); });
  };
  test::expect_parts(error(3), {"--ranks-per-trial 2 does not divide 3 ranks", "mpirun -np 2"});
  test::expect_parts(error(1), {"does not divide 1 rank:", "mpirun -np 2"});
}

}  // namespace lockstep::sweep_state_test
