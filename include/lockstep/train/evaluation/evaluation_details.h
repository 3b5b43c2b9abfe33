// The single predictions behind the numbers of an evaluation, as far as a page about a run shows them. They
// are the same on any number of ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/data/table/values/schema.h"
#include "lockstep/math/shape.h"
#include "lockstep/nn/loss.h"
#include "lockstep/train/evaluation/evaluation.h"
#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/evaluation/threshold.h"

namespace lockstep {

// Predictions of numbers against their targets: a sample of them, and how often each residual occurs.

/// Models of more targets have the first ones described, those of windows none.
inline constexpr Index kMaxFits = 4;
inline constexpr Index kResidualBins = 41;

struct TargetFit {
  /// Targets and predictions of at most 1,000 samples, drawn by their ids, in the units of the labels.
  std::vector<std::pair<double, double>> sample = {};
  /// Counts of prediction - target in bins of equal width over [-width, width]; the outer bins have the rest,
  /// too.
  double width = 0;
  std::vector<Index> residuals = {};
};

/// The predictions that one thread has seen. Predictions of quantiles are those of the middle level.
class FitSamples {
 public:
  /// `rows`: of the whole set. Losses of anything but values, or of directions, have no fits.
  FitSamples(const OutputForm& form, Index outputs, Index rows, std::vector<LabelScale> scales);

  void add(const MetricRows& rows, std::span<const Index> ids);
  void add(FitSamples& other);
  /// *Collective.* All ranks get the same.
  std::vector<TargetFit> fits(Communicator& comm);

 private:
  struct Drawn {
    std::uint64_t key = 0;
    double target = 0;
    double prediction = 0;
    auto operator<=>(const Drawn&) const = default;
  };
  struct OneTarget {
    std::vector<Drawn> drawn = {};
    std::vector<Scalar> residuals = {};
  };

  static TargetFit fit(Communicator& comm, const OneTarget& samples);

  OutputForm form_;
  std::uint64_t drawn_below_ = 0;
  std::vector<LabelScale> scales_;
  std::vector<OneTarget> targets_;
};

// The records whose predictions have the largest losses.

inline constexpr std::size_t kWorstRecords = 20;

struct WorstRecord {
  double loss = 0;  ///< infinite where it is not a number
  Index id = 0;     ///< see Evaluation::Visit
  std::string target = {};
  std::string prediction = {};
};

/// The names and units that predictions are told in.
struct PredictionWords {
  std::vector<std::string> classes = {};  ///< empty: numbers
  std::vector<LabelScale> scales = {};    ///< see in_label_units()
};

/// The worst records that one thread has seen; equal losses go by the id.
class WorstRecords {
 public:
  /// References must outlive it.
  WorstRecords(const Loss& loss, const PredictionWords& words) : loss_(loss), words_(words) {}

  void add(const MetricRows& rows, std::span<const Index> ids);
  void add(const WorstRecord& record);
  /// The largest loss first.
  const std::vector<WorstRecord>& records() const { return records_; }

 private:
  bool is_wanted(double loss, Index id) const;

  const Loss& loss_;
  const PredictionWords& words_;
  std::vector<WorstRecord> records_;
};

/// One of the worst records, with what the files have of it.
struct ShownRecord {
  WorstRecord record;
  Index position = 0;                   ///< number in the files, from 0 on
  std::optional<Index> of_record = {};  ///< the position of the record that this is, where it has targets
  std::string file = {};                ///< path of its file; "" for data that are computed
  std::vector<Scalar> pixels = {};      ///< of an image; else empty
  std::vector<std::string> cells = {};  ///< values of the columns; empty for an image
};

struct EvaluationDetails {
  Split split = Split::kTest;
  Index samples = 0;
  Shape shape = {};  ///< shape of a record
  std::vector<std::string> classes = {};
  std::vector<std::string> outputs = {};  ///< names of several outputs of yes or no, where they have some
  std::vector<std::string> columns = {};  ///< names of the columns of which the worst records have cells
  std::vector<ThresholdCurve> curves = {};
  std::vector<TargetFit> fits = {};
  std::vector<ShownRecord> worst = {};  ///< the largest loss first
  std::vector<ShownWindow> windows = {};
};

/// *Collective.* Runs the model over the set once more. The result is whole on rank 0 alone.
EvaluationDetails describe_evaluation(const EvaluationContext& context, Evaluation& evaluation,
                                      const RecordSource& source, const ModelValues& values);

}  // namespace lockstep
