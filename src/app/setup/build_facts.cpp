#include "build_facts.h"

#include <fmt/format.h>

#include "lockstep/comm/checked_communicator.h"
#include "lockstep/comm/session.h"
#include "lockstep/math/kernels.h"
#include "precision.h"

namespace lockstep {

std::vector<std::string> build_facts() {
  return {fmt::format("MPI: {}", mpi_library()), fmt::format("kernels: {}", kernel_back_end()),
          fmt::format("bf16: {}", to_string(bf16_support())), fmt::format("compiler: {}", __VERSION__),
          fmt::format("collectives compared over the ranks before each call: {}",
                      kChecksCollectives ? "yes" : "no")};
}

}  // namespace lockstep
