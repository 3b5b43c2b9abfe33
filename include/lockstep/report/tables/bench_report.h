// The report of trainer bench, for people and for machines.
#pragma once

#include <string>
#include <vector>

#include "lockstep/train/bench/bench.h"
#include "lockstep/train/evaluation/metrics.h"

namespace lockstep {

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
