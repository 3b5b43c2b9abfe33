#include "support/crashes.h"

#include "lockstep/base/hash.h"
#include "support/seed.h"

namespace lockstep::test {
namespace {

// For each crash, of each kind that is drawn.
int draws() {
  const char* text = std::getenv("LOCKSTEP_CRASHES");
  return text == nullptr ? 1 : std::atoi(text);
}

constexpr std::array kCrashKinds{
    CrashKind{"nothing unsynced survives", Unsynced::kLost, Unsynced::kLost},
    CrashKind{"all survives", Unsynced::kKept, Unsynced::kKept},
    CrashKind{"names survive, bytes do not", Unsynced::kKept, Unsynced::kLost},
    CrashKind{"names survive, and zeros for bytes", Unsynced::kKept, Unsynced::kZeros},
    CrashKind{"bytes survive, names do not", Unsynced::kLost, Unsynced::kKept},
    CrashKind{"of the names the last change survives", Unsynced::kLast, Unsynced::kLost},
    CrashKind{"some survives", Unsynced::kSome, Unsynced::kSome},
};

// The number behind `beginning`; kNoStep if `text` does not have it.
Index number_behind(const std::string& text, const std::string& beginning) {
  const std::size_t at = text.find(beginning);
  Index number = kNoStep;
  if (at != std::string::npos)
    std::from_chars(text.data() + at + beginning.size(), text.data() + text.size(), number);
  return number;
}

// Of no interest is the log, of which nothing is promised.
std::uint64_t hash_of(const FileTree& tree, const Promise& promise) {
  std::string all = fmt::format("{} {} {}\n", promise.reported, promise.renamed, promise.ended);
  for (const auto& [path, bytes] : tree) {
    if (path.ends_with("/log.txt")) continue;
    all += fmt::format("{} {}\n", path, bytes ? std::ssize(*bytes) : -1) + bytes.value_or("");
  }
  return hash_text(all);
}

void print(const FileTree& tree) {
  for (const auto& [path, bytes] : tree)
    std::printf("%10td %s\n", bytes ? std::ssize(*bytes) : std::ptrdiff_t{-1}, path.c_str());
}

// The states after so many calls, that were not seen before.
class CrashStates {
 public:
  CrashStates(const CrashRecording& recording, const std::filesystem::path& place, const LookAfterCrash& look)
      : recording_(recording), place_(place), look_(look) {}

  // False once the test has failed.
  bool check_all(const SimulatedDisk& disk, const Promise& promise, std::size_t calls) {
    const std::string next = calls < recording_.calls.size() ? describe(recording_.calls[calls]) : "the end";
    for (const CrashKind& kind : kCrashKinds) {
      for (int draw = 0; draw < (kind.bytes == Unsynced::kSome ? draws() : 1); ++draw) {
        Dice dice(seed(), static_cast<Index>(calls) * draws() + draw);
        const FileTree tree = disk.after_crash(kind, dice);
        if (!seen_.insert(hash_of(tree, promise)).second) continue;
        SCOPED_TRACE(fmt::format("crash before call {} ({}); {}", calls, next, kind.name));
        write_tree(place_, tree);
        look_(recording_, promise, tree);
        if (!testing::Test::HasFailure()) continue;
        print(tree);
        return false;
      }
    }
    return true;
  }

  std::size_t count() const { return seen_.size(); }

 private:
  const CrashRecording& recording_;
  const std::filesystem::path& place_;
  const LookAfterCrash& look_;
  std::set<std::uint64_t> seen_;
};

}  // namespace

void Promise::note(const RecordedCall& call) {
  if (call.kind == "write" && call.path.ends_with("/log.txt"))
    reported = std::max(reported, number_behind(call.bytes, "info checkpoint of step "));
  const std::string name = std::filesystem::path(call.to).filename();
  if (name.starts_with("step-")) renamed = std::max(renamed, number_behind(name, "step-"));
}

CrashRecording record_run(int ranks, const std::string& arguments, const std::filesystem::path& place,
                          Index newest, Index steps) {
  CrashRecording recording{.before = read_tree(place),
                           .after = {},
                           .calls = {},
                           .first = {.reported = newest, .renamed = newest},
                           .steps = steps};
  RecordedRun recorded = record_trainer(ranks, arguments, place);
  if (recorded.result.exit_code != 0) throw std::runtime_error(recorded.result.errors);
  recording.calls = std::move(recorded.calls);
  recording.after = read_tree(place);
  SimulatedDisk disk(recording.before);
  for (const RecordedCall& call : recording.calls) disk.apply(call);
  if (disk.tree() != recording.after) throw std::runtime_error("the recording lacks calls");
  return recording;
}

void crash_at_every_call(const CrashRecording& recording, const std::filesystem::path& place,
                         const LookAfterCrash& look) {
  SimulatedDisk disk(recording.before);
  Promise promise = recording.first;
  CrashStates states(recording, place, look);
  for (std::size_t calls = 0; calls < recording.calls.size(); ++calls) {
    if (!states.check_all(disk, promise, calls)) return;
    disk.apply(recording.calls[calls]);
    promise.note(recording.calls[calls]);
  }
  promise.ended = recording.steps;
  states.check_all(disk, promise, recording.calls.size());
  EXPECT_EQ(promise.reported, promise.renamed) << "not each checkpoint was reported";
  std::printf("%zu calls, %zu states\n", recording.calls.size(), states.count());
}

void crash_after(std::size_t calls, const CrashRecording& recording, const std::filesystem::path& place) {
  SimulatedDisk disk(recording.before);
  for (std::size_t call = 0; call < calls; ++call) disk.apply(recording.calls[call]);
  Dice dice(seed(), static_cast<Index>(calls));
  write_tree(place, disk.after_crash(kCrashKinds.back(), dice));
}

}  // namespace lockstep::test
