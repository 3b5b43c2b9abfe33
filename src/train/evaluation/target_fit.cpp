// A sample is drawn if a hash of its id is below a bound, so that a few more than wanted are; those with the
// least hashes stay. So the sample does not depend on who evaluates what.
#include "lockstep/train/evaluation/target_fit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/base/hash.h"
#include "lockstep/comm/agree.h"
#include "lockstep/train/evaluation/prediction.h"

namespace lockstep {
namespace {

constexpr Index kWanted = 1000;

std::uint64_t key_of(Index id) {
  const std::array<Index, 1> one{id};
  return hash_bytes(std::as_bytes(std::span(one)));
}

}  // namespace

FitSamples::FitSamples(const OutputForm& form, Index outputs, Index rows, std::vector<LabelScale> scales)
    : form_(form), scales_(std::move(scales)) {
  if (form.targets != TargetKind::kValue || form.direction) return;
  targets_.resize(static_cast<std::size_t>(std::min(outputs / form.outputs_per_target(), kMaxFits)));
  const double share = 2 * static_cast<double>(kWanted) / static_cast<double>(std::max<Index>(rows, 1));
  drawn_below_ = share >= 1 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(share * 0x1p64);
}

void FitSamples::add(const MetricRows& rows, std::span<const Index> ids) {
  if (targets_.empty()) return;
  const Index levels = form_.outputs_per_target();
  std::vector<Scalar> values(static_cast<std::size_t>(rows.outputs.size()));
  Matrix predictions(values.data(), rows.outputs.rows(), rows.outputs.cols());
  predict_rows(form_, rows.outputs, predictions, scales_);
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const auto column = static_cast<Index>(i);
    const auto in_units = [&](Scalar value) { return scales_.empty() ? value : scales_[i].undo(value); };
    for (Index row = 0; row < rows.outputs.rows(); ++row) {
      const auto prediction = static_cast<double>(predictions(row, column * levels + levels / 2));
      const auto target = static_cast<double>(in_units(rows.targets(row, column)));
      if (!std::isfinite(prediction) || !std::isfinite(target) || rows.weights[row] == 0) continue;
      targets_[i].residuals.push_back(static_cast<Scalar>(prediction - target));
      const std::uint64_t key = key_of(at(ids, row));
      if (key <= drawn_below_) targets_[i].drawn.push_back({key, target, prediction});
    }
  }
}

void FitSamples::add(FitSamples& other) {
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const OneTarget& theirs = other.targets_[i];
    targets_[i].drawn.insert(targets_[i].drawn.end(), theirs.drawn.begin(), theirs.drawn.end());
    targets_[i].residuals.insert(targets_[i].residuals.end(), theirs.residuals.begin(),
                                 theirs.residuals.end());
  }
}

std::vector<TargetFit> FitSamples::fits(Communicator& comm) {
  std::vector<TargetFit> fits;
  for (const OneTarget& samples : targets_) fits.push_back(fit(comm, samples));
  return fits;
}

TargetFit FitSamples::fit(Communicator& comm, const OneTarget& samples) {
  std::vector<Drawn> drawn = gather_records<Drawn>(comm, samples.drawn);
  std::ranges::sort(drawn);
  Index wanted = std::min(std::ssize(drawn), kWanted);
  comm.broadcast(as_buffer(std::span(&wanted, 1)), 0);
  drawn.resize(static_cast<std::size_t>(wanted));
  comm.broadcast(as_buffer(std::as_writable_bytes(std::span(drawn))), 0);

  TargetFit fit;
  std::vector<double> sizes;
  for (const Drawn& each : drawn) {
    fit.sample.emplace_back(each.target, each.prediction);
    sizes.push_back(std::abs(each.prediction - each.target));
  }
  std::ranges::sort(sizes);
  // A few wild residuals do not squeeze all others into one bin.
  if (!sizes.empty()) fit.width = 1.2 * sizes[(sizes.size() - 1) * 98 / 100];
  if (fit.width <= 0) fit.width = 1;
  fit.residuals.resize(kResidualBins);
  for (const Scalar residual : samples.residuals) {
    const double place =
        (static_cast<double>(residual) / fit.width + 1) / 2 * static_cast<double>(kResidualBins);
    const double bin = std::clamp(place, 0.0, static_cast<double>(kResidualBins - 1));
    ++at(fit.residuals, static_cast<Index>(bin));
  }
  comm.all_reduce_sum(as_buffer(std::span(fit.residuals)));
  return fit;
}

}  // namespace lockstep
