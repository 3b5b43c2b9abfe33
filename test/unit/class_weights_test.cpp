// train.class_weights: what is balanced, what is matched with the classes, and what is refused.
#include "lockstep/train/class_weights.h"

#include "lockstep/base/errors.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/parts/validation_split.h"
#include "lockstep/train/rank_peer_group.h"
#include "support/error_text.h"
#include "support/numpy_files.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"
#include "support/torch_references.h"

namespace lockstep::test::class_weights_test {

using Texts = std::vector<std::string>;

DatasetInfo mails() {
  DatasetInfo info;
  info.name = "mails.csv";
  info.class_names = {"ham", "spam", "to: read"};
  return info;
}

std::vector<Scalar> match(const Texts& option, const DatasetInfo& data, Index classes) {
  return match_class_weights(parse_class_weights(option), data, classes);
}

std::string refusal(const Texts& option, const DatasetInfo& data = mails(), Index classes = 3) {
  return error_text<ConfigError>([&] { match(option, data, classes); });
}

TEST(ClassWeights, BalancedAreThoseOfScikitLearn) {
  for (const nlohmann::json& reference : torch_references("balanced", "target_references.json"))
    expect_close(balance_classes(reference.at("counts").get<std::vector<Index>>()), reference.at("weights"),
                 0);
}

TEST(ClassWeights, OfAClassWithoutRecordsTheOthersCountAlike) {
  const std::vector<Index> counts{5, 0, 15};
  EXPECT_EQ(balance_classes(counts), (std::vector<Scalar>{2, 1, 20.0F / 30}));
  expect_parts(describe_unbalanced(counts, mails()),
               {"\"balanced\": no training record of 'mails.csv' is of class 'spam'"});
  EXPECT_EQ(describe_unbalanced(std::vector<Index>{1, 2, 3}, mails()), "");
}

TEST(ClassWeights, AreMatchedByNameOrNumberInAnyOrder) {
  const std::vector<Scalar> expected{0.5F, 4, 1};
  EXPECT_EQ(match({"spam: 4", "to: read:1", "ham : 0.5"}, mails(), 3), expected);
  EXPECT_EQ(match({"1: 4", "2: 1", "0: 0.5"}, mails(), 3), expected);
  EXPECT_EQ(match({"1: 4", "2: 1", "0: 0.5"}, {}, 3), expected);
  DatasetInfo digits;
  digits.class_names = {"1", "7"};  // a name goes before a number
  EXPECT_EQ(match({"7: 3", "1: 2"}, digits, 2), (std::vector<Scalar>{2, 3}));
}

TEST(ClassWeights, AreToldWithWhatWasCounted) {
  EXPECT_EQ(describe_class_weights(std::vector<Scalar>{0.625F, 2.5F, 1.23456F},
                                   std::vector<Index>{1600, 400, 7}, mails(), "records"),
            "'ham' 0.625 (1,600 records), 'spam' 2.5 (400 records), 'to: read' 1.235 (7 records)");
  EXPECT_EQ(describe_class_weights(std::vector<Scalar>{3}, {}, {}, "positions"), "0 3");
}

TEST(ClassWeights, ThatDoNotFitTheClassesAreRefused) {
  EXPECT_EQ(refusal({"ham: 1", "spma: 2", "to: read: 1"}),
            "train.class_weights names the class 'spma', which there is not: the classes of 'mails.csv' are "
            "ham, spam, to: read; did you mean 'spam'?");
  expect_parts(refusal({"ham: 1", "spam: 2"}), {"no weight for the class 'to: read'", "name every class"});
  expect_parts(refusal({"ham: 1", "spam: 2", "spam: 3"}), {"'spam' twice"});
  expect_parts(refusal({"ham: 0", "spam: 0", "2: 0"}), {"all weights are 0"});
  expect_parts(refusal({"0: 1", "3: 1"}, {}, 3), {"the class '3'", "the numbers 0 to 2"});
  for (const char* number : {"-1", "1.5", "1e300", "nan"})
    expect_parts(refusal({"0: 1", fmt::format("{}: 1", number)}, {}, 3), {"which there is not"});
  for (const char* entry : {"ham", "ham: much", "ham: -1", "ham:", "ham: nan", "ham: inf", "ham: 1e-45"})
    expect_parts(refusal({entry, "spam: 1", "to: read: 1"}),
                 {"expected \"balanced\", or a number of 0 or more", fmt::format("'{}'", entry)});
}

// The counts on one to three ranks, which are to be the same.
std::vector<Index> count(const DataOptions& options, Index classes) {
  std::vector<Index> first;
  for (int ranks = 1; ranks <= 3; ++ranks) {
    run_thread_ranks(ranks, [&](Communicator& comm) {
      RankPeerGroup peers(comm);
      const auto source = choose_format(options).open({options, Split::kTrain, 1, peers});
      const std::vector<Index> counts = count_classes(*source, {.classes = classes}, classes, peers);
      if (comm.size() == 1) first = counts;
      EXPECT_EQ(counts, first) << ranks << " ranks";
    });
  }
  return first;
}

TEST(ClassWeights, CountsAreThoseOfTheWholeSetOnAnyNumberOfRanks) {
  const TemporaryDirectory directory;
  constexpr Index kRows = 5000;
  constexpr Index kFeatures = 200;  // so that there are several chunks
  std::vector<std::uint8_t> labels;
  std::vector<Scalar> soft;
  for (Index id = 0; id < kRows; ++id) {
    labels.push_back(id % 7 == 0 ? 2 : id % 2 == 0 ? 1 : 0);
    const Scalar other = labels.back() == 0 ? 0.25F : 0.75F;
    soft.insert(soft.end(), {1 - other, other});
  }
  const auto write = [&](const std::string& name, const std::string& content) {
    std::ofstream(directory / name, std::ios::binary) << content;
    return directory / name;
  };
  DataOptions options;
  options.train = write("x.npy", npy_content("|u1", {kRows, kFeatures}, std::string(kRows * kFeatures, 'x')));
  options.train_labels = write("y.npy", npy_content("|u1", {kRows}, bytes_of(labels)));
  const Index twos = std::ranges::count(labels, 2), ones = std::ranges::count(labels, 1);
  EXPECT_EQ(count(options, 4), (std::vector<Index>{kRows - ones - twos, ones, twos, 0}));
  options.train_labels = write("soft.npy", npy_content("<f4", {kRows, 2}, bytes_of(soft)));
  EXPECT_EQ(count(options, 2), (std::vector<Index>{kRows - ones - twos, ones + twos})) << "soft labels";
  DataOptions computed;
  computed.format = "synthetic";
  computed.synthetic = {.rows = 301, .classes = 3};
  const std::vector<Index> counts = count(computed, 3);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), Index{0}), 301);
}

}  // namespace lockstep::test::class_weights_test
