#include <array>

#include "metrics/entries.h"

namespace lockstep {

std::span<const MetricEntry> metric_catalog() {
  static const std::array kEntries{auc_entry(),
                                   log_loss_entry(),
                                   precision_entry(),
                                   recall_entry(),
                                   mean_absolute_error_entry(),
                                   mean_squared_error_metric_entry(),
                                   r2_entry()};
  return kEntries;
}

}  // namespace lockstep
