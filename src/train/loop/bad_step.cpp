#include "bad_step.h"

#include <fmt/format.h>

#include <cmath>

#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

constexpr const char* kAdvice = "Lower train.lr, add train.warmup, or clip with train.clip_norm";

}  // namespace

void warn_of_single_values(const std::string& found) {
  log_warning(
      "{} a single value to normalise in batch norm: it has no variance, becomes a constant, and moves no "
      "running moments by itself. Set train.tail = \"drop\" to leave short last steps out, or use a larger "
      "batch or fewer replicas",
      found);
}

std::string describe_bad_number(Communicator& comm, const BadNumber& found) {
  const std::string text = text_of_first(comm, found.order, found.text);
  return text.empty() ? "the sum of the gradients is not finite or overflows" : text;
}

void stop_on_bad_number(Communicator& comm, const BadNumber& found, Index step, double loss, Index good,
                        Index skipped) {
  const std::string where = describe_bad_number(comm, found);
  const std::string before =
      skipped == 0 ? "" : fmt::format(" ({} were left out, which is train.skip_limit)", skipped);
  throw AgreedError(fmt::format("step {}: the loss is {:.6g} and training stops: {}. The weights are those "
                                "after {} good step{}{}. {}",
                                step + 1, std::isnan(loss) ? std::abs(loss) : loss, where, good,
                                good == 1 ? "" : "s", before, kAdvice),
                    kExitTraining);
}

void stop_on_late_bad_number(const std::string& found) {
  throw AgreedError(
      fmt::format("{}, and training stops. The weights are the average of all replicas, each after its last "
                  "good step. {}",
                  found, kAdvice),
      kExitTraining);
}

}  // namespace lockstep
