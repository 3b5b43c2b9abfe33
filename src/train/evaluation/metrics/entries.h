// The entry of each metric, one per file of this folder.
#pragma once

#include "lockstep/train/evaluation/metric.h"

namespace lockstep {

MetricEntry auc_entry();
MetricEntry log_loss_entry();
MetricEntry precision_entry();
MetricEntry recall_entry();
MetricEntry mean_absolute_error_entry();
MetricEntry mean_squared_error_metric_entry();
MetricEntry r2_entry();

}  // namespace lockstep
