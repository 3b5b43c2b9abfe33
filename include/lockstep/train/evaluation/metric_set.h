// The metrics of one run, as one: what they need together, and which part of it is whose.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/train/evaluation/metric.h"

namespace lockstep {

struct MetricValue {
  std::string name;
  std::optional<double> value;
};

/// "auc 0.76432"; "auc undefined".
std::string to_string(const MetricValue& metric);

class MetricSet {
 public:
  /// `names`: of eval.metrics. Without any: all that are defined for such outputs and not for naming alone,
  /// but none where there are more than two classes. Errors: ConfigError where a metric is named twice or not
  /// defined for the outputs.
  MetricSet(std::span<const std::string> names, const OutputForm& form, Index outputs);

  /// In the order in which they are reported.
  std::vector<std::string> names() const;
  /// The needs of all metrics together.
  const MetricNeeds& needs() const { return needs_; }
  /// See Metric::collect() and Metric::value().
  void collect(const MetricRows& rows, const MetricParts& parts) const;
  std::vector<MetricValue> values(const MetricTotals& totals) const;

 private:
  struct Member {
    std::string name;
    std::unique_ptr<Metric> metric;
    MetricNeeds first;  // offsets at which its part begins
  };

  void add(const MetricEntry& entry, const OutputForm& form, Index outputs);

  std::vector<Member> members_;
  MetricNeeds needs_;
};

}  // namespace lockstep
