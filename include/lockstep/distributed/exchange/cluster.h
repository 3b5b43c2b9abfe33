// Machines as a forecast sees them: what a message costs inside a node, where it is measured, and between
// nodes, if it is given.
#pragma once

#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

/// Seconds for so much of something (bytes, rows), from measured points: along straight lines between them
/// and beyond the last, and the first point's seconds below it. A line is the model of Hockney (1994, "The
/// communication challenge for MPP"): alpha + beta n.
class TimeCurve {
 public:
  struct Point {
    double amount = 0;
    double seconds = 0;
  };

  /// Takes no time.
  TimeCurve() = default;
  /// Points by ascending amount, at least two. A larger amount that seems to take less time is given the time
  /// of the smaller.
  explicit TimeCurve(std::vector<Point> points);
  /// `latency` in seconds; `bandwidth`: amount per second.
  static TimeCurve line(double latency, double bandwidth);

  bool empty() const { return points_.empty(); }
  double seconds(double amount) const;

 private:
  std::vector<Point> points_;
};

/// Ranks are numbered node by node.
struct Cluster {
  Index nodes = 1;
  Index ranks_per_node = 1;
  double oversubscription =
      1;  ///< factor on measured times of work on the ranks themselves, as threads share cores
  TimeCurve message = {};  ///< bytes from one rank of a node to another, and as many back at the same time
  TimeCurve shared = {};   ///< bytes that the ranks of a node add in memory they share, each a slice, for all
  TimeCurve link = {};     ///< bytes from a node, over all of its ranks, and as many to it at the same time
  double add_bandwidth = 0;  ///< bytes that a rank adds to others, per second; 0: in no time

  Index ranks() const { return nodes * ranks_per_node; }
};

/// The nodes as ranks, each with the whole link: its ranks exchange slices at the same time.
Cluster between_nodes(const Cluster& cluster);

}  // namespace lockstep
