// The writer of run.json: a thread that sleeps until the record changes or a heartbeat is due. `mutex_` is
// held while the record is read or changed, and never while a file is written.
#include <algorithm>
#include <chrono>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/train/storage/run_record.h"

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
    : directory_(std::move(directory)), record_(std::move(record)) {
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
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    change(record_);
  }
  wake_.notify_all();
  const std::lock_guard lock(writing_);
  write_file_atomically(RunDirectory{directory}.record(), text_now());
}

// The record with the warnings so far and a sign of life.
std::string RunRecordFile::text_now() {
  const std::vector<std::string> warnings = logged_warnings();
  const std::lock_guard lock(mutex_);
  for (; warnings_taken_ < warnings.size(); ++warnings_taken_) {
    add_warning(record_, warnings[warnings_taken_]);
  }
  record_.heartbeat = Heartbeat::now();
  changed_ = false;
  return to_json(record_);
}

// After the end, only end() writes.
void RunRecordFile::write_if_possible() {
  try {
    const std::optional<std::filesystem::path> directory = directory_();
    const std::lock_guard lock(writing_);
    if (directory && !ended_) write_file_atomically(RunDirectory{*directory}.record(), text_now());
  } catch (const Error&) {
  }
}

void RunRecordFile::keep_alive() {
  constexpr auto kBeat = std::chrono::duration<double>(kHeartbeatSeconds / 2);
  constexpr auto kShortest = 1s;
  while (!ended_) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, kShortest, [this] { return ended_.load(); });
      wake_.wait_for(lock, kBeat - kShortest, [this] { return ended_ || changed_; });
    }
    write_if_possible();
  }
}

}  // namespace lockstep
