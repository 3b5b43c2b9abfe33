#include "lockstep/base/named_thread.h"

#include <mutex>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

// For as long as the process lives: threads may end after everything else.
struct Register {
  std::mutex mutex;
  std::vector<std::pair<std::string, pthread_t>> threads;
};

Register& all() {
  static auto* const threads = new Register;
  return *threads;
}

}  // namespace

NamedThread::NamedThread(std::string name) {
  const std::lock_guard lock(all().mutex);
  all().threads.emplace_back(std::move(name), ::pthread_self());
}

NamedThread::~NamedThread() {
  const std::lock_guard lock(all().mutex);
  std::erase_if(all().threads,
                [](const auto& entry) { return ::pthread_equal(entry.second, ::pthread_self()); });
}

void for_each_named_thread(const std::function<void(const std::string& name, pthread_t thread)>& visit) {
  const std::lock_guard lock(all().mutex);
  for (const auto& [name, thread] : all().threads) visit(name, thread);
}

}  // namespace lockstep
