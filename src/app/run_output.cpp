#include "run_output.h"

#include <spdlog/spdlog.h>

#include "lockstep/base/text.h"

namespace lockstep {

void RunOutput::on_audit(Index epoch, Index samples, Index times) {
  spdlog::info("audit: epoch {} used {} samples, each {} time{}", epoch, with_commas(samples), times,
               times == 1 ? "" : "s");
}

}  // namespace lockstep
