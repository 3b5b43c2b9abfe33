// What the report of trainer bench computes from what was measured.
#include "lockstep/report/tables/bench_report.h"

#include <gtest/gtest.h>

#include "support/error_text.h"

namespace lockstep::bench_report_test {
namespace {

// Of four ranks, each sends and receives 1.5 times the bytes of a sum. To copy them, each is read and
// written: 3 GB/s, of which a copy of 1,500,000 bytes takes 3,000,000, take a millisecond.
TEST(BenchReport, ASumIsHeldAgainstACopyOfWhatEachRankSendsAndReceives) {
  BenchReport report;
  report.ranks = 4;
  report.machine.memory_bandwidth = 3e9;
  report.exchanges = {{.bytes = 1'000'000, .seconds = 4e-3}};
  report.algorithms = {{.name = "ring", .bytes = 1'000'000, .seconds = 4e-3}};
  test::expect_parts(to_text(report),
                     {"4000.0 us     0.25 GB/s   25 %", "ring         limit\n", "4000.0        1000.0\n"});
}

}  // namespace
}  // namespace lockstep::bench_report_test
