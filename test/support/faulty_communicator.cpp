#include "support/faulty_communicator.h"

#include "lockstep/base/errors.h"

namespace lockstep::test {

void FaultyCommunicator::count_call() {
  const Index call = count_.calls++;
  if (fault_.delayed > 0 && (call + rank_) % fault_.delayed == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (fault_.kind == Fault::Kind::kFail && fault_.rank == rank_ && fault_.call == call)
    throw CommError(fmt::format("call {} of rank {} fails on purpose", call, rank_));
}

std::unique_ptr<Communicator> FaultyCommunicator::part(std::unique_ptr<Communicator> inner) {
  return std::unique_ptr<Communicator>(new FaultyCommunicator(std::move(inner), fault_, count_, rank_));
}

void FaultyCommunicator::barrier() {
  count_call();
  inner().barrier();
}

void FaultyCommunicator::broadcast(Buffer buffer, int root) {
  count_call();
  inner().broadcast(buffer, root);
}

void FaultyCommunicator::all_reduce_sum(Buffer buffer) {
  count_call();
  inner().all_reduce_sum(buffer);
}

std::unique_ptr<Request> FaultyCommunicator::start_all_reduce_sum(Buffer buffer) {
  count_call();
  return inner().start_all_reduce_sum(buffer);
}

void FaultyCommunicator::all_gather(ConstBuffer mine, Buffer all) {
  count_call();
  inner().all_gather(mine, all);
}

std::unique_ptr<Request> FaultyCommunicator::start_all_gather(Buffer whole, std::span<const Range> parts) {
  count_call();
  return inner().start_all_gather(whole, parts);
}

std::unique_ptr<Request> FaultyCommunicator::start_exchange(int channel, std::span<const Send> sends,
                                                            std::span<const Receive> receives) {
  count_call();
  const bool dropped =
      fault_.kind == Fault::Kind::kDrop && fault_.rank == rank_ && fault_.call == count_.exchanges++;
  return inner().start_exchange(channel, dropped ? std::span<const Send>() : sends, receives);
}

std::unique_ptr<Communicator> FaultyCommunicator::split(Index color, Index order) {
  count_call();
  return part(inner().split(color, order));
}

std::unique_ptr<Communicator> FaultyCommunicator::split_by_node(Index ranks_per_node) {
  count_call();
  return part(inner().split_by_node(ranks_per_node));
}

std::unique_ptr<SharedWindow> FaultyCommunicator::shared_window(Index bytes) {
  count_call();
  return inner().shared_window(bytes);
}

}  // namespace lockstep::test
