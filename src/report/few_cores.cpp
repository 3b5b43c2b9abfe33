#include "lockstep/report/few_cores.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

std::string few_cores_warning(std::span<const Index> cores, Index threads) {
  const auto fewest = std::ranges::min_element(cores);
  if (*fewest >= threads) return "";
  return fmt::format(
      "rank {} runs {} threads on {} core{}; use fewer threads or ranks, or bind more cores to each rank: "
      "mpirun -np {} --map-by slot:PE={} --bind-to core (Open MPI), mpiexec -n {} -bind-to core:{} (MPICH), "
      "or srun --cpus-per-task={}",
      fewest - cores.begin(), threads, *fewest, *fewest == 1 ? "" : "s", cores.size(), threads, cores.size(),
      threads, threads);
}

}  // namespace lockstep
