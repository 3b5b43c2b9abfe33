// The numbers of a timeline in text: two ranks, one of which waits for the other.
#include "lockstep/report/trace/trace.h"
#include "support/error_text.h"

namespace lockstep::test::trace_summary_test {

// Milliseconds.
ThreadEvent event(int thread, TraceKind kind, std::int64_t begin, std::int64_t end,
                  std::int32_t detail = -1) {
  return {.thread = thread,
          .event = {.begin = begin * 1'000'000, .end = end * 1'000'000, .detail = detail, .kind = kind}};
}

// In a step of 100 ms the main thread of rank 0 gets data for 10, computes for 65, of which 15 beside a
// bucket of 30, waits 10 for rank 1, exchanges for 10 more, and steps for 5. Its other thread computes
// for 50.
RunTrace two_ranks() {
  RunTrace trace{.ranks_of_run = 2, .ops = {"0 'dense(2)'", "1 'relu'"}};
  trace.ranks.push_back(
      {.rank = 0,
       .threads = {"main", "worker"},
       .steps = {
           {.step = 1233,
            .seconds = 0.1,
            .events = {event(0, TraceKind::kStep, 0, 100), event(0, TraceKind::kData, 0, 10),
                       event(0, TraceKind::kForward, 10, 30, 0), event(0, TraceKind::kLoss, 30, 35),
                       event(0, TraceKind::kBackward, 35, 75, 0), event(0, TraceKind::kBucket, 60, 80, 0),
                       event(0, TraceKind::kBucket, 70, 90, 1), event(0, TraceKind::kExchange, 75, 95, 0),
                       event(0, TraceKind::kOptimizer, 95, 100), event(1, TraceKind::kForward, 10, 40, 1),
                       event(1, TraceKind::kBackward, 40, 60, 1)}}}});
  trace.ranks.push_back(
      {.rank = 1,
       .threads = {"main"},
       .steps = {{.step = 1233,
                  .seconds = 0.1,
                  .events = {event(0, TraceKind::kStep, 0, 100), event(0, TraceKind::kForward, 0, 85, 0),
                             event(0, TraceKind::kExchange, 85, 95, 0)}}}});
  trace.last_arrivals = find_last_arrivals(trace.ranks);
  return trace;
}

TEST(TraceSummary, DividesTheTimeOfTheMainThreads) {
  expect_parts(summarise_trace(two_ranks()), {"main threads of all ranks:\n"
                                              "  forward     52.5 %      105.000 ms\n"
                                              "  loss         2.5 %        5.000 ms\n"
                                              "  backward    20.0 %       40.000 ms\n"
                                              "  optimizer    2.5 %        5.000 ms\n"
                                              "  rest         2.5 %        5.000 ms\n"
                                              "  exchange    10.0 %       20.000 ms\n"
                                              "  waiting      5.0 %       10.000 ms\n"
                                              "  data         5.0 %       10.000 ms\n"});
}

TEST(TraceSummary, NamesLayersOverlapAndReasonsToBeIdle) {
  const std::string text = summarise_trace(two_ranks());
  expect_parts(text, {"   74.4 %  0 'dense(2)' (forward 105.000 ms, backward 40.000 ms)\n"
                      "   25.6 %  1 'relu' (forward 30.000 ms, backward 20.000 ms)\n",
                      "overlap: 50.0 % of the time in which buckets are exchanged, the rank computes\n",
                      "  data         5.0 %\n"
                      "  exchange    10.0 %  that nothing hides\n"
                      "  waiting      5.0 %\n"
                      "    for rank 1: 5.0 %\n"
                      "  other threads that compute are idle 50.0 % of the time\n",
                      "slowest steps: 1,234 (100.00 ms)\n"});
  EXPECT_EQ(text.find("for rank 0"), std::string::npos) << "the last one waits for nobody";
}

// By its middle step: rank 0 makes kernels in its first one, and a long one is waiting for rank 1.
TEST(TraceSummary, NamesTheRankThatDelaysAShortRun) {
  const auto run_with = [](std::int64_t late) {
    RunTrace trace{.ranks_of_run = 2};
    for (int rank = 0; rank < 2; ++rank) {
      RankTrace mine{.rank = rank, .threads = {"main"}};
      for (Index step = 0; step < 4; ++step) {
        const std::int64_t own = rank == 1 ? late : step == 0 ? 400 : 10;
        const std::int64_t end = std::max<std::int64_t>(late, step == 0 ? 400 : 10) + 5;
        mine.steps.push_back(
            {.step = step,
             .seconds = 1e-3 * static_cast<double>(end),
             .events = {event(0, TraceKind::kStep, 0, end), event(0, TraceKind::kExchange, own, end, 0)}});
      }
      trace.ranks.push_back(mine);
    }
    trace.last_arrivals = find_last_arrivals(trace.ranks);
    return summarise_trace(trace);
  };
  expect_parts(run_with(30), {"slow: rank 1, whose own work takes 30.00 ms in the middle one of its "
                              "steps, 3.0 times that of the fastest rank\n"});
  EXPECT_EQ(run_with(12).find("slow: rank"), std::string::npos);
}

// Of several steps the slowest five, each by the time of its slowest rank.
TEST(TraceSummary, NamesTheSlowestSteps) {
  RunTrace trace{.ranks_of_run = 2};
  for (int rank = 0; rank < 2; ++rank) {
    RankTrace mine{.rank = rank, .threads = {"main"}};
    for (Index step = 0; step < 7; ++step) {
      const auto length = static_cast<std::int64_t>(10 + step + (rank == 1 && step == 2 ? 100 : 0));
      mine.steps.push_back({.step = step,
                            .seconds = 1e-3 * static_cast<double>(length),
                            .events = {event(0, TraceKind::kStep, 0, length)}});
    }
    trace.ranks.push_back(mine);
  }
  expect_parts(summarise_trace(trace),
               {"slowest steps: 3 (112.00 ms), 7 (16.00 ms), 6 (15.00 ms), 5 (14.00 ms), 4 (13.00 ms)\n"});
}

}  // namespace lockstep::test::trace_summary_test
