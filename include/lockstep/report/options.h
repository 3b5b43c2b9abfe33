#pragma once

namespace lockstep {

struct ReportOptions {
  bool html = true;
  bool tensorboard = false;
  bool histograms = false;
};

}  // namespace lockstep
