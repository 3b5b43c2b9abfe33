#include "support/file_faults.h"

#include "support/running_job.h"

namespace lockstep::test {
namespace {

constexpr double kMaxSeconds = 60;

std::vector<FileCall> calls_in(const std::filesystem::path& log) {
  std::vector<FileCall> calls;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    calls.push_back({line.substr(0, first), line.substr(first + 1, last - first - 1), line.substr(last + 1)});
  }
  return calls;
}

}  // namespace

// A sanitizer wants to be the first library.
std::string FileFaults::words() const {
  const std::string rank = fault_.rank == kEveryRank ? "" : fmt::format("rank={};", fault_.rank);
  return fmt::format(
      "env ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 LD_PRELOAD={} "
      "'LOCKSTEP_TEST_FAULTS=in={};{}calls={};from={};count={};do={};log={}'",
      LOCKSTEP_FAULTY_FILES, fault_.in, rank, fault_.calls, fault_.from,
      fault_.effect.empty() ? 0 : fault_.count, fault_.effect, directory_ / "rank");
}

std::vector<FileCall> FileFaults::calls(int rank) const {
  return calls_in(directory_ / fmt::format("rank-{}", rank));
}

int FileFaults::hits() const {
  std::ptrdiff_t hits = 0;
  for (const auto& log : std::filesystem::directory_iterator(directory_.path())) {
    hits += std::ranges::count_if(calls_in(log.path()),
                                  [](const FileCall& call) { return !call.effect.empty(); });
  }
  return static_cast<int>(hits);
}

ProcessResult run_trainer(int ranks, const std::string& arguments, const FileFaults& faults) {
  RunningJob job(ranks, arguments, faults.words());
  const int exit_code = job.wait(kMaxSeconds);
  EXPECT_NE(exit_code, -1) << "hangs:\n" << job.output() << job.errors();
  EXPECT_EQ(job.processes_left(), 0);
  return {exit_code, job.output(), job.errors(), arguments};
}

}  // namespace lockstep::test
