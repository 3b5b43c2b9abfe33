#include "rank_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

[[noreturn]] void fail_too_large(Index bytes, const std::string& purpose, Index parameters,
                                 const MemoryLimit& limit) {
  throw ConfigError(fmt::format(
      "the model is too large: a rank needs {} for {} of {} parameters, but can have {} ({}); `trainer plan` "
      "shows what each takes, and distribute.stages can divide the model among ranks",
      human_bytes(bytes), purpose, with_commas(parameters), human_bytes(limit.bytes), limit.reason));
}

}  // namespace

MemoryLimit memory_elsewhere(double stated) {
  if (stated == 0) return {std::numeric_limits<Index>::max(), "no limit is given", false};
  return {std::llround(stated * kGib), "distribute.memory_per_rank", false};
}

MemoryLimit memory_of_rank(double stated, Index ranks_of_host) {
  MemoryLimit limit = memory_limit();
  if (limit.of_host && ranks_of_host > 1) {
    limit.bytes /= ranks_of_host;
    limit.reason += fmt::format(", for {} ranks", ranks_of_host);
  }
  const MemoryLimit given = memory_elsewhere(stated);
  return given.bytes < limit.bytes ? given : limit;
}

MemoryLimit smallest_limit(Communicator& comm, const MemoryLimit& mine) {
  const std::vector<Index> all = gather_numbers(comm, mine.bytes);
  const std::vector<std::string> reasons = gather_texts(comm, mine.reason);
  const auto least = static_cast<std::size_t>(std::ranges::min_element(all) - all.begin());
  return {all[least], reasons[least], false};
}

void refuse_too_large(const Model& model) {
  const MemoryLimit limit = memory_limit();
  const Index bytes = model.layout().size * Index{sizeof(Scalar)};
  if (bytes > limit.bytes) fail_too_large(bytes, "the weights", model.layout().count(), limit);
}

void refuse_too_large(const RunPlan& plan, double stated, bool server) {
  const MemoryPlan& memory = server ? plan.server_memory : plan.memory;
  const MemoryLimit limit = memory_limit();
  const Index least = memory.weights + memory.optimizer + memory.gradients;
  if (least > limit.bytes) {
    fail_too_large(least, "weights, optimizer state and gradients", plan.parameters, limit);
  }
  if (stated > 0 && static_cast<double>(memory.total()) > stated * kGib) {
    throw ConfigError(fmt::format(
        "a rank may need {}, more than distribute.memory_per_rank = {} GiB; `trainer plan` shows for what, "
        "and distribute.stages = \"auto\" can divide the model among ranks",
        human_bytes(memory.total()), stated));
  }
}

std::string doubt_of_memory(const RunPlan& plan) {
  const MemoryLimit limit = memory_limit();
  if (plan.memory.total() <= limit.bytes) return "";
  return fmt::format("with np {} a rank may need {}, but here it can have {} ({})", plan.ranks(),
                     human_bytes(plan.memory.total()), human_bytes(limit.bytes), limit.reason);
}

void warn_of_memory(const RunPlan& plan) {
  const std::string doubt = doubt_of_memory(plan);
  if (!doubt.empty()) log_warning("{}; `trainer plan` shows for what", doubt);
}

}  // namespace lockstep
