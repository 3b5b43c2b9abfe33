#include "lockstep/comm/checked_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

constexpr std::array kCollectiveNames{
    "barrier",          "broadcast", "all_reduce_sum", "start_all_reduce_sum", "all_gather",
    "start_all_gather", "split",     "split_by_node",  "shared_window",        "SharedWindow::fence"};
enum Collective : Index {
  kBarrier,
  kBroadcast,
  kAllReduce,
  kStartAllReduce,
  kAllGather,
  kStartAllGather,
  kSplit,
  kSplitByNode,
  kSharedWindow,
  kFence
};

constexpr std::array kTypeNames{"bytes", "int64", "float", "double"};
constexpr std::size_t kFields = 4;  // collective, count, type, root

std::string describe(std::span<const Index> fields) {
  const std::string root = fields[0] == kBroadcast ? fmt::format(" from rank {}", fields[3]) : "";
  return fmt::format("{} of {} {}{}", at(kCollectiveNames, fields[0]), fields[1], at(kTypeNames, fields[2]),
                     root);
}

class CheckedWindow final : public SharedWindow {
 public:
  CheckedWindow(std::unique_ptr<SharedWindow> inner, std::function<void()> at_fence)
      : inner_(std::move(inner)), at_fence_(std::move(at_fence)) {}

  std::span<std::byte> part(int rank) override { return inner_->part(rank); }
  void fence() override {
    at_fence_();
    inner_->fence();
  }

 private:
  std::unique_ptr<SharedWindow> inner_;
  std::function<void()> at_fence_;
};

}  // namespace

void CheckedCommunicator::compare(Index collective, Index count, DataType type, Index root) {
  const std::array<Index, kFields> mine{collective, count, static_cast<Index>(type), root};
  std::vector<Index> all(kFields * static_cast<std::size_t>(size()));
  inner().all_gather(as_buffer(std::span(mine)), as_buffer(std::span(all)));
  for (std::size_t peer = 0; peer < static_cast<std::size_t>(size()); ++peer) {
    const std::span<const Index> theirs = std::span<const Index>(all).subspan(peer * kFields, kFields);
    if (std::ranges::equal(theirs, mine)) continue;
    throw CommError("the ranks are not at the same collective: rank {} calls {}, rank {} calls {}", rank(),
                    describe(mine), peer, describe(theirs));
  }
}

void CheckedCommunicator::barrier() {
  compare(kBarrier, 0, DataType::kByte);
  inner().barrier();
}

void CheckedCommunicator::broadcast(Buffer buffer, int root) {
  compare(kBroadcast, buffer.count, buffer.type, root);
  inner().broadcast(buffer, root);
}

void CheckedCommunicator::all_reduce_sum(Buffer buffer) {
  compare(kAllReduce, buffer.count, buffer.type);
  inner().all_reduce_sum(buffer);
}

std::unique_ptr<Request> CheckedCommunicator::start_all_reduce_sum(Buffer buffer) {
  compare(kStartAllReduce, buffer.count, buffer.type);
  return inner().start_all_reduce_sum(buffer);
}

void CheckedCommunicator::all_gather(ConstBuffer mine, Buffer all) {
  compare(kAllGather, mine.count, mine.type);
  inner().all_gather(mine, all);
}

std::unique_ptr<Request> CheckedCommunicator::start_all_gather(Buffer whole, std::span<const Range> parts) {
  compare(kStartAllGather, whole.count, whole.type);
  return inner().start_all_gather(whole, parts);
}

std::unique_ptr<Communicator> CheckedCommunicator::split(Index color, Index order) {
  compare(kSplit, 0, DataType::kByte);
  return std::make_unique<CheckedCommunicator>(inner().split(color, order));
}

std::unique_ptr<Communicator> CheckedCommunicator::split_by_node(Index ranks_per_node) {
  compare(kSplitByNode, ranks_per_node, DataType::kByte);
  return std::make_unique<CheckedCommunicator>(inner().split_by_node(ranks_per_node));
}

std::unique_ptr<SharedWindow> CheckedCommunicator::shared_window(Index bytes) {
  compare(kSharedWindow, 0, DataType::kByte);
  return std::make_unique<CheckedWindow>(inner().shared_window(bytes),
                                         [this] { compare(kFence, 0, DataType::kByte); });
}

}  // namespace lockstep
