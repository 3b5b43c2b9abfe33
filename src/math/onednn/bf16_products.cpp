// Products of matrices in bf16 with oneDNN's matmul primitive, whose operands may be transposed by strides.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "lockstep/math/bf16_kernels.h"
#include "thread_engine.h"

namespace lockstep {
namespace {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;
using Type = dnnl::memory::data_type;

/// How an operand is stored: so many numbers from one row to the next, perhaps transposed.
struct Storage {
  Index row;
  bool transposed = false;

  auto operator<=>(const Storage&) const = default;
};

/// c(rows x columns) (+)= a(rows x inner) · b(inner x columns) + bias in each row
struct ProductKey {
  Index rows, inner, columns;
  Storage a, b;
  Write write = Write::kReplace;
  bool has_bias = false;

  auto operator<=>(const ProductKey&) const = default;
};

Desc operand(Index rows, Index columns, const Storage& stored) {
  return {{rows, columns}, Type::bf16, stored.transposed ? Dims{1, stored.row} : Dims{stored.row, 1}};
}

class Bf16Product {
 public:
  explicit Bf16Product(const ProductKey& key) {
    const Desc a = operand(key.rows, key.inner, key.a);
    const Desc b = operand(key.inner, key.columns, key.b);
    const Desc c({key.rows, key.columns}, Type::f32, Dims{key.columns, 1});
    const Desc bias = key.has_bias ? Desc({1, key.columns}, Type::f32, Dims{key.columns, 1}) : Desc();
    dnnl::primitive_attr attributes = exact_attributes();
    if (key.write == Write::kAdd) {
      dnnl::post_ops sum;
      sum.append_sum(1);
      attributes.set_post_ops(sum);
    }
    matmul_ = dnnl::matmul(describe<dnnl::matmul>(attributes, a, b, bias, c));
    arguments_ = {{DNNL_ARG_SRC, borrowed_memory(a)},
                  {DNNL_ARG_WEIGHTS, borrowed_memory(b)},
                  {DNNL_ARG_DST, borrowed_memory(c)}};
    if (key.has_bias) arguments_.emplace(DNNL_ARG_BIAS, borrowed_memory(bias));
  }

  void run(const Bf16* a, const Bf16* b, Scalar* c, std::span<const Scalar> bias = {}) {
    point_to(arguments_.at(DNNL_ARG_SRC), a);
    point_to(arguments_.at(DNNL_ARG_WEIGHTS), b);
    if (!bias.empty()) point_to(arguments_.at(DNNL_ARG_BIAS), bias.data());
    point_to(arguments_.at(DNNL_ARG_DST), c);
    matmul_.execute(thread_engine().stream, arguments_);
  }

 private:
  dnnl::matmul matmul_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

Bf16Product& cached_bf16_product(const ProductKey& key) {
  thread_engine();  // before the cache, which must go first when the thread ends
  thread_local std::map<ProductKey, Bf16Product> cache;
  return cache.try_emplace(key, key).first->second;
}

}  // namespace

// Before avx512_core oneDNN has nothing for bf16, and without avx512_core_bf16 it widens each operand.
Bf16Support bf16_support() {
  // The bits of a set of instructions include those of the sets within it.
  const auto has = [here = dnnl_get_effective_cpu_isa()](unsigned set) { return (here & set) == set; };
  if (has(dnnl_cpu_isa_avx512_core_bf16)) return Bf16Support::kNative;
  return has(dnnl_cpu_isa_avx512_core) ? Bf16Support::kEmulated : Bf16Support::kNone;
}

void multiply_forward(const Bf16Matrix& x, const Bf16Matrix& w, std::span<const Scalar> bias, Matrix& y) {
  if (x.rows() == 0) return;
  cached_bf16_product(
      {x.rows(), x.cols(), w.rows(), {x.cols()}, {w.cols(), true}, Write::kReplace, !bias.empty()})
      .run(x.data(), w.data(), y.data(), bias);
}

void multiply_backward_data(const Bf16Matrix& dy, const Bf16Matrix& w, Matrix& dx) {
  if (dy.rows() == 0) return;
  cached_bf16_product({dy.rows(), dy.cols(), w.cols(), {dy.cols()}, {w.cols()}})
      .run(dy.data(), w.data(), dx.data());
}

void multiply_backward_weights(const Bf16Matrix& dy, const Bf16Matrix& x, Range rows, Matrix& dw,
                               Write write) {
  if (x.rows() == 0) {
    if (write == Write::kReplace)
      std::fill_n(dw.data() + rows.begin * dw.cols(), rows.size() * dw.cols(), Scalar{0});
    return;
  }
  cached_bf16_product({rows.size(), dy.rows(), x.cols(), {dy.cols(), true}, {x.cols()}, write})
      .run(dy.data() + rows.begin, x.data(), dw.data() + rows.begin * dw.cols());
}

}  // namespace lockstep
