// The messages between workers and servers. For each gradient a worker asks the first server for permission,
// pulls each server's range of the weights, computes, and pushes each server its range of the gradient.
#pragma once

#include <utility>

#include "lockstep/comm/communicator.h"
#include "lockstep/distributed/strategies/asynchronous.h"

namespace lockstep {

// Channels. A header announces the message; the rest follows on the channel of its kind.
inline constexpr int kHeaders = 0;
inline constexpr int kGradients = 1;
inline constexpr int kMoments = 2;
inline constexpr int kPullReplies = 3;
inline constexpr int kVersions = 4;
inline constexpr int kWeights = 5;
inline constexpr int kDecisions = 6;

enum class MessageKind : Index {
  kAsk,      // asks the first server: may I go on?
  kPull,     // asks for the weights, for step `step`
  kPush,     // a gradient follows
  kBad,      // tells the first server: my gradient is not finite
  kDone,     // nothing more in this round
  kDecision  // from the first server to another: whose gradients make step `step`
};

struct MessageHeader {
  MessageKind kind = MessageKind::kAsk;
  Index step = 0;
  Index version = 0;  // version of the weights that the gradient was computed from
  Index samples = 0;
  double weight = 0;
  double loss = 0;
  double correct = 0;
  double lr = 0;
  Index slowest = 0;     // `slowest` of the last PullReply to the worker
  Index ends_early = 0;  // 1: the worker wants the round to end
  Index moments = 0;     // sums for the running moments, which follow to the first server
};

// The answer to kAsk.
struct PullReply {
  Index granted = 0;  // 0: the round is over
  Index slowest =
      0;  // mode bounded: gradients that every worker has pushed, and that are to be in the weights
  Assignment assignment;
};

template <class T>
ConstBuffer bytes_of(const T& value) {
  return as_buffer(std::as_bytes(std::span(&value, 1)));
}
template <class T>
Buffer bytes_of(T& value) {
  return as_buffer(std::as_writable_bytes(std::span(&value, 1)));
}

}  // namespace lockstep
