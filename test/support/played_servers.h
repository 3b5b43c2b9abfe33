// Parameter servers and workers on threads, whose messages arrive in an order that the test writes down, with
// gradients so simple that the weights can be computed by hand: all weights of a server are the same number.
#pragma once

#include "lockstep/distributed/strategies/asynchronous.h"
#include "support/common.h"

namespace lockstep::test {

/// A gradient that a worker pushes: the mean over its samples is `mean` for each weight.
struct PushedGradient {
  double mean = 0;  ///< NaN: a bad number
  double weight = 1;
  Index samples = 1;
  double lr = 1;
  double loss = 0;  ///< sum
  double correct = 0;
  std::vector<double> moments = {};
};

struct ServersPlay {
  DistOptions options = {};
  double clip_norm = 0;
  Index until = 0;                                   ///< steps
  std::vector<std::vector<PushedGradient>> workers;  ///< what each pushes, in order
  /// By server: its messages in the order in which it takes them, each the number of the sender and a letter:
  /// a ask, p pull, u push, b bad, g done message, d decision of the first server (whose number follows those
  /// of the workers).
  std::vector<std::string> arrivals;
};

/// Weights that each server has; all are 0 at first.
inline constexpr Index kPlayedSlice = 1024;

struct ServersPlayed {
  std::vector<Scalar> weights;                           ///< at the end, by server
  std::vector<std::vector<std::vector<Scalar>>> pulled;  ///< by worker, pull and server
  std::vector<std::vector<double>> moments;              ///< that the first server took, in order
  WorkersReport report;
};

/// Plain steps (sgd). Errors: as training; CommError if messages do not come as written down.
ServersPlayed play_servers(const ServersPlay& play);

/// The messages of all servers with as many of them, where they come in the same order: `arrivals` without
/// what only the first gets.
std::vector<std::string> same_arrivals(const std::string& arrivals, Index servers);

}  // namespace lockstep::test
