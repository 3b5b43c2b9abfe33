// What a plan of a run is made from: a model of 100 features, and a data set that is not there.
#pragma once

#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/train/plan/run_plan.h"
#include "support/common.h"

namespace lockstep::test {

struct Given {
  TrainOptions train;
  DataOptions data;
  DistOptions distribute;
  ScheduleOptions schedule;
  Model model;
  Index rows = 650'000;
  std::shared_ptr<const std::vector<Chunk>> streamed = nullptr;
  OptimizerMemory optimizer = 1;
  Index evaluation_rankings = 0;
  Index evaluation_sets = 1;
  bool weighted = false;
  bool has_lengths = false;
  bool of_positions = false;
  std::string positive = {};
  bool saves = false;
  bool keeps_best = false;

  explicit Given(const std::string& layers = "dense(64) relu dense(10)")
      : model({.layers = layers}, {{100}}) {}

  RunPlan plan(Index world, Index ranks_per_node = 0) const {
    return plan_on(full_nodes(world, ranks_per_node));
  }

  RunPlan plan_on(const std::vector<Index>& nodes) const {
    return make_run_plan({.train = train,
                          .data = data,
                          .distribute = distribute,
                          .schedule = schedule,
                          .model = model,
                          .rows = rows,
                          .record_bytes = 104,
                          .streamed = streamed,
                          .weighted = weighted,
                          .has_lengths = has_lengths,
                          .of_positions = of_positions,
                          .positive = positive,
                          .optimizer = optimizer,
                          .evaluation_rows = 1000,
                          .evaluation_sets = evaluation_sets,
                          .evaluation_batch = 100,
                          .evaluation_rankings = evaluation_rankings,
                          .saves = saves,
                          .keeps_best = keeps_best,
                          .world = std::accumulate(nodes.begin(), nodes.end(), Index{0}),
                          .node_sizes = nodes});
  }
};

inline Given typical(const std::string& layers = "dense(64) relu dense(10)") {
  Given setup(layers);
  setup.train.epochs = 2;
  setup.train.global_batch = 128;
  setup.train.replicas = 64;
  setup.distribute.algorithm = "mpi";
  return setup;
}

}  // namespace lockstep::test
