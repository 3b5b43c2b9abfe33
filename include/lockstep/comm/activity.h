// The state that a rank publishes while it works, for the watchdog: a few words in memory that others read at
// any moment. One thread writes, with relaxed stores and without reading a clock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "lockstep/base/types.h"

namespace lockstep {

enum class Phase : int {
  kStart,
  kLoading,   ///< reading the data sets
  kData,      ///< waiting for the loader, or its main thread prepares samples itself
  kCompute,   ///< forward and backward
  kExchange,  ///< exchanging gradients
  kOptimizer,
  kEvaluation,
  kCheckpoint,
  kStageForward,  ///< a micro-batch through this rank's stage of the model; likewise
  kStageBackward
};

inline constexpr std::array<std::string_view, 10> kPhaseNames{
    "start",      "loading", "data",    "forward and backward", "exchange", "optimizer", "evaluation",
    "checkpoint", "forward", "backward"};

/// The calls of a communicator that wait for other ranks.
enum class Call : int {
  kNone,
  kBarrier,
  kBroadcast,
  kAllReduce,
  kAllGather,
  kSplit,
  kWindow,
  kFence,
  kWait,
  kIdle
};

inline constexpr std::array<std::string_view, 10> kCallNames{
    "", "barrier", "broadcast", "all_reduce_sum", "all_gather", "split", "window", "fence", "wait", "idle"};

/// Lives in memory that the ranks of a node share.
struct Activity {
  std::atomic<std::uint64_t> marks = 0;  ///< rises whenever the rank gets on
  std::atomic<Phase> phase = Phase::kStart;
  std::atomic<Index> step = -1;
  std::atomic<Index> first_sample = 0;  ///< the first sample of the step
  std::atomic<Index> end_sample = 0;
  /// The last that was handed to the exchange; -1: none in this step. In the phases of a stage the
  /// micro-batch.
  std::atomic<Index> bucket = -1;
  std::atomic<Index> stage = -1;  ///< of the model, that this rank runs; -1: the model is not divided
  std::atomic<Call> call = Call::kNone;
  std::atomic<Index> call_number = 0;   ///< number of the call among the waiting calls on that communicator
  std::atomic<Index> communicator = 0;  ///< 0: all ranks; else as they were made
};

}  // namespace lockstep
