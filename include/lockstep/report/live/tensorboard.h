// Event files, which TensorBoard shows: the numbers of metrics.jsonl as scalars, histograms, and the
// config as hyperparameters.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/train/loop/observer.h"

namespace lockstep {

/// One value of the config as the HParams page shows it.
struct HyperParameter {
  std::string key;  ///< "train.lr"
  std::string value;
};

class TensorBoardEvents final : public Observer {
 public:
  /// Writes a new file into `directory`, which is made if it is not there. What other files there have of
  /// steps after `first_step` is shown no more. `tensors`: names of the tensors, for histograms. Errors:
  /// DataError if the file cannot be created.
  TensorBoardEvents(const std::filesystem::path& directory, Index first_step,
                    const std::vector<HyperParameter>& parameters, std::vector<std::string> tensors = {});
  ~TensorBoardEvents() override;
  TensorBoardEvents(const TensorBoardEvents&) = delete;
  TensorBoardEvents& operator=(const TensorBoardEvents&) = delete;

  void on_train_metrics(const TrainMetrics& metrics) override;
  void on_evaluation(const EvalMetrics& metrics) override;
  void on_workers(const WorkersReport& report, const Progress& progress) override;
  /// Whether an event was lost, as on a full disk: that is a warning, and training goes on.
  bool failed() const { return failed_; }

 private:
  using Scalars = std::vector<std::pair<std::string, double>>;
  void write_scalars(Index step, const Scalars& scalars);
  void write_histograms(Index step, const UpdateStatistics& update);
  void write(const std::string& event);

  std::filesystem::path path_;
  std::vector<std::string> tensors_;
  std::int64_t bytes_ = 0;
  int descriptor_ = -1;
  bool failed_ = false;
};

/// A HistogramProto of kHistogramBins counts. Its least and greatest number, sum and sum of squares are those
/// of the middles of the bins.
std::string histogram_message(std::span<const double> counts);

}  // namespace lockstep
