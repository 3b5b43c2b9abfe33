#include "support/file_recording.h"

#include "lockstep/base/file.h"
#include "support/temporary_directory.h"

namespace lockstep::test {
namespace {

// An entry is a line "KIND RANK OFFSET LENGTH PATH<tab>TO" with the bytes of a write behind it.
std::vector<RecordedCall> calls_in(const std::string& log, const std::string& place) {
  const auto below = [&](const std::string& path) {
    return path.substr(std::min(path.size(), place.size()));
  };
  std::vector<RecordedCall> calls;
  std::istringstream entries(log);
  for (std::string line; std::getline(entries, line);) {
    RecordedCall call;
    std::size_t length = 0;
    std::istringstream words(line);
    words >> call.kind >> call.rank >> call.offset >> length;
    words.get();
    std::getline(words, call.path, '\t');
    std::getline(words, call.to);
    call.path = below(call.path);
    call.to = below(call.to);
    call.bytes.resize(length);
    entries.read(call.bytes.data(), static_cast<std::streamsize>(length));
    calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace

std::string describe(const RecordedCall& call) {
  return fmt::format("{} {}{}{} by rank {}", call.kind, call.path, call.to.empty() ? "" : " to ", call.to,
                     call.rank);
}

// A sanitizer wants to be the first library.
RecordedRun record_trainer(int ranks, const std::string& arguments, const std::filesystem::path& place) {
  const TemporaryDirectory directory;
  const std::string log = directory / "calls";
  write_file_atomically(log, "");
  const std::string words = fmt::format(
      "env ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 LD_PRELOAD={} LOCKSTEP_TEST_RECORDED={}/ "
      "LOCKSTEP_TEST_RECORDING={}",
      LOCKSTEP_RECORDING_FILES, place.string(), log);
  RecordedRun run;
  run.result = ranks == 1 ? run_command(words + " " + trainer_path() + " " + arguments)
                          : run_command(mpiexec_words() + " " + rank_words(ranks, arguments, words));
  run.calls = calls_in(read_file(log), place.string() + "/");
  return run;
}

}  // namespace lockstep::test
