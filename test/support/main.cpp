// The main of every test program.
#include "lockstep/comm/session.h"
#include "lockstep/math/kernels.h"
#include "support/ranks.h"
#include "support/seed.h"
#include "support/thread_ranks.h"

namespace lockstep::test {
namespace {

std::uint64_t the_seed = 0;
Communicator* the_world = nullptr;  // set under mpiexec

int run_tests() {
  std::printf("random seed: --seed=%llu\n", static_cast<unsigned long long>(the_seed));
  return RUN_ALL_TESTS();
}

// Runs only the tests of one source file. False if it has none.
bool choose_tests_of(std::string_view name) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::string filter;
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (std::filesystem::path(test.file()).stem() != name) continue;
      filter += fmt::format("{}.{}:", suite.name(), test.name());
    }
  }
  testing::GTEST_FLAG(filter) = filter;
  return !filter.empty();
}

// All ranks draw the same random cases.
int run_tests_under_mpi(Communicator& comm) {
  Index shared = static_cast<Index>(the_seed);
  comm.broadcast(as_buffer(std::span(&shared, 1)), 0);
  the_seed = static_cast<std::uint64_t>(shared);
  the_world = &comm;
  return run_tests();
}

}  // namespace

std::uint64_t seed() {
  return the_seed;
}

bool under_mpi() {
  return the_world != nullptr;
}

void on_ranks(const std::function<void(Communicator&)>& body) {
  std::vector<int> counts(kMaxThreadRanks);
  std::iota(counts.begin(), counts.end(), 1);
  on_ranks(counts, body);
}

void on_ranks(const std::vector<int>& counts, const std::function<void(Communicator&)>& body) {
  if (the_world != nullptr) return body(*the_world);
  for (const int ranks : counts) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks as threads");
    run_thread_ranks(ranks, body);
  }
}

std::vector<int> counts_of_turn(Index turn) {
  const int small = static_cast<int>(turn % 4);
  return {1 + small, 5 + small, 5 + (small + 1) % 4};
}

}  // namespace lockstep::test

int main(int argc, char** argv) {
  using namespace lockstep;
  testing::InitGoogleTest(&argc, argv);
  fix_kernel_settings();
  test::the_seed = std::random_device{}();
  bool under_mpi = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--seed=")) test::the_seed = std::strtoull(argv[i] + 7, nullptr, 10);
    if (argument == "--mpi") under_mpi = true;
    if (argument.starts_with("--file=") && !test::choose_tests_of(argument.substr(7))) {
      std::fprintf(stderr, "error: no test stands in the file %s.cpp\n", argv[i] + 7);
      return 2;
    }
  }
  return under_mpi ? run_session(test::run_tests_under_mpi) : test::run_tests();
}
