// The writer of run.json, on rank 0 of a run.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "lockstep/train/storage/run_record.h"

namespace lockstep {

/// Keeps the record of a run that goes on, and writes it from a thread of its own: soon after each change, at
/// most once a second, and as a heartbeat. No change waits for a write; the end does. A write that fails is
/// tried again with the next; only that of the end is an error.
class RunRecordFile {
 public:
  /// `directory` gives the present path of the run, nothing if it was deleted. The first record is written
  /// before this returns, if it can be.
  RunRecordFile(RunRecord record, std::function<std::optional<std::filesystem::path>()> directory);
  ~RunRecordFile();
  RunRecordFile(const RunRecordFile&) = delete;
  RunRecordFile& operator=(const RunRecordFile&) = delete;

  void change(const std::function<void(RunRecord&)>& change);
  /// Changes and writes the record for the last time, or once more if it is called again; nothing is written
  /// by itself from then on. Errors: DataError.
  void end(const std::filesystem::path& directory, const std::function<void(RunRecord&)>& change);
  bool ended() const { return ended_; }

 private:
  std::string text_now();
  void write_if_possible();
  void keep_alive();

  std::function<std::optional<std::filesystem::path>()> directory_;
  std::mutex writing_;  // taken before mutex_
  std::mutex mutex_;    // of what follows
  RunRecord record_;
  std::size_t warnings_taken_ = 0;
  bool changed_ = false;
  std::atomic<bool> ended_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace lockstep
