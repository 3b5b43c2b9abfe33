// Threads that work beside the main one, by what they do: a report of the state of a process names each.
#pragma once

#include <pthread.h>

#include <functional>
#include <string>

#include "lockstep/base/signal_stack.h"

namespace lockstep {

/// The calling thread has this name for as long as the object lives, which it does on that thread, and can be
/// interrupted safely.
class NamedThread {
 public:
  explicit NamedThread(std::string name);
  ~NamedThread();
  NamedThread(const NamedThread&) = delete;
  NamedThread& operator=(const NamedThread&) = delete;

 private:
  SignalStack stack_;
};

/// Each in turn. Meanwhile none of them ends.
void for_each_named_thread(const std::function<void(const std::string& name, pthread_t thread)>& visit);

}  // namespace lockstep
