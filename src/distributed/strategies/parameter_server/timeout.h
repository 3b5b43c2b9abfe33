// Waiting for another rank, but not for ever.
//
// Whoever is dead or stopped keeps others waiting, who keep others waiting in turn; the first whose timeout
// ends is to be one who waits for the culprit itself. So, in multiples of the time limit: a server waits for
// a message that is announced, or taken, a quarter of it; a worker waits for a server that owes it nothing
// but an answer half of it; the first server waits for each worker once; a worker whom a server may keep
// waiting for other workers twice; and the other servers, who know least, three times. Who was stopped itself
// blames nobody when it wakes.
#pragma once

#include <functional>
#include <string>

#include "lockstep/base/timer.h"
#include "lockstep/comm/communicator.h"

namespace lockstep {

struct Timeouts {
  static constexpr double kTransfer = 0.25;
  static constexpr double kAnswer = 0.5;
  static constexpr double kFirstServer = 1;
  static constexpr double kHeld = 2;
  static constexpr double kOtherServers = 3;
};

class Timeout {
 public:
  explicit Timeout(double seconds) : seconds_(seconds) {}

  /// *Blocking.* Waits until `ready` gives true. Errors: CommError with `whom()` after too long.
  void wait(const std::function<bool()>& ready, const std::function<std::string()>& whom) const;
  /// *Blocking.* Waits for a request to or from one rank.
  void wait(Request& request, int rank) const;

  /// Errors: always CommError.
  [[noreturn]] static void give_up(const std::string& whom, double waited);

 private:
  double seconds_;
};

/// Between two looks at what does not come. Most answers come at once; who has waited longer leaves the core
/// to others.
void nap_after(double waited);

}  // namespace lockstep
