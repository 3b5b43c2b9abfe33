// A whole training on little synthetic data, in process: what the executable does, without files and options.
#pragma once

#include "lockstep/comm/communicator.h"
#include "lockstep/config/config.h"
#include "lockstep/data/loading/sampler.h"
#include "lockstep/train/loop/trainer.h"
#include "support/common.h"

namespace lockstep::test {

/// Sets keys as users know them: "train.epochs=2; train.tail=keep". Throws std::invalid_argument for others.
void set_keys(Config& config, const std::string& settings);
/// A function that does so.
std::function<void(Config&)> keys(const std::string& settings);

/// Twelve features, three classes, 101 rows (so that nothing divides evenly), two hidden layers, a few steps;
/// and these settings.
Config tiny_config(const std::string& settings = "");

struct TinyResult {
  std::vector<Scalar> weights;  ///< the whole arena
  std::vector<Scalar> average;  ///< of the weights, and moments; empty: there is none
  std::vector<Scalar> state;    ///< of replica 0: running moments
  TrainingResult training;
  std::vector<double> losses;            ///< of each step, on rank 0
  std::vector<EvalMetrics> evaluations;  ///< in order, on rank 0
  std::string save_failure;              ///< of the last checkpoint
};

/// Replaces the sampler of the config, for tests about which samples are used.
using MakeSampler = std::function<std::unique_ptr<Sampler>(const SamplingOptions&)>;

/// *Collective.* Trains to the end: on samples with weights if data.weight names a kind of weight_of(), with
/// a validation set if data.synthetic_validation_rows gives it rows, with checkpoints if checkpoint.dir is
/// given, from the one that run.resume names if it names one. Without checkpoint.wait a checkpoint takes
/// longer than many steps.
TinyResult train_tiny(Communicator& comm, const Config& config, const MakeSampler& sampler = make_sampler);

/// The same on so many ranks as threads: what rank 0 gets.
TinyResult train_tiny_on(int ranks, const Config& config, const MakeSampler& sampler = make_sampler);

/// On one of them.
TinyResult train_tiny_alone(const Config& config, const MakeSampler& sampler = make_sampler);

}  // namespace lockstep::test
