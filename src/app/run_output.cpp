#include "run_output.h"

#include <algorithm>

#include "lockstep/base/log.h"
#include "lockstep/base/text.h"

namespace lockstep {

void RunOutput::on_audit(Index epoch, Index samples, Index times) {
  log_info("audit: epoch {} used {} samples, each {} time{}", epoch, with_commas(samples), times,
           times == 1 ? "" : "s");
}

std::vector<std::string> RunOutput::incomplete_files() const {
  const RunDirectory names;
  std::vector<std::string> files = incomplete_;
  const auto add = [&](const std::string& file) {
    if (std::ranges::find(files, file) == files.end()) files.push_back(file);
  };
  if (log_file_lost_lines()) add(names.log().string());
  if (metrics_.failed()) add(names.metrics().string());
  return files;
}

}  // namespace lockstep
