// A program that was built for CPUs with certain instructions reports it where they are missing, instead of
// ending with "Illegal instruction". Compiled for any CPU (see CMakeLists.txt), it runs before all other code
// of ours. LOCKSTEP_CPU_FEATURES are the features that the compiler was allowed to use, as NEEDS(avx2)
// NEEDS(fma). For its test, LOCKSTEP_CPU_WITHOUT=avx2 in the environment takes one of them away.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace {

void say(const char* text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
}

// Null if there is none.
const char* missing_feature() {
  const char* const without = std::getenv("LOCKSTEP_CPU_WITHOUT");
#define NEEDS(feature)                                                                                    \
  if (!__builtin_cpu_supports(#feature) || (without != nullptr && std::strcmp(without, #feature) == 0)) { \
    return #feature;                                                                                      \
  }
  LOCKSTEP_CPU_FEATURES
#undef NEEDS
  return nullptr;
}

__attribute__((constructor(101))) void check_cpu() {
  constexpr int kExitConfig = 2;
  __builtin_cpu_init();
  const char* const missing = missing_feature();
  if (missing == nullptr) return;
  say("error: this trainer was built for CPUs with ");
  say(missing);
  say(", which this one has not: build it on this machine, or for all CPUs with AVX2 by cmake --preset "
      "portable\n");
  _exit(kExitConfig);
}

}  // namespace
