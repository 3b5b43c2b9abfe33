#pragma once

#include <string>

namespace lockstep {

struct ReportOptions {
  bool html = true;
  bool tensorboard = false;
  bool histograms = false;
  std::string trace = {};   ///< see parse_trace(); "": none
  std::string sample = {};  ///< the beginning of a text; "": none is continued
};

}  // namespace lockstep
