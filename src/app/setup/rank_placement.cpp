#include "rank_placement.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

std::string environment(const char* name) {
  return environment_text(name).value_or("");
}

// "Slurm job 123 on n[1-2], start 2"; "" outside of one.
std::string describe_job() {
  const std::string id = environment("SLURM_JOB_ID");
  if (id.empty()) return "";
  std::string job = "Slurm job " + id;
  const std::string array = environment("SLURM_ARRAY_JOB_ID");
  if (!array.empty()) job += fmt::format(" ({}_{})", array, environment("SLURM_ARRAY_TASK_ID"));
  const std::string nodes = environment("SLURM_JOB_NODELIST");
  if (!nodes.empty()) job += " on " + nodes;
  return fmt::format("{}, start {}", job, environment_number("SLURM_RESTART_COUNT").value_or(0) + 1);
}

// As taskset writes them: "0-3,8".
std::string list_cores(const cpu_set_t& cores) {
  std::string list;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &cores)) continue;
    const int first = core;
    while (core + 1 < CPU_SETSIZE && CPU_ISSET(core + 1, &cores)) ++core;
    list += fmt::format("{}{}", list.empty() ? "" : ",", first);
    if (core > first) list += fmt::format("-{}", core);
  }
  return list;
}

std::string describe_binding(std::span<const Index> cores, bool all_free) {
  if (all_free) return "ranks are not bound to cores";
  const auto [fewest, most] = std::ranges::minmax(cores);
  if (fewest == most) return plural(most, "core") + " a rank";
  return fmt::format("{} to {} cores a rank", fewest, most);
}

[[noreturn]] void fail_too_large(Index bytes, const std::string& purpose, Index parameters,
                                 const MemoryLimit& limit) {
  throw ConfigError(
      "the model is too large: a rank needs {} for {} of {} parameters, but can have {} ({}); `trainer plan` "
      "shows what each takes, and distribute.stages can divide the model among ranks",
      human_bytes(bytes), purpose, with_commas(parameters), human_bytes(limit.bytes), limit.reason);
}

}  // namespace

std::vector<std::string> RankPlacement::host_names() const {
  const std::set<std::string> distinct(host_of.begin(), host_of.end());
  return {distinct.begin(), distinct.end()};
}

RankPlacement find_placement(Communicator& comm) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  const bool known = sched_getaffinity(0, sizeof mask, &mask) == 0;
  const Index own = cores_at_hand();
  const std::vector<Index> cores = gather_numbers(comm, own);
  Index bound = own < ::sysconf(_SC_NPROCESSORS_ONLN) ? 1 : 0;
  comm.all_reduce_sum(as_buffer(std::span(&bound, 1)));

  const std::vector<std::string> hosts = gather_texts(comm, host_name());
  const std::vector<std::string> lists = gather_texts(comm, known ? list_cores(mask) : "unknown");
  const std::string job = describe_job();
  RankPlacement placement{.host_of = hosts,
                          .summary = describe_binding(cores, bound == 0) + (job.empty() ? "" : "; " + job),
                          .table = job.empty() ? "" : job + "\n",
                          .cores = lists};
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    placement.table += fmt::format("rank {}: host {}, cores {}\n", rank, hosts[rank], lists[rank]);
  }
  return placement;
}

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
  error_if(
      stated > 0 && static_cast<double>(memory.total()) > stated * kGib,
      "a rank may need {}, more than distribute.memory_per_rank = {} GiB; `trainer plan` shows for what, "
      "and distribute.stages = \"auto\" can divide the model among ranks",
      human_bytes(memory.total()), stated);
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
