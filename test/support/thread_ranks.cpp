#include "support/thread_ranks.h"

#include <compare>

#include "lockstep/base/errors.h"
#include "lockstep/comm/agree.h"
#include "support/thread_board.h"

namespace lockstep {
namespace {

Bytes copy_of(const void* data, Index bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  return {begin, begin + bytes};
}

template <class T>
void add_all(void* to, const std::vector<Bytes>& parts, Index count) {
  auto* sum = static_cast<T*>(to);
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    const auto* term = reinterpret_cast<const T*>(parts[rank].data());
    for (Index i = 0; i < count; ++i) sum[i] = static_cast<T>(rank == 0 ? term[i] : sum[i] + term[i]);
  }
}

void add_all(Buffer to, const std::vector<Bytes>& parts) {
  switch (to.type) {
    case DataType::kFloat:
      return add_all<float>(to.data, parts, to.count);
    case DataType::kDouble:
      return add_all<double>(to.data, parts, to.count);
    case DataType::kInt64:
      return add_all<Index>(to.data, parts, to.count);
    case DataType::kByte:
      throw CommError("all_reduce_sum: bytes have no sum");
  }
}

void copy_to(void* to, const Bytes& bytes) {
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
}

// A collective under way: `finish` reads everybody's contribution.
class BoardRequest final : public Request {
 public:
  using Finish = std::function<void(const std::vector<Bytes>&)>;
  BoardRequest(Board& board, std::int64_t number, Finish finish)
      : board_(board), number_(number), finish_(std::move(finish)) {}

  bool test() override {
    if (!done_ && board_.complete(number_)) wait();
    return done_;
  }
  void wait() override {
    if (std::exchange(done_, true)) return;
    board_.take(number_, finish_);
  }

 private:
  Board& board_;
  std::int64_t number_;
  Finish finish_;
  bool done_ = false;
};

// Messages under way to this rank; what it sends is copied at once and needs no waiting.
class MessageRequest final : public Request {
 public:
  MessageRequest(Board& board, int channel, int rank, std::span<const Receive> receives) : board_(board) {
    for (const Receive& receive : receives) {
      const Path path{channel, receive.peer, rank};
      pending_.push_back({path, board.next_message(path), receive.buffer});
    }
  }

  bool test() override {
    for (const Pending& one : pending_) {
      if (!board_.has_message(one.path, one.number)) return false;
    }
    wait();
    return true;
  }

  void wait() override {
    for (const Pending& one : std::exchange(pending_, {})) {
      const Bytes bytes = board_.take_message(one.path, one.number);
      if (std::ssize(bytes) != one.buffer.bytes()) {
        throw CommError(fmt::format("rank {} expected {} bytes from rank {}, which sent {}",
                                    std::get<2>(one.path), one.buffer.bytes(), std::get<1>(one.path),
                                    bytes.size()));
      }
      copy_to(one.buffer.data, bytes);
    }
  }

 private:
  struct Pending {
    Path path;
    std::int64_t number;
    Buffer buffer;
  };

  Board& board_;
  std::vector<Pending> pending_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Board> board, int rank) : board_(std::move(board)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return board_->ranks(); }

  void barrier() override {
    start({}, [](const std::vector<Bytes>&) {})->wait();
  }

  void broadcast(Buffer buffer, int root) override {
    Bytes mine = rank_ == root ? copy_of(buffer.data, buffer.bytes()) : Bytes{};
    start(std::move(mine), [=](const std::vector<Bytes>& parts) {
      copy_to(buffer.data, at(parts, root));
    })->wait();
  }

  void all_reduce_sum(Buffer buffer) override { start_all_reduce_sum(buffer)->wait(); }

  std::unique_ptr<Request> start_all_reduce_sum(Buffer buffer) override {
    return start(copy_of(buffer.data, buffer.bytes()),
                 [=](const std::vector<Bytes>& parts) { add_all(buffer, parts); });
  }

  void all_gather(ConstBuffer mine, Buffer all) override {
    start(copy_of(mine.data, mine.bytes()), [=](const std::vector<Bytes>& parts) {
      auto* to = static_cast<std::byte*>(all.data);
      for (const Bytes& bytes : parts) {
        copy_to(to, bytes);
        to += bytes.size();
      }
    })->wait();
  }

  std::unique_ptr<Request> start_all_gather(Buffer whole, std::span<const Range> parts) override {
    const auto place = [whole](Range part) {
      return static_cast<std::byte*>(whole.data) + part.begin * size_of(whole.type);
    };
    const Range mine = at(parts, rank_);
    return start(copy_of(place(mine), mine.size() * size_of(whole.type)),
                 [place, kept = std::vector(parts.begin(), parts.end())](const std::vector<Bytes>& all) {
                   for (std::size_t rank = 0; rank < all.size(); ++rank)
                     copy_to(place(kept[rank]), all[rank]);
                 });
  }

  std::unique_ptr<Request> start_exchange(int channel, std::span<const Send> sends,
                                          std::span<const Receive> receives) override {
    for (const Send& send : sends)
      board_->post({channel, rank_, send.peer}, copy_of(send.buffer.data, send.buffer.bytes()));
    return std::make_unique<MessageRequest>(*board_, channel, rank_, receives);
  }

  std::unique_ptr<Communicator> split(Index color, Index order) override {
    struct Wish {
      Index color, order, rank;
      auto operator<=>(const Wish&) const = default;
    };
    const Wish mine{color, order, rank_};
    std::vector<Wish> members;
    start(copy_of(&mine, sizeof(mine)), [&](const std::vector<Bytes>& parts) {
      for (const Bytes& bytes : parts) {
        Wish wish{};
        copy_to(&wish, bytes);
        if (wish.color == color) members.push_back(wish);
      }
    })->wait();
    const auto rank = std::ranges::count_if(members, [&](const Wish& other) { return other < mine; });
    const auto size = static_cast<int>(members.size());
    auto board = board_->joint(next_collective_++, color, size,
                               [&] { return std::make_shared<Board>(size, board_->monitor()); });
    return std::make_unique<ThreadCommunicator>(std::move(board), static_cast<int>(rank));
  }

  // Threads share all memory: one node.
  std::unique_ptr<Communicator> split_by_node(Index ranks_per_node) override {
    return split(ranks_per_node == 0 ? 0 : rank_ / ranks_per_node, rank_);
  }

  std::unique_ptr<SharedWindow> shared_window(Index bytes) override {
    const std::vector<Index> sizes = gather_numbers(*this, bytes);
    auto memory = board_->joint(next_collective_++, 0, size(), [&]() -> std::shared_ptr<WindowMemory> {
      try {
        return std::make_shared<WindowMemory>(sizes.begin(), sizes.end());
      } catch (const std::bad_alloc&) {
        return nullptr;
      }
    });
    if (memory == nullptr) throw AgreedError("there is no memory for what ranks share", kExitComm);
    return std::make_unique<ThreadWindow>(*this, std::move(memory));
  }

  void idle() override {
    board_->throw_if_failed();
    std::this_thread::yield();
  }

  bool takes_threads() const override { return true; }

  void abort(int exit_code) override {
    throw CommError(fmt::format("rank {} aborted with exit code {}", rank_, exit_code));
  }

 private:
  std::unique_ptr<Request> start(Bytes mine, BoardRequest::Finish finish) {
    const std::int64_t number = next_collective_++;
    board_->put(number, rank_, std::move(mine));
    return std::make_unique<BoardRequest>(*board_, number, std::move(finish));
  }

  std::shared_ptr<Board> board_;
  int rank_;
  std::int64_t next_collective_ = 0;
};

// Traces of a test (SCOPED_TRACE) are known to its own thread alone, and not to the ranks'.
int count_failures() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  return test == nullptr ? 0 : test->result()->total_part_count();
}

}  // namespace

void run_thread_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  const int failures = count_failures();
  Monitor monitor;
  {
    const auto board = std::make_shared<Board>(ranks, monitor);
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        ThreadCommunicator comm(board, rank);
        try {
          body(comm);
        } catch (...) {
          monitor.fail(std::current_exception());
        }
      });
    }
  }
  if (count_failures() > failures) ADD_FAILURE() << "by ranks that are threads; see their failures above";
  if (monitor.cause) std::rethrow_exception(monitor.cause);
}

}  // namespace lockstep
