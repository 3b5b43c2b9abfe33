#include "lockstep/train/storage/run_record_file.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"

namespace lockstep {
namespace {

using std::chrono_literals::operator""s;

// Each warning once, and no more than a page shows.
void add_warning(RunRecord& record, const std::string& warning) {
  constexpr std::size_t kMaxWarnings = 10;
  if (std::ranges::find(record.warnings, warning) != record.warnings.end()) return;
  if (record.warnings.size() < kMaxWarnings) {
    record.warnings.push_back(warning);
  } else {
    ++record.more_warnings;
  }
}

}  // namespace

RunRecordFile::RunRecordFile(RunRecord record,
                             std::function<std::optional<std::filesystem::path>()> directory)
    : record_(std::move(record)), directory_(std::move(directory)) {
  write_if_possible();
  thread_ = std::thread([this] { keep_alive(); });
}

RunRecordFile::~RunRecordFile() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void RunRecordFile::change(const std::function<void(RunRecord&)>& change) {
  const std::lock_guard lock(mutex_);
  change(record_);
  changed_ = true;
  wake_.notify_all();
}

void RunRecordFile::end(const std::filesystem::path& directory,
                        const std::function<void(RunRecord&)>& change) {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  wake_.notify_all();
  change(record_);
  write(directory);
}

// Requires mutex_, but in the constructor.
void RunRecordFile::write(const std::filesystem::path& directory) {
  const std::vector<std::string> warnings = logged_warnings();
  for (; warnings_taken_ < warnings.size(); ++warnings_taken_) {
    add_warning(record_, warnings[warnings_taken_]);
  }
  record_.heartbeat = Heartbeat::now();
  write_file_atomically(RunDirectory{directory}.record(), to_json(record_));
}

void RunRecordFile::write_if_possible() {
  try {
    if (const auto directory = directory_()) write(*directory);
  } catch (const Error&) {
  }
}

void RunRecordFile::keep_alive() {
  constexpr auto kBeat = std::chrono::duration<double>(kHeartbeatSeconds / 2);
  constexpr auto kShortest = 1s;
  std::unique_lock lock(mutex_);
  while (!ended_) {
    wake_.wait_for(lock, kShortest, [this] { return ended_; });
    if (ended_) return;
    wake_.wait_for(lock, kBeat - kShortest, [this] { return ended_ || changed_; });
    if (ended_) return;
    changed_ = false;
    write_if_possible();
  }
}

}  // namespace lockstep
