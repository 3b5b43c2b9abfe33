#pragma once

namespace lockstep {

struct ReportOptions {
  bool html = true;
  bool tensorboard = false;
};

}  // namespace lockstep
