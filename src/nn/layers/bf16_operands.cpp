#include "bf16_operands.h"

#include "lockstep/base/aligned_buffer.h"

namespace lockstep {
namespace {

Bf16Matrix rounded(const ConstMatrix& m, AlignedBuffer<Bf16>& buffer) {
  if (buffer.size() < m.size()) buffer = AlignedBuffer<Bf16>(m.size());
  const std::span<Bf16> used = part(buffer.span(), {0, m.size()});
  round_to_bf16(m.values(), used);
  return {used.data(), m.rows(), m.cols()};
}

}  // namespace

Bf16Matrix rounded_input(const ConstMatrix& x) {
  thread_local AlignedBuffer<Bf16> buffer;
  return rounded(x, buffer);
}

Bf16Matrix rounded_output_gradient(const ConstMatrix& dy) {
  thread_local AlignedBuffer<Bf16> buffer;
  return rounded(dy, buffer);
}

}  // namespace lockstep
