#include "rank_placement.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "lockstep/base/environment.h"
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
  if (fewest == most) return fmt::format("{} core{} a rank", most, most == 1 ? "" : "s");
  return fmt::format("{} to {} cores a rank", fewest, most);
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
                          .table = job.empty() ? "" : job + "\n"};
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    placement.table += fmt::format("rank {}: host {}, cores {}\n", rank, hosts[rank], lists[rank]);
  }
  return placement;
}

}  // namespace lockstep
