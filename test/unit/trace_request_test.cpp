#include "lockstep/train/loop/step_tracer.h"

#include <gtest/gtest.h>

#include "lockstep/base/errors.h"
#include "support/error_text.h"

namespace lockstep::trace_request_test {
namespace {

std::string error_of(const std::string& text) {
  return test::error_text<ConfigError>([&] { parse_trace("report.trace", text); });
}

TEST(TraceRequest, TakesTheStepsByNameInAnyOrder) {
  const TraceRequest all = parse_trace("key", "first 20, last 10, slowest 5 steps");
  EXPECT_EQ(all.first, 20);
  EXPECT_EQ(all.last, 10);
  EXPECT_EQ(all.slowest, 5);
  const TraceRequest some = parse_trace("key", " slowest 7 steps,first 1 step");
  EXPECT_EQ(some.first, 1);
  EXPECT_EQ(some.last, 0);
  EXPECT_EQ(some.slowest, 7);
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

}  // namespace
}  // namespace lockstep::trace_request_test
