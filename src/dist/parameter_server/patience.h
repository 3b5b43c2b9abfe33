// Waiting for another rank, but not for ever.
#pragma once

#include <functional>
#include <string>

#include "lockstep/base/timer.h"
#include "lockstep/comm/communicator.h"

namespace lockstep {

class Patience {
 public:
  explicit Patience(double seconds) : seconds_(seconds) {}

  /// *Blocking.* Until `ready` gives true. Errors: CommError with `whom()` after too long.
  void wait(const std::function<bool()>& ready, const std::function<std::string()>& whom) const;
  /// *Blocking.* The same for a request to or from one rank.
  void wait(Request& request, int rank) const;

 private:
  double seconds_;
};

}  // namespace lockstep
