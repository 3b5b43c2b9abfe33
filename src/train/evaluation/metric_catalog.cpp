#include <array>

#include "lockstep/train/evaluation/metric.h"

namespace lockstep {

// One line for each file in metrics/.
MetricEntry auc_entry();
MetricEntry log_loss_entry();
MetricEntry precision_entry();
MetricEntry recall_entry();
MetricEntry mean_absolute_error_metric_entry();
MetricEntry mean_squared_error_metric_entry();
MetricEntry r2_entry();
MetricEntry pinball_entry();
MetricEntry poisson_deviance_entry();
MetricEntry tweedie_deviance_entry();
MetricEntry gamma_deviance_entry();
MetricEntry cosine_similarity_entry();
MetricEntry average_precision_entry();
MetricEntry brier_entry();
MetricEntry ece_entry();
MetricEntry f1_entry();
MetricEntry mcc_entry();
MetricEntry balanced_accuracy_entry();
MetricEntry root_mean_squared_error_entry();
MetricEntry mean_absolute_percentage_error_entry();
MetricEntry spearman_entry();

std::span<const MetricEntry> metric_catalog() {
  static const std::array kEntries{auc_entry(),
                                   log_loss_entry(),
                                   precision_entry(),
                                   recall_entry(),
                                   mean_absolute_error_metric_entry(),
                                   mean_squared_error_metric_entry(),
                                   r2_entry(),
                                   pinball_entry(),
                                   poisson_deviance_entry(),
                                   tweedie_deviance_entry(),
                                   gamma_deviance_entry(),
                                   cosine_similarity_entry(),
                                   average_precision_entry(),
                                   brier_entry(),
                                   ece_entry(),
                                   f1_entry(),
                                   mcc_entry(),
                                   balanced_accuracy_entry(),
                                   root_mean_squared_error_entry(),
                                   mean_absolute_percentage_error_entry(),
                                   spearman_entry()};
  return kEntries;
}

}  // namespace lockstep
