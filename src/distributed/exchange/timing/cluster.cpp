#include "lockstep/distributed/exchange/cluster.h"

#include <algorithm>
#include <cassert>

namespace lockstep {

TimeCurve::TimeCurve(std::vector<Point> points) : points_(std::move(points)) {
  assert(points_.size() >= 2);
  for (std::size_t i = 1; i < points_.size(); ++i) {
    points_[i].seconds = std::max(points_[i].seconds, points_[i - 1].seconds);
  }
}

TimeCurve TimeCurve::line(double latency, double bandwidth) {
  return TimeCurve({{.amount = 0, .seconds = latency}, {.amount = bandwidth, .seconds = latency + 1}});
}

double TimeCurve::seconds(double amount) const {
  if (points_.empty()) return 0;
  if (amount <= points_.front().amount) return points_.front().seconds;
  const auto above = std::find_if(points_.begin() + 1, points_.end() - 1,
                                  [amount](const Point& point) { return point.amount >= amount; });
  const Point& below = *(above - 1);
  const double slope = (above->seconds - below.seconds) / (above->amount - below.amount);
  return below.seconds + slope * (amount - below.amount);
}

Cluster between_nodes(const Cluster& cluster) {
  Cluster across = cluster;
  across.ranks_per_node = 1;
  across.add_bandwidth *= static_cast<double>(cluster.ranks_per_node);
  return across;
}

}  // namespace lockstep
