// Products of matrices with oneDNN: forward with a matmul primitive, which on a batch of 64 is a third faster
// than its sgemm; backward with its sgemm, which is as fast or faster there.
#include <fmt/format.h>
#include <array>
#include <map>
#include <string_view>
#include <unordered_map>

#include "lockstep/math/kernels.h"
#include "thread_engine.h"

namespace lockstep {
namespace {

using Dims = dnnl::memory::dims;
constexpr auto kFloat = dnnl::memory::data_type::f32;

/// Rows of x, rows of w, columns of both.
using ProductKey = std::array<Index, 3>;

class ForwardProduct {
 public:
  explicit ForwardProduct(const ProductKey& key) {
    const auto [rows, out, in] = key;
    const dnnl::memory::desc x({rows, in}, kFloat, Dims{in, 1});
    const dnnl::memory::desc w_transposed({in, out}, kFloat, Dims{1, in});
    const dnnl::memory::desc y({rows, out}, kFloat, Dims{out, 1});
    const dnnl::matmul::desc desc(x, w_transposed, y);
    matmul_ = dnnl::matmul({desc, exact_attributes(), thread_engine().engine});
    arguments_ = {{DNNL_ARG_SRC, borrowed_memory(x)},
                  {DNNL_ARG_WEIGHTS, borrowed_memory(w_transposed)},
                  {DNNL_ARG_DST, borrowed_memory(y)}};
  }

  void run(const ConstMatrix& x, const ConstMatrix& w, Matrix& y) {
    point_to(arguments_.at(DNNL_ARG_SRC), x.data());
    point_to(arguments_.at(DNNL_ARG_WEIGHTS), w.data());
    point_to(arguments_.at(DNNL_ARG_DST), y.data());
    matmul_.execute(thread_engine().stream, arguments_);
  }

 private:
  dnnl::matmul matmul_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

std::string_view instruction_set() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::all:
      return "all";
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2_vnni";
    case dnnl::cpu_isa::avx512_mic:
      return "avx512_mic";
    case dnnl::cpu_isa::avx512_mic_4ops:
      return "avx512_mic_4ops";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
  }
  return "unknown instruction set";
}

}  // namespace

std::string kernel_back_end() {
  const dnnl_version_t& version = *dnnl_version();
  return fmt::format("oneDNN {}.{}.{} ({})", version.major, version.minor, version.patch, instruction_set());
}

// oneDNN refuses operands without rows, so these products answer for them.

void multiply_forward(const ConstMatrix& x, const ConstMatrix& w, Matrix& y) {
  if (x.rows() == 0) return;
  thread_engine();  // before the cache, which must go first when the thread ends
  thread_local std::map<ProductKey, ForwardProduct> cache;
  const ProductKey key{x.rows(), w.rows(), x.cols()};
  cache.try_emplace(key, key).first->second.run(x, w, y);
}

void multiply_backward_data(const ConstMatrix& dy, const ConstMatrix& w, Matrix& dx) {
  if (dy.rows() == 0) return;
  thread_engine();
  dnnl::error::wrap_c_api(dnnl_sgemm('N', 'N', dy.rows(), w.cols(), w.rows(), 1, dy.data(), dy.cols(),
                                     w.data(), w.cols(), 0, dx.data(), dx.cols()),
                          "oneDNN could not multiply dy * w");
}

void multiply_backward_weights(const ConstMatrix& dy, const ConstMatrix& x, Range rows, Matrix& dw,
                               Write write) {
  if (x.rows() == 0) {
    if (write == Write::kReplace) dw.middleRows(rows.begin, rows.size()).setZero();
    return;
  }
  thread_engine();
  const Scalar keep = write == Write::kReplace ? 0 : 1;
  dnnl::error::wrap_c_api(
      dnnl_sgemm('T', 'N', rows.size(), x.cols(), x.rows(), 1, dy.data() + rows.begin, dy.cols(), x.data(),
                 x.cols(), keep, dw.data() + rows.begin * dw.cols(), dw.cols()),
      "oneDNN could not multiply transposed dy * x");
}

}  // namespace lockstep
