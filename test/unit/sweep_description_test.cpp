// sweep.toml: which sweep goes on, and which numbers its trials have once it has grown.
#include "app/sweep/sweep_description.h"

#include "app/setup/catalogs.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"

namespace lockstep::test::sweep_description_test {

const ListTrials kList = [](const Config&, const SweepRequest& request) {
  return list_trials(request, known_options(), 1);
};

SweepRequest grid(std::vector<std::string> grids) {
  return {.grids = std::move(grids)};
}

std::string described(const std::string& before, const SweepRequest& request, const Config& base = {}) {
  return describe_sweep(before, request, base, kList);
}

std::vector<std::string> trials_of(const std::string& text, const SweepRequest& request) {
  std::vector<std::string> trials;
  for (const auto& settings : described_trials(text, request, {}, kList))
    trials.push_back(describe_settings(settings));
  return trials;
}

TEST(SweepDescription, KeepsTheNumbersOfTrialsThatItHas) {
  const SweepRequest first = grid({"train.lr=0.5,0.1"}), second = grid({"train.lr=0.1,0.2,0.5"});
  const SweepRequest third = grid({"train.lr=0.05,0.1,0.2,0.5"});
  const std::string one = described("", first), two = described(one, second);
  const std::string three = described(two, third);
  EXPECT_EQ(trials_of(one, first), (std::vector<std::string>{"train.lr 0.5", "train.lr 0.1"}));
  EXPECT_EQ(trials_of(three, third),
            (std::vector<std::string>{"train.lr 0.5", "train.lr 0.1", "train.lr 0.2", "train.lr 0.05"}));
  EXPECT_EQ(described(three, third), three) << "the same command changes nothing";
  EXPECT_EQ(described(one, grid({"train.lr=0.1,0.5"})), one) << "nor does another order";
  expect_parts(error_text<ConfigError>([&] { described(three, second); }),
               {"it had '--grid train.lr=0.05,0.1,0.2,0.5'", "now there is '--grid train.lr=0.1,0.2,0.5'"});
}

TEST(SweepDescription, GrowsWithTheKeysThatItHas) {
  const std::string one = described("", grid({"train.lr=0.5", "train.momentum=0.9"}));
  const SweepRequest more = grid({"train.momentum=0.9,0.5", "train.lr=0.5"});
  EXPECT_EQ(
      trials_of(described(one, more), more),
      (std::vector<std::string>{"train.lr 0.5, train.momentum 0.9", "train.lr 0.5, train.momentum 0.5"}));
  for (const SweepRequest& other :
       {grid({"train.lr=0.5"}), grid({"train.momentum=0.9", "train.epochs=5", "train.lr=0.5"})}) {
    expect_parts(error_text<ConfigError>([&] { described(one, other); }), {"it had '--grid train."});
  }
}

TEST(SweepDescription, GrowsByFurtherDraws) {
  SweepRequest request{.randoms = {"train.lr=log(1e-4,1)"}, .draws = 3};
  const std::string one = described("", request);
  const std::vector<std::string> before = trials_of(one, request);
  request.draws = 5;
  const std::vector<std::string> after = trials_of(described(one, request), request);
  ASSERT_EQ(after.size(), 5U);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
  // Draws of a choice are the same now and then, and each is a trial.
  SweepRequest choice{.randoms = {"train.lr=choice(0.5|0.25)"}, .draws = 4};
  const std::string four = described("", choice);
  choice.draws = 9;
  EXPECT_EQ(trials_of(described(four, choice), choice).size(), 9U);
}

TEST(SweepDescription, KeepsTheKeysThatDecideWhatComesOut) {
  const SweepRequest request = grid({"train.lr=0.5,0.1"});
  const std::string text = described("", request);
  Config other;
  other.optimizer.momentum = 0.25;
  expect_parts(error_text<ConfigError>([&] { described(text, request, other); }),
               {"it had 'train.momentum = ", "now there is 'train.momentum = 0.25'"});
  other = {};
  other.run.dir = "elsewhere";
  EXPECT_EQ(described(text, request, other), text) << "what decides only how runs are carried out may change";
}

TEST(SweepDescription, KeepsItsOtherFlags) {
  SweepRequest request = grid({"train.lr=0.5,0.1"});
  request.halving = 2;
  const std::string text = described("", request);
  SweepRequest more = request;
  more.grids = {"train.lr=0.5,0.1,0.2"};
  expect_parts(error_text<ConfigError>([&] { described(text, more); }), {"--halving", "cannot grow"});
  more = request;
  more.halving = 3;
  expect_parts(error_text<ConfigError>([&] { described(text, more); }), {"'--halving 2'", "'--halving 3'"});
  more = request;
  more.ranks_per_trial = 2;
  expect_parts(error_text<ConfigError>([&] { described(text, more); }), {"'--ranks-per-trial 2'"});
}

// A set is known by its kind and its name. Another content of one that was read before is a change, whoever
// finds it; data of another name are not, as where data.train varies.
TEST(SweepData, OnlyAnotherContentOfTheSameSetIsAChange) {
  const TemporaryDirectory directory;
  const std::string noted = directory / "data.json";
  const auto set = [&](const std::string& kind, const std::string& name, const std::string& content) {
    write_file_atomically(directory.path() / name, content);
    return RunData{.kind = kind, .name = name, .files = {directory / name}, .whole = true};
  };
  const auto note = [&](const std::vector<RunData>& data, const std::string& trial) {
    std::string change;
    run_thread_ranks(1, [&](Communicator& comm) { change = note_data(comm, noted, data, trial); });
    return change;
  };
  const auto found = [&] {
    std::string change;
    run_thread_ranks(1, [&](Communicator& comm) { change = find_changed_data(comm, noted); });
    return change;
  };
  EXPECT_EQ(note({set("training", "a", "1"), set("test", "b", "2")}, "trial-0001"), "");
  EXPECT_EQ(note({set("training", "c", "3"), set("training", "b", "2")}, "trial-0002"), "");
  EXPECT_EQ(note({set("training", "a", "1"), {.kind = "test", .name = "made up", .files = {}}}, "trial-0003"),
            "");
  EXPECT_EQ(found(), "");
  const std::string before = read_file(noted);
  const std::vector<std::string> said{"the training data have changed since trial-0002",
                                      "'c' has another content"};
  expect_parts(note({set("training", "a", "1"), set("training", "c", "4")}, "trial-0004"), said);
  expect_parts(found(), said);
  EXPECT_EQ(read_file(noted), before);
  std::filesystem::remove(directory / "c");
  EXPECT_EQ(found(), "") << "what is gone says nothing";
}

}  // namespace lockstep::test::sweep_description_test
