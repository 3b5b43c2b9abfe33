#include "precision.h"

#include <fmt/format.h>

#include "lockstep/base/errors.h"
#include "lockstep/comm/checked_communicator.h"
#include "lockstep/comm/session.h"
#include "lockstep/math/kernels.h"

namespace lockstep {

std::string to_string(Bf16Support support) {
  switch (support) {
    case Bf16Support::kNone:
      return "none";
    case Bf16Support::kEmulated:
      return "emulated";
    case Bf16Support::kNative:
      return "native";
  }
  return "";
}

std::string describe_precision(const Config& config) {
  if (config.model.precision == Precision::kFp32) return "fp32";
  return bf16_support() == Bf16Support::kNative ? "bf16" : "bf16, emulated";
}

void refuse_missing_precision(const Config& config) {
  if (config.model.precision == Precision::kFp32 || bf16_support() == Bf16Support::kNative) return;
  const bool can_emulate = bf16_support() == Bf16Support::kEmulated;
  if (can_emulate && config.debug.emulate_bf16) return;
  throw ConfigError(fmt::format(
      "train.precision is \"bf16\", which needs oneDNN and a CPU with avx512_core_bf16 or avx512_core_amx; "
      "here is {}: use --train.precision fp32{}",
      kernel_back_end(),
      can_emulate ? ", or for a test, slowly, --debug.emulate_bf16 true" : ", which any CPU has"));
}

std::vector<std::string> build_facts() {
  return {fmt::format("MPI: {}", mpi_library()), fmt::format("kernels: {}", kernel_back_end()),
          fmt::format("bf16: {}", to_string(bf16_support())), fmt::format("compiler: {}", __VERSION__),
          fmt::format("collectives compared over the ranks before each call: {}",
                      kChecksCollectives ? "yes" : "no")};
}

}  // namespace lockstep
