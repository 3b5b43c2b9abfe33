// Options of the exchange of gradients and the update of weights. Defaults stand here and nowhere else.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

/// How the gradients of the replicas are added: in any order, or along the fixed tree (same bits on any rank
/// count).
enum class Reduction { kNative, kOrdered };

/// When a parameter server takes a step: with the gradients of all workers; with each gradient as it arrives,
/// no worker too far ahead; or with each as it arrives.
enum class ServerMode { kSync, kBounded, kAsync };

/// The order in which a stage of the model takes its micro-batches: each backward pass as soon as the
/// gradient of its outputs is there, so that few micro-batches are alive; all forward passes before the
/// first backward pass; or as the first, with several chunks of the model on each rank (pipeline.h).
struct PipelineSchedule {
  enum class Order { kOneForwardOneBackward, kGpipe, kInterleaved };
  Order order = Order::kOneForwardOneBackward;
  Index chunks = 1;  ///< of the model on each rank; above 1 with kInterleaved alone
  bool operator==(const PipelineSchedule&) const = default;

  static const PipelineSchedule kOneForwardOneBackward;
  static const PipelineSchedule kGpipe;
};
inline constexpr PipelineSchedule PipelineSchedule::kOneForwardOneBackward{};
inline constexpr PipelineSchedule PipelineSchedule::kGpipe{.order = Order::kGpipe};

/// "1f1b", "gpipe" or "interleaved(v)" with v from 2; nothing for another text.
std::optional<PipelineSchedule> parse_schedule(std::string_view text);
std::string to_string(const PipelineSchedule& schedule);

/// The ranks of a group: neighbours, so that activations stay inside a node; or spread, so that the workers
/// of a stage are neighbours, and their gradients stay inside a node.
enum class StagePlacement { kNeighbours, kSpread };

/// As distribute.stages: as few as the memory of a rank allows.
inline constexpr Index kAutoStages = 0;

struct DistOptions {
  std::string strategy = "auto";
  Reduction reduction = Reduction::kNative;
  std::string algorithm = "auto";
  bool calibrate = true;
  Index bucket_kib = 1024;
  bool progress_thread = false;
  Index servers = 1;
  ServerMode mode = ServerMode::kSync;
  Index staleness = 4;
  Index backup_workers = 0;
  bool staleness_lr = false;
  bool record = false;
  std::string replay = {};
  double timeout_seconds = 300;
  std::string compression = "fp32";
  bool error_feedback = true;
  double top_k = 0.01;
  Index average_every = 8;
  bool average_state = false;
  std::string local_after = "0 steps";
  double block_momentum = 0;
  double block_lr = 1;
  bool block_nesterov = false;
  Index stages = 1;
  std::vector<std::string> cut = {"auto"};
  PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
  StagePlacement placement = StagePlacement::kNeighbours;
  double memory_per_rank = 0;
};

}  // namespace lockstep
