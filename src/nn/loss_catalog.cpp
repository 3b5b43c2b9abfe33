#include <array>

#include "lockstep/nn/loss.h"

namespace lockstep {

// One line for each loss in losses/; those of one formula per number stand together in pointwise.cpp.
LossEntry softmax_cross_entropy_entry();
LossEntry binary_cross_entropy_entry();
LossEntry mean_squared_error_entry();
LossEntry mean_absolute_error_entry();
LossEntry huber_entry();
LossEntry quantile_entry();
LossEntry poisson_entry();
LossEntry tweedie_entry();
LossEntry gamma_entry();
LossEntry cosine_distance_entry();
LossEntry softmax_focal_entry();
LossEntry binary_focal_entry();
LossEntry multiclass_hinge_entry();
LossEntry binary_hinge_entry();

std::span<const LossEntry> loss_catalog() {
  static const std::array kEntries{softmax_cross_entropy_entry(),
                                   binary_cross_entropy_entry(),
                                   mean_squared_error_entry(),
                                   mean_absolute_error_entry(),
                                   huber_entry(),
                                   quantile_entry(),
                                   poisson_entry(),
                                   tweedie_entry(),
                                   gamma_entry(),
                                   cosine_distance_entry(),
                                   softmax_focal_entry(),
                                   binary_focal_entry(),
                                   multiclass_hinge_entry(),
                                   binary_hinge_entry()};
  return kEntries;
}

}  // namespace lockstep
