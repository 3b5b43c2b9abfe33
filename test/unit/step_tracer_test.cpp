// Which steps a timeline keeps, and what is read back from the files of its ranks.
#include "lockstep/train/loop/step_tracer.h"

#include "lockstep/base/errors.h"
#include "lockstep/base/trace.h"
#include "lockstep/report/trace/trace.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep::step_tracer_test {

using Steps = std::vector<Index>;

class Timeline : public testing::Test {
 protected:
  TraceHead head(int rank, const std::string& request) const {
    return {.rank = rank,
            .ranks = 1,
            .host = "n1",
            .ops = {"layer 0 'dense(2)'", "layer 1 'relu'"},
            .steps = {0, 20},
            .request = parse_trace("key", request)};
  }
  // A step with a layer and an exchange in it.
  static void record(StepTracer& tracer, Index step, double seconds) {
    tracer.begin_step(step);
    { const TraceSpan span(TraceKind::kForward, 1); }
    const std::int64_t now = trace_clock();
    trace_event(TraceKind::kExchange, now, trace_clock(), 0);
    tracer.end_step(seconds);
  }
  RunTrace read() const { return read_trace(directory_.path()); }
  std::filesystem::path file(int rank) const { return trace_file(directory_.path(), rank); }
  static Steps steps_of(const RunTrace& trace) {
    Steps steps;
    for (const TracedStep& step : trace.ranks.front().steps) steps.push_back(step.step);
    return steps;
  }
  test::TemporaryDirectory directory_;
};

TEST_F(Timeline, KeepsTheFirstTheLastAndTheSlowestSteps) {
  StepTracer tracer(file(0), head(0, "first 2, last 1, slowest 2 steps"));
  for (Index step = 0; step < 20; ++step) {
    const bool slow = step == 5 || step == 7 || step == 13;
    record(tracer, step, step < 2 ? 9 : slow ? 1 + 0.1 * static_cast<double>(step) : 0.5);
    if (step % 4 == 3) tracer.choose();
  }
  const RunTrace trace = read();
  EXPECT_EQ(steps_of(trace), (Steps{0, 1, 7, 13, 19}));
  EXPECT_EQ(trace.ranks.front().steps.front().events.size(), 3U) << "layer, exchange and the step itself";
  EXPECT_EQ(trace.ranks.front().threads.front(), "main");
  EXPECT_TRUE(trace.faults.empty());
}

TEST_F(Timeline, GoesByTheTimesThatTheRanksHaveAgreed) {
  StepTracer tracer(file(0), head(0, "slowest 1 steps"));
  for (Index step = 0; step < 4; ++step) record(tracer, step, step == 2 ? 5 : 1);
  tracer.choose(std::vector<double>{1, 6, 5, 1});
  EXPECT_EQ(steps_of(read()), Steps{1});
}

TEST_F(Timeline, RecordsNothingWhereNothingIsWanted) {
  StepTracer tracer(file(0), head(0, "first 1 steps"));
  record(tracer, 0, 1);
  tracer.begin_step(1);
  EXPECT_FALSE(trace_records());
  tracer.end_step(1);
  tracer.choose();
  tracer.pause();
  EXPECT_FALSE(trace_records());
  EXPECT_EQ(steps_of(read()), Steps{0});
}

TEST_F(Timeline, LosesOnlyTheLineThatAKillHasCutOff) {
  {
    StepTracer tracer(file(0), head(0, "first 2 steps"));
    record(tracer, 0, 1);
    tracer.choose();
  }
  std::ofstream(file(0), std::ios::app) << R"({"step":1,"seconds":0.5,"why":"fir)";
  const RunTrace trace = read();
  EXPECT_EQ(steps_of(trace), Steps{0});
  ASSERT_EQ(trace.faults.size(), 1U);
  EXPECT_NE(trace.faults[0].find("it is cut off"), std::string::npos) << trace.faults[0];
}

TEST_F(Timeline, LeavesOutLinesThatAreNone) {
  StepTracer tracer(file(0), head(0, "first 2 steps"));
  record(tracer, 0, 1);
  tracer.choose();
  const auto step = [](Index number, const std::string& event) {
    return fmt::format(R"({{"step":{},"seconds":1,"why":"last","events":[[{}]]}})", number, event);
  };
  std::ofstream lines(file(0), std::ios::app);
  for (const char* line : {"[]", "{", R"({"clock":[1]})", R"({"threads":[7]})",
                           R"({"step":"1","seconds":1,"why":"last","events":[]})"})
    lines << line << "\n";
  for (const char* event :
       {"-1,1,0,0,0", "100000,1,0,0,0", "0,-1,0,0,0", "0,99,0,0,0", "0,1,36028797018963968,0,0",
        "0,1,-36028797018963968,0,0", "0,1,0,-1,0", "0,1,0,36028797018963968,0", "0,1,0,0"})
    lines << step(1, event) << "\n";
  lines << step(2, "99999,1,36028797018963967,36028797018963967,0") << "\n"
        << step(3, "0,0,-36028797018963967,0,0") << "\n";
  lines.close();
  std::ofstream(file(1)) << step(4, "0,0,0,0,0") << "\n";
  const RunTrace trace = read();
  EXPECT_EQ(steps_of(trace), (Steps{0, 2, 3}));
  ASSERT_EQ(trace.faults.size(), 15U);
  EXPECT_NE(trace.faults.back().find("it comes before the head"), std::string::npos) << trace.faults.back();
}

// Rank 1's clock is 1,000,000 ns behind, and drifts by 100 ns more until its second measurement.
TEST_F(Timeline, IsOnOneClock) {
  std::ofstream(file(0))
      << R"({"rank":0,"ranks":2,"host":"a","start":5000000,"steps":[0,9],"request":[1,0,0],"ops":[]})"
      << "\n"
      << R"({"step":0,"seconds":1,"why":"first","events":[[0,8,1000,9000,0],[0,0,0,20000,0]]})"
      << "\n";
  std::ofstream(file(1))
      << R"({"rank":1,"ranks":2,"host":"b","start":4000000,"steps":[0,9],"request":[1,0,0],"ops":[]})"
      << "\n"
      << R"({"clock":[0,1000000,40]})"
      << "\n"
      << R"({"clock":[10000,1000100,30]})"
      << "\n"
      << R"({"step":0,"seconds":1,"why":"first","events":[[0,8,5000,5000,0],[0,0,0,20000,0]]})"
      << "\n";
  const RunTrace trace = read();
  EXPECT_EQ(trace.ranks.at(1).steps.at(0).events.at(0).event.begin, 5005050);
  EXPECT_EQ(trace.clock_error, 40);
  // Rank 0 came to the exchange at 5,001,000 and waited for rank 1, which came at 5,005,050.
  const StepSpans spans = spans_of(trace, 0, 0);
  ASSERT_EQ(spans.spans.size(), 3U);
  EXPECT_EQ(std::tuple(spans.spans[2].waits_for, spans.spans[2].begin, spans.spans[2].end),
            std::tuple(1, 5001000, 5005050));
  EXPECT_EQ(spans.spans[1].own, 9000 - 4050);
  EXPECT_EQ(spans_of(trace, 1, 0).spans.size(), 2U) << "the last rank waits for nobody";
}

// Two groups of two stages: ranks 0 and 2 run stage 0, ranks 1 and 3 stage 1, which exchanges later.
TEST_F(Timeline, ComparesArrivalsOfOneStageAlone) {
  const auto write = [&](int rank, int stage, int arrival) {
    std::ofstream(file(rank)) << fmt::format(
        R"({{"rank":{},"ranks":4,"stage":{},"host":"a","start":0,"steps":[0,9],"request":[1,0,0],"ops":[]}})"
        "\n"
        R"({{"step":0,"seconds":1,"why":"first","events":[[0,8,{},{},0],[0,0,0,2000,0]]}})"
        "\n",
        rank, stage, arrival, 1000 - arrival);
  };
  write(0, 0, 100);
  write(1, 1, 700);
  write(2, 0, 300);
  write(3, 1, 800);
  const RunTrace trace = read();
  const auto waits_for = [&](std::size_t rank) {
    const std::vector<NestedSpan> spans = spans_of(trace, rank, 0).spans;
    return spans.size() == 3 ? spans[2].waits_for : -1;
  };
  EXPECT_EQ(waits_for(0), 2);
  EXPECT_EQ(waits_for(1), 3);
  EXPECT_EQ(waits_for(2), -1) << "rank 2 is the last of its stage";
  EXPECT_EQ(waits_for(3), -1) << "rank 3 is the last of its stage";
}

TEST_F(Timeline, CutsSpansThatOverlapSoThatTheyNest) {
  std::ofstream(file(0))
      << R"({"rank":0,"ranks":1,"host":"a","start":0,"steps":[0,9],"request":[1,0,0],"ops":[]})"
      << "\n"
      << R"({"step":0,"seconds":1,"why":"first","events":[[0,0,100,100,0],[0,5,110,40,0],[0,8,140,30,0]]})"
      << "\n";
  const StepSpans step = spans_of(read(), 0, 0);
  ASSERT_EQ(step.spans.size(), 4U);
  EXPECT_EQ(std::tuple(step.spans[1].end, step.spans[2].begin, step.spans[2].end, step.spans[3].begin),
            std::tuple(150, 140, 150, 150));
  EXPECT_EQ(step.spans[3].end, 170);
  std::int64_t own = 0;
  for (const NestedSpan& span : step.spans) own += span.own;
  EXPECT_EQ(own, 100) << "what spans have for themselves adds up to the step";
}

TEST(TraceRings, HaveTheEventsOfAllThreadsAndCountWhatIsLost) {
  set_trace_records(true);
  std::vector<ThreadEvent> events;
  drain_trace(events);
  events.clear();
  const Index lost = lost_trace_events();
  std::thread other([] {
    name_trace_thread("other");
    for (int i = 0; i < 20'000; ++i) trace_event(TraceKind::kLoss, i, i + 1, i);
  });
  other.join();
  trace_event(TraceKind::kData, 1, 2);
  set_trace_records(false);
  trace_event(TraceKind::kData, 3, 4);
  drain_trace(events);
  EXPECT_EQ(std::ssize(events) + lost_trace_events() - lost, 20'001);
  EXPECT_GT(lost_trace_events(), lost);
  EXPECT_EQ(trace_threads().back(), "other");
}

// A thread's ring holds 16,384 events; once it is emptied there is room again.
TEST(Trace, GivesTheEventsOfAThreadInOrderAndCountsThoseThatAreLost) {
  constexpr Index kRing = Index{1} << 14;
  set_trace_records(true);
  std::vector<ThreadEvent> events;
  drain_trace(events);
  for (const Index more : {Index{0}, Index{3}}) {
    events.clear();
    const Index lost = lost_trace_events();
    for (Index i = 0; i < kRing + more; ++i) trace_event(TraceKind::kBucket, i, i + 1, i % 1000);
    drain_trace(events);
    EXPECT_EQ(lost_trace_events() - lost, more);
    ASSERT_EQ(std::ssize(events), kRing);
    for (Index i = 0; i < kRing; ++i) {
      const TraceEvent& event = at(events, i).event;
      ASSERT_EQ(event.begin, i);
      ASSERT_EQ(event.detail, i % 1000);
    }
  }
  set_trace_records(false);
}

std::string error_of(const std::string& text) {
  return test::error_text<ConfigError>([&] { parse_trace("report.trace", text); });
}

TEST(TraceRequest, TakesTheStepsByNameInAnyOrder) {
  const TraceRequest all = parse_trace("key", "first 20, last 10, slowest 5 steps");
  EXPECT_EQ(std::tuple(all.first, all.last, all.slowest), std::tuple(20, 10, 5));
  const TraceRequest some = parse_trace("key", " slowest 7 steps,first 1 step");
  EXPECT_EQ(std::tuple(some.first, some.last, some.slowest), std::tuple(1, 0, 7));
  EXPECT_FALSE(parse_trace("key", "").any());
}

TEST(TraceRequest, RefusesOtherTextsWithAnExample) {
  const std::string example = "; write it as 'first 20, last 20, slowest 20 steps', or some of these parts";
  EXPECT_EQ(error_of("all"), "report.trace = 'all': 'all' is none of first, last and slowest" + example);
  EXPECT_EQ(error_of("first many"),
            "report.trace = 'first many': 'many' is no number of steps from 1 to 1000" + example);
  EXPECT_EQ(error_of("first 0"),
            "report.trace = 'first 0': '0' is no number of steps from 1 to 1000" + example);
  EXPECT_EQ(error_of("first 2, first 3"),
            "report.trace = 'first 2, first 3': 'first' is there twice" + example);
  EXPECT_EQ(error_of("last 3 epochs"),
            "report.trace = 'last 3 epochs': 'last 3 epochs' is more than a word and a number" + example);
}

}  // namespace lockstep::step_tracer_test
