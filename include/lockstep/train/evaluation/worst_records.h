// The records whose predictions have the largest losses.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/table/values/label_scale.h"
#include "lockstep/math/shape.h"
#include "lockstep/nn/loss.h"
#include "lockstep/train/evaluation/metric.h"

namespace lockstep {

inline constexpr std::size_t kWorstRecords = 20;

struct WorstRecord {
  double loss = 0;  ///< infinite where it is not a number
  Index id = 0;
  std::string target = {};
  std::string prediction = {};
};

/// The names and units that predictions are told in.
struct PredictionWords {
  std::vector<std::string> classes = {};  ///< empty: numbers
  std::vector<LabelScale> scales = {};    ///< see predict_rows()
};

/// The worst records that one thread has seen; equal losses go by the id.
class WorstRecords {
 public:
  /// References must outlive it.
  WorstRecords(const Loss& loss, const PredictionWords& words) : loss_(loss), words_(words) {}

  void add(const MetricRows& rows, std::span<const Index> ids);
  void add(const WorstRecord& record);
  /// The largest loss first.
  const std::vector<WorstRecord>& records() const { return records_; }

 private:
  bool is_wanted(double loss, Index id) const;

  const Loss& loss_;
  const PredictionWords& words_;
  std::vector<WorstRecord> records_;
};

}  // namespace lockstep
