// A run as everything that shows runs sees it: its record, its config and its metrics.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/report/history/metrics_history.h"
#include "lockstep/train/storage/run_record.h"

namespace lockstep {

struct ConfigLine {
  std::string key;
  std::string value;  ///< "": not given
  std::string by_default;
};

struct ViewedRun {
  std::string name = {};  ///< the directory as the user may name it
  RunRecord record = {};
  std::vector<ConfigLine> config = {};  ///< all keys; empty if it cannot be read
  MetricsHistory metrics = {};

  /// "" for a key that is not given.
  std::string value(std::string_view key) const;
  std::string state() const { return to_string(record.state); }
  double steps() const { return static_cast<double>(record.progress.steps); }
  double samples() const { return static_cast<double>(record.progress.samples); }
  /// "fashion" of "runs/fashion": the name in charts.
  std::string short_name() const;
};

/// Whether a key says where a run is kept or how it is shown, and nothing about what comes of it.
bool names_no_result(std::string_view key);

}  // namespace lockstep
