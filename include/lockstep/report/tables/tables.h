// Runs and models as tables and as JSON: plans, evaluations, importance, bench.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <vector>

#include "lockstep/nn/model.h"
#include "lockstep/report/history/metrics_history.h"
#include "lockstep/train/bench/bench.h"
#include "lockstep/train/evaluation/importance.h"
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/train/plan/run_plan.h"
#include "lockstep/train/storage/run_record.h"

namespace lockstep {

// The plans of a run for several numbers of ranks, for people.

/// The plans side by side, one column for each, as text with one plain sentence at the end for what people
/// most often get wrong.
std::string plan_table(std::span<const RunPlan> plans);

/// A plan for programs: numbers, the rows of that table, the lines that follow it, and the layers.
PlanRecord plan_record(const RunPlan& plan, const Model& model);

/// The plan in a few lines: how long the run is, how large the model, and those plain sentences.
std::string plan_summary(const RunPlan& plan);

// The layers of a model as a table for people.

/// One line for each layer: number and text, shape of the output, parameters, floating-point operations of
/// one sample in the forward pass, bytes that one sample leaves behind for the backward pass; and their
/// totals.
std::string model_table(const Model& model);
/// The cells of that table, its head first.
std::vector<std::vector<std::string>> model_rows(const Model& model);

// An evaluation in tables: how each class is recognised, and whether what is predicted with a probability
// comes true as often.

/// Classes of which tables are shown; files have up to 100.
inline constexpr Index kMaxClassesShown = 30;

/// Precision, recall, F1 and samples of each class (of several outputs of yes or no: of the yes of each),
/// then the reliability; "" for what is neither. Each line ends with a line feed.
std::string evaluation_tables(const EvalMetrics& metrics);

/// The evaluation as metrics.jsonl has it, with the tables in it, as "per_class" and "reliability", and
/// "forecast".
nlohmann::ordered_json json_with_tables(const EvalMetrics& metrics);

/// A list of the forecasts: of the model, where it is known, and those that need none.
nlohmann::ordered_json json_of_errors(const ForecastErrors& errors);

/// "7", or "7 (boot)" where the name of the class is known.
std::string class_name(const std::vector<std::string>& names, std::size_t index);

/// Precision, recall and number of samples of a class; a share of nothing is NaN.
struct ClassScore {
  double precision = 0;
  double recall = 0;
  double f1 = 0;
  Index samples = 0;
};
std::vector<ClassScore> class_scores(const ConfusionMatrix& confusion);

// The findings of importance for a terminal, as CSV and as JSON.

struct ImportanceResult {
  std::string model;
  std::string set;      ///< "validation" or "test"
  std::string measure;  ///< "loss", "accuracy" or a metric
  Importance importance;
};

std::string to_text(const ImportanceResult& result);
std::string to_csv(const ImportanceResult& result);
std::string to_json(const ImportanceResult& result);

struct DependenceResult {
  std::string model;
  std::string set;
  Index samples = 0;
  std::string column;
  std::vector<std::string>
      outputs;  ///< what is predicted: "prediction", or "probability of yes" and the like
  std::vector<ColumnValue> grid;
  std::vector<std::vector<double>> means;  ///< a row for each value of the grid, a column for each output
};

std::string to_text(const DependenceResult& result);
std::string to_csv(const DependenceResult& result);
std::string to_json(const DependenceResult& result);

// The report of trainer bench, for people and for machines.

/// A training step of the config, on average.
struct StepRate {
  double seconds = 0;
  double samples_per_second = 0;  ///< samples of all ranks
  double flops = 0;               ///< per second, of all ranks
  double samples = 0;
  Index workers = 1;
  Index replicas = 1;
  Index threads = 1;
  Index accumulate = 1;
  double optimizer_bytes = 0;  ///< bytes that each rank's optimizer reads and writes; 0: servers step
  double sent_bytes = 0;       ///< bytes sent by the rank that sends most
  double stepped = 1;          ///< times all weights that each rank's optimizer steps on
  TimeShares time;
};

struct BenchReport {
  Index ranks = 1;
  Index hosts = 1;
  Index cores = 1;  ///< cores of a host
  Index parameters = 0;
  Index rows = 0;         ///< rows of a replica's batch
  std::string precision;  ///< precision that the model multiplies in: "fp32", "bf16", "bf16, emulated"
  MachineLimits machine;
  double cache_line_seconds = 0;  ///< time to a neighbour and back; 0: no two ranks share rank 0's host
  std::vector<OpRate> ops;
  std::vector<AlgorithmRate> exchanges;   ///< by MPI_Allreduce; without a name
  std::vector<AlgorithmRate> algorithms;  ///< sorted by size, then by algorithm: the same ones for each size
  std::string note_on_order;              ///< the algorithms that the reduction rules out, and why; ""
  std::vector<UpdateRate> updates;
  StepRate step;
};

/// Floating-point operations of training for one sample, as counted for the ops.
struct SampleFlops {
  double forward = 0;
  double backward = 0;
};
SampleFlops flops_per_sample(const BenchReport& report);

/// Tables, each figure beside its limit.
std::string to_text(const BenchReport& report);
std::string to_json(const BenchReport& report);

}  // namespace lockstep
