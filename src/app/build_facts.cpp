#include "build_facts.h"

#include <fmt/format.h>

#include <Eigen/Core>

#include "lockstep/comm/checked_communicator.h"
#include "lockstep/comm/session.h"

namespace lockstep {

std::vector<std::string> build_facts() {
  return {fmt::format("MPI: {}", mpi_library()),
          fmt::format("kernels: Eigen {}.{}.{} ({})", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION,
                      EIGEN_MINOR_VERSION, Eigen::SimdInstructionSetsInUse()),
          fmt::format("compiler: {}", __VERSION__),
          fmt::format("collectives compared over the ranks before each call: {}",
                      kChecksCollectives ? "yes" : "no")};
}

}  // namespace lockstep
