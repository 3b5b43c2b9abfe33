#include "lockstep/base/trace.h"

#include <chrono>
#include <memory>
#include <mutex>

namespace lockstep {
namespace {

constexpr std::size_t kCapacity = std::size_t{1} << 14;

// One thread writes, one reads: `written` and `read` only rise, and their difference is what the ring holds.
struct Ring {
  std::array<TraceEvent, kCapacity> events = {};
  std::atomic<std::size_t> written = 0;
  std::atomic<std::size_t> read = 0;
  std::atomic<Index> lost = 0;
  std::string name;
};

struct Rings {
  std::mutex mutex;  // taken by the first event of a thread, and by the reader
  std::vector<std::unique_ptr<Ring>> all;
};

// Rings outlive their threads, and the reader.
Rings& rings() {
  static auto* const all = new Rings;
  return *all;
}

thread_local Ring* own_ring = nullptr;
thread_local const char* own_name = nullptr;

Ring& ring() {
  if (own_ring != nullptr) return *own_ring;
  Rings& all = rings();
  const std::lock_guard lock(all.mutex);
  all.all.push_back(std::make_unique<Ring>());
  own_ring = all.all.back().get();
  const std::string number = std::to_string(all.all.size() - 1);
  own_ring->name = own_name != nullptr ? own_name : all.all.size() == 1 ? "main" : "thread " + number;
  return *own_ring;
}

}  // namespace

std::atomic<bool> trace_detail::records = false;

void trace_detail::add(const TraceEvent& event) {
  Ring& own = ring();
  const std::size_t written = own.written.load(std::memory_order_relaxed);
  if (written - own.read.load(std::memory_order_acquire) == kCapacity) {
    own.lost.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  own.events[written % kCapacity] = event;
  own.written.store(written + 1, std::memory_order_release);
}

std::int64_t trace_clock() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void set_trace_records(bool on) {
  ring();
  trace_detail::records.store(on, std::memory_order_relaxed);
}

void name_trace_thread(const char* name) {
  own_name = name;
}

void drain_trace(std::vector<ThreadEvent>& events) {
  Rings& all = rings();
  const std::lock_guard lock(all.mutex);
  for (std::size_t thread = 0; thread < all.all.size(); ++thread) {
    Ring& each = *all.all[thread];
    const std::size_t written = each.written.load(std::memory_order_acquire);
    for (std::size_t i = each.read.load(std::memory_order_relaxed); i < written; ++i) {
      events.push_back({static_cast<int>(thread), each.events[i % kCapacity]});
    }
    each.read.store(written, std::memory_order_release);
  }
}

Index lost_trace_events() {
  Rings& all = rings();
  const std::lock_guard lock(all.mutex);
  Index lost = 0;
  for (const auto& each : all.all) lost += each->lost.load(std::memory_order_relaxed);
  return lost;
}

std::vector<std::string> trace_threads() {
  Rings& all = rings();
  const std::lock_guard lock(all.mutex);
  std::vector<std::string> names;
  for (const auto& each : all.all) names.push_back(each->name);
  return names;
}

}  // namespace lockstep
