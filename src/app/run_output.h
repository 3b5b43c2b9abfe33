// The files and lines that rank 0 writes while a run goes on; other ranks write none.
#pragma once

#include "experiment.h"
#include "lockstep/report/metrics_file.h"
#include "lockstep/report/progress_line.h"
#include "lockstep/train/plan/run_plan.h"
#include "lockstep/train/storage/checkpoint/interval.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

class RunOutput final : public Observer {
 public:
  /// Goes on behind the first `keep` bytes of metrics.jsonl. `incomplete`: incomplete_files() before.
  RunOutput(const Experiment& experiment, const RunPlan& plan, Index keep,
            std::vector<std::string> incomplete)
      : metrics_(RunDirectory{experiment.config.run.dir}.metrics(), keep),
        line_(experiment.config.run.progress, plan.whole_run(),
              {.every = parse_training_interval("eval.every", experiment.config.eval.every).training,
               .validation = experiment.validation != nullptr,
               .test = experiment.test != nullptr}),
        incomplete_(std::move(incomplete)) {}

  void on_step(const Progress& progress, double loss) override { line_.on_step(progress, loss); }
  void on_train_metrics(const TrainMetrics& metrics) override {
    metrics_.on_train_metrics(metrics);
    line_.on_train_metrics(metrics);
  }
  void on_evaluation(const EvalMetrics& metrics) override {
    metrics_.on_evaluation(metrics);
    line_.on_evaluation(metrics);
  }
  void on_workers(const WorkersReport& report, const Progress& progress) override {
    metrics_.on_workers(report, progress);
  }
  void on_audit(Index epoch, Index samples, Index times) override;
  Index written_bytes() const override { return metrics_.written_bytes(); }
  std::vector<std::string> incomplete_files() const override;

 private:
  MetricsFile metrics_;
  ProgressLine line_;
  std::vector<std::string> incomplete_;
};

}  // namespace lockstep
