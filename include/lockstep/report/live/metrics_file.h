// metrics.jsonl: one JSON object a line, written as it happens, whole or not at all. The guide
// on output documents the fields.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "lockstep/train/loop/observer.h"

namespace lockstep {

class MetricsFile final : public Observer {
 public:
  /// Goes on behind the first `keep` bytes of what is there, those of a checkpoint. Where they are not all
  /// there it warns of what is missing, and keeps the whole lines. Errors: DataError if the file cannot be
  /// read or created.
  /// `on_line` is told each line as well, whether or not it can be written.
  explicit MetricsFile(const std::filesystem::path& path, Index keep = 0,
                       std::function<void(const nlohmann::ordered_json&)> on_line = {});
  ~MetricsFile() override;
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  void on_train_metrics(const TrainMetrics& metrics) override;
  void on_evaluation(const EvalMetrics& metrics) override;
  void on_workers(const WorkersReport& report, const Progress& progress) override;
  void on_ranks(const RankTimes& times, const Progress& progress) override;
  Index written_bytes() const override { return bytes_; }
  /// Whether a line was lost, as on a full disk: that is a warning, and training goes on.
  bool failed() const { return failed_; }

 private:
  void write(const nlohmann::ordered_json& json);
  void write(const char* kind, const Progress& progress, const nlohmann::ordered_json& numbers);

  std::filesystem::path path_;
  std::function<void(const nlohmann::ordered_json&)> on_line_;
  Index bytes_ = 0;
  int descriptor_ = -1;
  bool failed_ = false;
};

}  // namespace lockstep
