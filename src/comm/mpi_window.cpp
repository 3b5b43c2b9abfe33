// Shared windows where ranks are MPI processes of one node: MPI-3 shared memory. Its pages are promised at
// first and given when they are touched; where none is left, the touch ends the process with SIGBUS. So we
// ask before.
#include <fmt/format.h>
#include <mpi.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "lockstep/base/errors.h"
#include "lockstep/base/process.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "mpi_communicator.h"
#include "stall.h"

namespace lockstep {
namespace {

// A text among the control variables of the MPI library; `otherwise` where it has no such variable.
std::string control_variable(const char* name, const std::string& otherwise) {
  // Open MPI 4.1 takes the level that is asked for here for that of all of MPI.
  int level = MPI_THREAD_SINGLE;
  check(MPI_Query_thread(&level), "MPI_Query_thread");
  int provided = MPI_THREAD_SINGLE;
  check(MPI_T_init_thread(level, &provided), "MPI_T_init_thread");
  std::string value = otherwise;
  int index = 0;
  if (MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS) {
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    int length = 0;
    check(MPI_T_cvar_handle_alloc(index, nullptr, &handle, &length), "MPI_T_cvar_handle_alloc");
    value.assign(static_cast<std::size_t>(length), '\0');
    check(MPI_T_cvar_read(handle, value.data()), "MPI_T_cvar_read");
    value.resize(value.find('\0'));
    check(MPI_T_cvar_handle_free(&handle), "MPI_T_cvar_handle_free");
  }
  check(MPI_T_finalize(), "MPI_T_finalize");
  return value;
}

// The directory in which this MPI library puts shared windows: Open MPI names it, the others are known to use
// /dev/shm. The first call takes a fifth of a second.
std::string shared_memory_directory() {
  static const std::string directory = control_variable("osc_sm_backing_directory", "/dev/shm");
  return directory;
}

// The largest Index if the file system does not report it.
Index free_bytes(const std::string& directory) {
  struct statvfs found {};
  if (statvfs(directory.c_str(), &found) != 0) return std::numeric_limits<Index>::max();
  return static_cast<Index>(found.f_bavail * found.f_frsize);
}

// Gives pages to all of `memory`, near the calling thread's processor where the system can choose. False
// where there are not enough. Linux before 5.14 cannot tell: true.
bool claim_pages(std::span<std::byte> memory) {
  if (memory.empty()) return true;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t begin = first / page * page;
  return madvise(reinterpret_cast<void*>(begin), first + memory.size() - begin, MADV_POPULATE_WRITE) == 0 ||
         errno == EINVAL;
}

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

// Open MPI creates the memory on rank 0 and, when that fails, leaves the others waiting: all ranks check
// the space before, with rank 0's eyes. Each rank maps the whole window.
void check_space(Communicator& comm, Index total) {
  const MemoryLimit limit = memory_limit();
  if (!all_true(comm, total <= limit.bytes)) {
    throw AgreedError(fmt::format("out of memory: a shared window of {} is larger than a rank can have ({})",
                                  human_bytes(total), limit.reason),
                      kExitConfig);
  }
  const Index free = broadcast_value(comm, free_bytes(shared_memory_directory()));
  if (total + kOverheadPerRank * comm.size() > free) refuse(total);
}

class MpiWindow final : public SharedWindow, NoCopy {
 public:
  // MPI promises no alignment: each part is asked for with spare bytes to start on a border. The memory is
  // mapped on whole pages, so the border is the same byte for all processes, wherever they see it.
  MpiWindow(Communicator& comm, MPI_Comm handle, std::span<const Index> sizes, Index number)
      : comm_(comm), number_(number) {
    const Waiting waiting(Call::kWindow, 0, number_);
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
    const Waiting waiting(Call::kWindow, 0, number_);
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

  std::span<std::byte> part(int rank) override { return at(parts_, rank); }

  void fence() override {
    check(MPI_Win_sync(window_), "MPI_Win_sync");
    comm_.barrier();
    check(MPI_Win_sync(window_), "MPI_Win_sync");
  }

 private:
  Communicator& comm_;
  Index number_;  // of the communicator
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<std::span<std::byte>> parts_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace

std::unique_ptr<SharedWindow> MpiCommunicator::shared_window(Index bytes) {
  const std::vector<Index> sizes = gather_numbers(*this, bytes);
  const Index total = std::accumulate(sizes.begin(), sizes.end(), Index{0});
  if (size_ > 1) check_space(*this, total);  // a rank alone gets ordinary memory
  auto window = std::make_unique<MpiWindow>(*this, comm_, sizes, number_);
  // Somebody else may have taken the space since.
  if (!all_true(*this, claim_pages(window->part(rank_)))) {
    window.reset();
    refuse(total);
  }
  const std::span<std::byte> mine = window->part(rank_);
  std::memset(mine.data(), 0, mine.size());
  window->fence();
  return window;
}

}  // namespace lockstep
