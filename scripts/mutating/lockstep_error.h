// The switch of deliberate errors: scripts/mutate puts it into copies of sources, as `lockstep_error(17) ?
// changed : as it was`.
#pragma once

extern "C" unsigned char lockstep_error_states[];
extern "C" bool lockstep_error_is_on(int number) noexcept;

// Whether error `number` is on. Never while the compiler computes a constant.
constexpr bool lockstep_error(int number) noexcept {
  if (__builtin_is_constant_evaluated()) return false;
#ifdef LOCKSTEP_FIXED_ERROR
  return number == LOCKSTEP_FIXED_ERROR;
#else
  return __builtin_expect(lockstep_error_states[number], 0) != 0 && lockstep_error_is_on(number);
#endif
}
