#include "mpi_communicator.h"

#include <algorithm>
#include <cassert>
#include <climits>
#include <cstdlib>
#include <string>
#include <vector>

#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

// MPI counts are int: longer buffers are sent in pieces of this many elements.
constexpr Index kMaxCount = Index{1} << 30;

MPI_Datatype mpi_type(DataType type) {
  const MPI_Datatype types[] = {MPI_BYTE, MPI_INT64_T, MPI_FLOAT, MPI_DOUBLE};  // as DataType
  return types[static_cast<std::size_t>(type)];
}

// Calls `visit(pointer, count)` for pieces that MPI can count.
template <class Pointer, class Visit>
void in_pieces(Pointer* data, Index count, DataType type, const Visit& visit) {
  using Byte = std::conditional_t<std::is_const_v<Pointer>, const char, char>;
  auto* bytes = static_cast<Byte*>(data);
  Index done = 0;
  do {
    const Index now = std::min(count - done, kMaxCount);
    visit(bytes + done * size_of(type), static_cast<int>(now));
    done += now;
  } while (done < count);
}

class MpiRequests final : public Request {
 public:
  // `number`: of the call that starts them; `communicator`: its number.
  MpiRequests(Index number, Index communicator) : number_(number), communicator_(communicator) {}

  MPI_Request* add() { return &requests_.emplace_back(MPI_REQUEST_NULL); }

  // MPI reads the lists of MPI_Iallgatherv until it is complete, so they live here.
  void set_parts(std::span<const Range> parts) {
    for (const Range part : parts) {
      counts_.push_back(static_cast<int>(part.size()));
      starts_.push_back(static_cast<int>(part.begin));
    }
  }
  const int* counts() const { return counts_.data(); }
  const int* starts() const { return starts_.data(); }

  bool test() override {
    int complete = 0;
    check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &complete, MPI_STATUSES_IGNORE),
          "MPI_Testall");
    return complete != 0;
  }

  void wait() override {
    const Waiting waiting(Call::kWait, number_, communicator_);
    check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
          "MPI_Waitall");
  }

 private:
  Index number_;
  Index communicator_;
  std::vector<MPI_Request> requests_;
  std::vector<int> counts_;
  std::vector<int> starts_;
};

}  // namespace

MpiCommunicator::MpiCommunicator(MPI_Comm comm)
    : comm_(comm), number_(own_activity == nullptr ? 0 : ++own_activity->communicators) {
  check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
}

MpiCommunicator::~MpiCommunicator() {
  MPI_Comm_free(&comm_);
}

void MpiCommunicator::barrier() {
  const Waiting waiting = begin(Call::kBarrier);
  check(MPI_Barrier(comm_), "MPI_Barrier");
}

void MpiCommunicator::broadcast(Buffer buffer, int root) {
  const Waiting waiting = begin(Call::kBroadcast);
  in_pieces(buffer.data, buffer.count, buffer.type, [&](char* data, int count) {
    check(MPI_Bcast(data, count, mpi_type(buffer.type), root, comm_), "MPI_Bcast");
  });
}

void MpiCommunicator::all_reduce_sum(Buffer buffer) {
  const Waiting waiting = begin(Call::kAllReduce);
  in_pieces(buffer.data, buffer.count, buffer.type, [&](char* data, int count) {
    check(MPI_Allreduce(MPI_IN_PLACE, data, count, mpi_type(buffer.type), MPI_SUM, comm_), "MPI_Allreduce");
  });
}

std::unique_ptr<Request> MpiCommunicator::start_all_reduce_sum(Buffer buffer) {
  auto requests = std::make_unique<MpiRequests>(++calls_, number_);
  in_pieces(buffer.data, buffer.count, buffer.type, [&](char* data, int count) {
    check(MPI_Iallreduce(MPI_IN_PLACE, data, count, mpi_type(buffer.type), MPI_SUM, comm_, requests->add()),
          "MPI_Iallreduce");
  });
  return requests;
}

void MpiCommunicator::all_gather(ConstBuffer mine, Buffer all) {
  if (mine.count > kMaxCount) throw CommError("all_gather: more elements than MPI can count");
  const Waiting waiting = begin(Call::kAllGather);
  const int count = static_cast<int>(mine.count);
  check(MPI_Allgather(mine.data, count, mpi_type(mine.type), all.data, count, mpi_type(all.type), comm_),
        "MPI_Allgather");
}

std::unique_ptr<Request> MpiCommunicator::start_all_gather(Buffer whole, std::span<const Range> parts) {
  for (const Range part : parts) {
    if (part.end > kMaxCount) throw CommError("MPI_Iallgatherv: more elements than MPI can count");
  }
  auto requests = std::make_unique<MpiRequests>(++calls_, number_);
  requests->set_parts(parts);
  check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, whole.data, requests->counts(),
                        requests->starts(), mpi_type(whole.type), comm_, requests->add()),
        "MPI_Iallgatherv");
  return requests;
}

// Pairs exchange at different moments: a number would mean nothing.
std::unique_ptr<Request> MpiCommunicator::start_exchange(int channel, std::span<const Send> sends,
                                                         std::span<const Receive> receives) {
  auto requests = std::make_unique<MpiRequests>(0, number_);
  for (const Receive& receive : receives) {
    const Buffer& to = receive.buffer;
    in_pieces(to.data, to.count, to.type, [&](char* data, int count) {
      check(MPI_Irecv(data, count, mpi_type(to.type), receive.peer, channel, comm_, requests->add()),
            "MPI_Irecv");
    });
  }
  for (const Send& send : sends) {
    const ConstBuffer& from = send.buffer;
    in_pieces(from.data, from.count, from.type, [&](const char* data, int count) {
      check(MPI_Isend(data, count, mpi_type(from.type), send.peer, channel, comm_, requests->add()),
            "MPI_Isend");
    });
  }
  return requests;
}

std::unique_ptr<Communicator> MpiCommunicator::split(Index color, Index order) {
  assert(0 <= color && color <= INT_MAX && INT_MIN <= order && order <= INT_MAX);
  const Waiting waiting = begin(Call::kSplit);
  MPI_Comm part = MPI_COMM_NULL;
  check(MPI_Comm_split(comm_, static_cast<int>(color), static_cast<int>(order), &part), "MPI_Comm_split");
  return std::make_unique<MpiCommunicator>(part);
}

std::unique_ptr<Communicator> MpiCommunicator::split_by_node(Index ranks_per_node) {
  const Waiting waiting = begin(Call::kSplit);
  MPI_Comm shared = MPI_COMM_NULL;
  check(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &shared),
        "MPI_Comm_split_type");
  auto node = std::make_unique<MpiCommunicator>(shared);
  if (ranks_per_node == 0) return node;
  return node->split(node->rank() / ranks_per_node, node->rank());
}

// A probe is what makes progress without touching any message; where MPI is told to yield, it does.
void MpiCommunicator::idle() {
  note_idle(number_);
  int found = 0;
  check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
}

bool MpiCommunicator::takes_threads() const {
  int provided = MPI_THREAD_SINGLE;
  check(MPI_Query_thread(&provided), "MPI_Query_thread");
  return provided == MPI_THREAD_MULTIPLE;
}

void MpiCommunicator::abort(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  int error_class = 0;
  MPI_Error_string(code, text, &length);
  MPI_Error_class(code, &error_class);
  throw CommError("{} failed (class {}): {}", call, error_class,
                  std::string(text, static_cast<std::size_t>(length)));
}

}  // namespace lockstep
