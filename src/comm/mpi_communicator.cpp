#include "mpi_communicator.h"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cassert>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <numeric>
#include <string>
#include <vector>

#include "lockstep/base/errors.h"
#include "lockstep/base/memory_limit.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "shared_memory.h"

namespace lockstep {
namespace {

// MPI counts are int: longer buffers are sent in pieces of this many elements.
constexpr Index kMaxCount = Index{1} << 30;

MPI_Datatype mpi_type(DataType type) {
  switch (type) {
    case DataType::kByte:
      return MPI_BYTE;
    case DataType::kInt64:
      return MPI_INT64_T;
    case DataType::kFloat:
      return MPI_FLOAT;
    case DataType::kDouble:
      return MPI_DOUBLE;
  }
  return MPI_DATATYPE_NULL;
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
    check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
          "MPI_Waitall");
  }

 private:
  std::vector<MPI_Request> requests_;
  std::vector<int> counts_;
  std::vector<int> starts_;
};

// At most what an MPI library adds for itself, and for starting each part on a page.
constexpr Index kOverheadPerRank = Index{64} << 10;

[[noreturn]] void refuse(Index total) {
  throw AgreedError(
      fmt::format(
          "MPI_Win_allocate_shared: a shared window of {} bytes does not fit into {}; enlarge that (mount "
          "-o remount,size=..., in a container --shm-size), or let Open MPI use another local directory "
          "(--mca osc_sm_backing_directory)",
          total, shared_memory_directory()),
      kExitComm);
}

// Open MPI creates the memory on rank 0 and, when that fails, leaves the others waiting: all ranks look at
// the space before, with rank 0's eyes. Each rank maps the whole window.
void check_space(Communicator& comm, Index total) {
  const MemoryLimit limit = memory_limit();
  Index too_large = total > limit.bytes ? 1 : 0;
  comm.all_reduce_sum(as_buffer(std::span(&too_large, 1)));
  if (too_large > 0) {
    throw AgreedError(fmt::format("out of memory: a shared window of {} is larger than a rank can have ({})",
                                  human_bytes(total), limit.reason),
                      kExitConfig);
  }
  Index free = free_bytes(shared_memory_directory());
  comm.broadcast(as_buffer(std::span(&free, 1)), 0);
  if (total + kOverheadPerRank * comm.size() > free) refuse(total);
}

class MpiWindow final : public SharedWindow {
 public:
  // MPI promises no alignment: each part is asked for with spare bytes to start on a border. The memory is
  // mapped on whole pages, so the border is the same byte for all processes, wherever they see it.
  MpiWindow(Communicator& comm, MPI_Comm handle, std::span<const Index> sizes) : comm_(comm) {
    const auto mine = static_cast<std::size_t>(comm.rank());
    MPI_Info info = MPI_INFO_NULL;
    check(MPI_Info_create(&info), "MPI_Info_create");
    check(MPI_Info_set(info, "alloc_shared_noncontig", "true"), "MPI_Info_set");
    void* base = nullptr;
    const int code = MPI_Win_allocate_shared(sizes[mine] + kAlignmentBytes, 1, info, handle, &base, &window_);
    MPI_Info_free(&info);
    if (code != MPI_SUCCESS && comm.size() == 1) throw OutOfMemory(sizes[mine]);
    check(code, "MPI_Win_allocate_shared");
    check(MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
    check(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_), "MPI_Win_lock_all");
    for (int rank = 0; rank < comm.size(); ++rank) {
      MPI_Aint length = 0;
      int unit = 0;
      check(MPI_Win_shared_query(window_, rank, &length, &unit, &base), "MPI_Win_shared_query");
      const auto address = static_cast<Index>(reinterpret_cast<std::uintptr_t>(base));
      parts_.emplace_back(static_cast<std::byte*>(base) + round_up(address, kAlignmentBytes) - address,
                          static_cast<std::size_t>(at(sizes, rank)));
    }
  }

  ~MpiWindow() override {
    if (std::uncaught_exceptions() > exceptions_) return;
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }
  MpiWindow(const MpiWindow&) = delete;
  MpiWindow& operator=(const MpiWindow&) = delete;

  std::span<std::byte> part(int rank) override { return at(parts_, rank); }

  void fence() override {
    check(MPI_Win_sync(window_), "MPI_Win_sync");
    comm_.barrier();
    check(MPI_Win_sync(window_), "MPI_Win_sync");
  }

 private:
  Communicator& comm_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<std::span<std::byte>> parts_;
  int exceptions_ = std::uncaught_exceptions();
};

// True on all ranks or on none.
bool all_claim(Communicator& comm, SharedWindow& window) {
  Index short_of_pages = claim_pages(window.part(comm.rank())) ? 0 : 1;
  comm.all_reduce_sum(as_buffer(std::span(&short_of_pages, 1)));
  return short_of_pages == 0;
}

}  // namespace

MpiCommunicator MpiCommunicator::duplicate_of(MPI_Comm parent) {
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_dup(parent, &copy), "MPI_Comm_dup");
  return MpiCommunicator(copy);
}

MpiCommunicator::MpiCommunicator(MPI_Comm comm) : comm_(comm) {
  check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
}

MpiCommunicator::~MpiCommunicator() {
  MPI_Comm_free(&comm_);
}

void MpiCommunicator::barrier() {
  check(MPI_Barrier(comm_), "MPI_Barrier");
}

void MpiCommunicator::broadcast(Buffer buffer, int root) {
  in_pieces(buffer.data, buffer.count, buffer.type, [&](char* data, int count) {
    check(MPI_Bcast(data, count, mpi_type(buffer.type), root, comm_), "MPI_Bcast");
  });
}

void MpiCommunicator::all_reduce_sum(Buffer buffer) {
  in_pieces(buffer.data, buffer.count, buffer.type, [&](char* data, int count) {
    check(MPI_Allreduce(MPI_IN_PLACE, data, count, mpi_type(buffer.type), MPI_SUM, comm_), "MPI_Allreduce");
  });
}

std::unique_ptr<Request> MpiCommunicator::start_all_reduce_sum(Buffer buffer) {
  auto requests = std::make_unique<MpiRequests>();
  in_pieces(buffer.data, buffer.count, buffer.type, [&](char* data, int count) {
    check(MPI_Iallreduce(MPI_IN_PLACE, data, count, mpi_type(buffer.type), MPI_SUM, comm_, requests->add()),
          "MPI_Iallreduce");
  });
  return requests;
}

void MpiCommunicator::all_gather(ConstBuffer mine, Buffer all) {
  if (mine.count > kMaxCount) throw CommError("all_gather: more elements than MPI can count");
  const int count = static_cast<int>(mine.count);
  check(MPI_Allgather(mine.data, count, mpi_type(mine.type), all.data, count, mpi_type(all.type), comm_),
        "MPI_Allgather");
}

std::unique_ptr<Request> MpiCommunicator::start_all_gather(Buffer whole, std::span<const Range> parts) {
  for (const Range part : parts) {
    if (part.end > kMaxCount) throw CommError("MPI_Iallgatherv: more elements than MPI can count");
  }
  auto requests = std::make_unique<MpiRequests>();
  requests->set_parts(parts);
  check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, whole.data, requests->counts(),
                        requests->starts(), mpi_type(whole.type), comm_, requests->add()),
        "MPI_Iallgatherv");
  return requests;
}

std::unique_ptr<Request> MpiCommunicator::start_exchange(int channel, std::span<const Send> sends,
                                                         std::span<const Receive> receives) {
  auto requests = std::make_unique<MpiRequests>();
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
  MPI_Comm part = MPI_COMM_NULL;
  check(MPI_Comm_split(comm_, static_cast<int>(color), static_cast<int>(order), &part), "MPI_Comm_split");
  return std::make_unique<MpiCommunicator>(part);
}

std::unique_ptr<Communicator> MpiCommunicator::split_by_node(Index ranks_per_node) {
  MPI_Comm shared = MPI_COMM_NULL;
  check(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &shared),
        "MPI_Comm_split_type");
  auto node = std::make_unique<MpiCommunicator>(shared);
  if (ranks_per_node == 0) return node;
  return node->split(node->rank() / ranks_per_node, node->rank());
}

std::unique_ptr<SharedWindow> MpiCommunicator::shared_window(Index bytes) {
  return make_mpi_window(*this, comm_, bytes);
}

// A probe is what makes progress without touching any message; where MPI is told to yield, it does.
void MpiCommunicator::idle() {
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
  throw CommError(fmt::format("{} failed (class {}): {}", call, error_class,
                              std::string(text, static_cast<std::size_t>(length))));
}

std::unique_ptr<SharedWindow> make_mpi_window(Communicator& comm, MPI_Comm handle, Index bytes) {
  const std::vector<Index> sizes = gather_numbers(comm, bytes);
  const Index total = std::accumulate(sizes.begin(), sizes.end(), Index{0});
  if (comm.size() > 1) check_space(comm, total);  // a rank alone gets ordinary memory
  auto window = std::make_unique<MpiWindow>(comm, handle, sizes);
  // Somebody else may have taken the space since.
  if (!all_claim(comm, *window)) {
    window.reset();
    refuse(total);
  }
  const std::span<std::byte> mine = window->part(comm.rank());
  std::memset(mine.data(), 0, mine.size());
  window->fence();
  return window;
}

}  // namespace lockstep
