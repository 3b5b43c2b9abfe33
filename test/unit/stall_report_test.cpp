// Whom a report blames, given what is known of each rank.
#include <gtest/gtest.h>

#include "comm/stall_report.h"

namespace lockstep {
namespace {

RankStatus waiting(int rank, Call call, Index number) {
  RankStatus status{.rank = rank, .host = "node1", .pid = 100 + rank};
  status.known = true;
  status.answered = true;
  status.call = call;
  status.call_number = number;
  return status;
}

RankStatus computing(int rank) {
  RankStatus status = waiting(rank, Call::kNone, 0);
  status.phase = Phase::kCompute;
  status.step = 11;
  status.first_sample = 264;
  status.end_sample = 288;
  status.bucket = 3;
  status.stuck = 12;
  return status;
}

using Ranks = std::vector<RankStatus>;

TEST(MissingRanks, AreThoseInNoCall) {
  EXPECT_EQ(missing_ranks(Ranks{waiting(0, Call::kBarrier, 7), computing(1), waiting(2, Call::kBarrier, 7)}),
            std::vector{1});
}

TEST(MissingRanks, AreThoseThatDoNotAnswerWhateverTheyWereIn) {
  Ranks ranks{waiting(0, Call::kBarrier, 7), waiting(1, Call::kBarrier, 7), waiting(2, Call::kBarrier, 7)};
  ranks[0].answered = false;
  ranks[2].known = false;
  EXPECT_EQ(missing_ranks(ranks), (std::vector{0, 2}));
}

TEST(MissingRanks, AreTheMinorityWhereAllWait) {
  EXPECT_EQ(missing_ranks(Ranks{waiting(0, Call::kBarrier, 7), waiting(1, Call::kAllReduce, 7),
                                waiting(2, Call::kBarrier, 7)}),
            std::vector{1});
  EXPECT_EQ(missing_ranks(Ranks{waiting(0, Call::kBarrier, 8), waiting(1, Call::kBarrier, 7),
                                waiting(2, Call::kBarrier, 8)}),
            std::vector{1});
}

TEST(MissingRanks, AreAllWhereNeitherSideHasMore) {
  EXPECT_EQ(missing_ranks(Ranks{waiting(0, Call::kBarrier, 8), waiting(1, Call::kBarrier, 7)}),
            (std::vector{0, 1}));
}

TEST(MissingRanks, AreNoneWhereAllWaitInTheSameCall) {
  const Ranks ranks{waiting(0, Call::kBarrier, 7), waiting(1, Call::kBarrier, 7)};
  EXPECT_TRUE(missing_ranks(ranks).empty());
  EXPECT_NE(describe_stall(ranks, 61).find("look at the network"), std::string::npos);
}

TEST(StallReport, SaysWhereTheMissingOneIsAndWhatTheOthersWaitFor) {
  EXPECT_EQ(describe_stall(Ranks{waiting(0, Call::kBarrier, 7), computing(1)}, 61),
            "stall: ranks have waited for 61.0 s; 1 of 2 did not arrive: rank 1\n"
            "  rank 1 (host node1, pid 101): it has not got on for 12.0 s; last seen in phase forward and "
            "backward of step 12, samples 264 to 287, bucket 3\n"
            "  waiting in barrier 7 of all ranks: rank 0");
}

TEST(StallReport, NamesTheStageTheMicroBatchAndTheDirection) {
  RankStatus status = computing(1);
  status.stage = 2;
  status.phase = Phase::kStageBackward;
  EXPECT_NE(describe_stall(Ranks{waiting(0, Call::kWait, 0), status}, 61)
                .find("in phase backward of step 12, samples 264 to 287, micro-batch 3 of stage 2"),
            std::string::npos);
  status.phase = Phase::kOptimizer;
  EXPECT_NE(describe_stall(Ranks{status}, 61).find(", stage 2, bucket 3"), std::string::npos);
}

// The workers of each stage are a communicator of their own, and these have one number.
TEST(StallReport, KeepsTheCallsOfDifferentStagesApart) {
  Ranks ranks;
  for (const int rank : {0, 1}) {
    RankStatus status = waiting(rank, Call::kWait, 5);
    status.communicator = 1;
    status.stage = rank;
    ranks.push_back(status);
  }
  EXPECT_TRUE(missing_ranks(ranks).empty()) << "each may wait for the network";
  const std::string text = describe_stall(ranks, 61);
  EXPECT_NE(text.find("part 1 of the ranks, on stage 0: rank 0"), std::string::npos);
  EXPECT_NE(text.find("part 1 of the ranks, on stage 1: rank 1"), std::string::npos);
}

TEST(StallReport, PassesThroughAFileOfItsNode) {
  RankStatus staged = computing(5);
  staged.stage = 1;
  staged.phase = Phase::kStageForward;
  const Ranks ranks{waiting(4, Call::kFence, 7), staged};
  const Ranks read = statuses_from_json(to_json(ranks));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[1].stage, 1);
  EXPECT_EQ(describe_stall(read, 1), describe_stall(ranks, 1));
  for (const char* text : {"", "{", "[{}]", "[1]", R"([{"rank":"x"}])", "{\"rank\":1}"}) {
    EXPECT_TRUE(statuses_from_json(text).empty()) << text;
  }
}

}  // namespace
}  // namespace lockstep
