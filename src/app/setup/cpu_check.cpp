// A program that was built for CPUs with AVX2 or AVX-512 reports it where they are missing, instead of ending
// with "Illegal instruction". Compiled for any CPU (see CMakeLists.txt), it runs before all other code of
// ours.
#include <unistd.h>

#include <cstring>

namespace {

void say(const char* text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

__attribute__((constructor(101))) void check_cpu() {
  constexpr int kExitConfig = 2;
  __builtin_cpu_init();
  const bool suits = has_avx2() && (LOCKSTEP_CPU_LEVEL < 4 || has_avx512());
  if (suits) return;
  say(LOCKSTEP_CPU_LEVEL < 4 ? "error: this trainer was built for CPUs with AVX2 (LOCKSTEP_ARCH x86-64-v3), "
                               "which this one has not: "
                             : "error: this trainer was built for CPUs with AVX-512 (LOCKSTEP_ARCH "
                               "x86-64-v4), which this one has not: ");
  say(LOCKSTEP_CPU_LEVEL < 4 ? "build it here, with -DLOCKSTEP_ARCH=native\n"
                             : "build it with -DLOCKSTEP_ARCH=x86-64-v3, or native on this machine\n");
  _exit(kExitConfig);
}

}  // namespace
