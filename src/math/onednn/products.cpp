// Products of matrices with oneDNN: forward with its matmul primitive, which on a batch of 64 is a third
// faster than its sgemm; backward with its sgemm, which is as fast or faster there but for long rows of few
// units. The primitive is faster still with a right side in its own layout, which pays where that is small
// or used several times.
#include <dnnl_debug.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/math/kernels.h"
#include "thread_engine.h"

namespace lockstep {
namespace {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;
using Type = dnnl::memory::data_type;

// How an operand is stored: so many numbers from one row to the next, perhaps transposed.
struct Storage {
  Index row;
  bool transposed = false;

  auto operator<=>(const Storage&) const = default;
};

Desc operand(Type type, Index rows, Index columns, const Storage& stored) {
  return {{rows, columns}, type, stored.transposed ? Dims{1, stored.row} : Dims{stored.row, 1}};
}

Desc plain(Index rows, Index columns) {
  return operand(Type::f32, rows, columns, {columns});
}

// Describes an operand whose layout oneDNN chooses for the primitive.
Desc any(Index rows, Index columns) {
  return {{rows, columns}, Type::f32, dnnl::memory::format_tag::any};
}

// c(rows x columns) (+)= a(rows x inner) · b(inner x columns) + bias in each row; `type` is that of a and b.
struct ProductKey {
  Type type;
  Index rows, inner, columns;
  Storage a, b;
  Write write = Write::kReplace;
  bool has_bias = false;

  auto operator<=>(const ProductKey&) const = default;
};

// c (+)= a * b + bias
class Product {
 public:
  explicit Product(const dnnl::matmul::primitive_desc& desc)
      : matmul_(desc),
        arguments_{{DNNL_ARG_SRC, borrowed_memory(desc.src_desc())},
                   {DNNL_ARG_WEIGHTS, borrowed_memory(desc.weights_desc())},
                   {DNNL_ARG_DST, borrowed_memory(desc.dst_desc())}} {
    if (!desc.bias_desc().is_zero()) arguments_.emplace(DNNL_ARG_BIAS, borrowed_memory(desc.bias_desc()));
  }
  explicit Product(const ProductKey& key)
      : Product(describe<dnnl::matmul>(
            exact_attributes(key.write), operand(key.type, key.rows, key.inner, key.a),
            operand(key.type, key.inner, key.columns, key.b), key.has_bias ? plain(1, key.columns) : Desc(),
            plain(key.rows, key.columns))) {}

  void run(const void* a, const void* b, Scalar* c, std::span<const Scalar> bias = {}) {
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

dnnl::matmul::primitive_desc product_of(const Desc& a, const Desc& b, const Desc& c) {
  return describe<dnnl::matmul>(exact_attributes(), a, b, Desc(), c);
}

Product& cached_product(const ProductKey& key) {
  thread_engine();  // before the cache, which must go first when the thread ends
  thread_local std::map<ProductKey, Product> cache;
  return cache.try_emplace(key, key).first->second;
}

// y^T = w x^T, where x and y are turned around, which are small; the bias comes after it. (As it stands,
// y = x w^T makes the primitive turn all of w around.)
class TurnedForward {
 public:
  TurnedForward(Index rows, Index out, Index in)
      : TurnedForward(rows, out, in, product_of(plain(out, in), any(in, rows), plain(out, rows))) {}

  void run(const ConstMatrix& x, const ConstMatrix& w, std::span<const Scalar> bias, Matrix& y) {
    x_.load(x.values());
    product_.run(w.data(), x_.memory().get_data_handle(), y_transposed_.data());
    transpose(as_matrix(std::as_const(y_transposed_).span(), w.rows(), x.rows()), y.data(), y.cols());
    if (!bias.empty()) add_to_rows(bias, y);
  }

 private:
  TurnedForward(Index rows, Index out, Index in, const dnnl::matmul::primitive_desc& desc)
      : product_(desc),
        x_(operand(Type::f32, in, rows, {in, true}), desc.weights_desc()),
        y_transposed_(rows * out) {}

  Product product_;
  ArrangedTensor x_;
  AlignedBuffer<Scalar> y_transposed_;
};

TurnedForward& cached_turned_forward(Index rows, Index out, Index in) {
  thread_engine();  // made before the cache, as above
  thread_local std::map<std::array<Index, 3>, TurnedForward> cache;
  return cache.try_emplace({rows, out, in}, rows, out, in).first->second;
}

// y = x w^T + bias, and dx = dy w, of operands of this type.
template <class Operand>
void run_forward(Type type, const Operand& x, const Operand& w, std::span<const Scalar> bias, Matrix& y) {
  cached_product(
      {type, x.rows(), x.cols(), w.rows(), {x.cols()}, {w.cols(), true}, Write::kReplace, !bias.empty()})
      .run(x.data(), w.data(), y.data(), bias);
}

template <class Operand>
void run_backward_data(Type type, const Operand& dy, const Operand& w, Matrix& dx) {
  cached_product({type, dy.rows(), dy.cols(), w.cols(), {dy.cols()}, {w.cols()}})
      .run(dy.data(), w.data(), dx.data());
}

// The gradient of no samples.
void add_nothing(Range rows, Matrix& dw, Write write) {
  if (write == Write::kAdd) return;
  std::fill_n(dw.data() + rows.begin * dw.cols(), rows.size() * dw.cols(), Scalar{0});
}

}  // namespace

std::string kernel_back_end() {
  const dnnl_version_t& version = *dnnl_version();
  std::string_view isa = dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa());
  isa.remove_prefix(std::string_view("cpu_isa_").size());
  return fmt::format("oneDNN {}.{}.{} ({})", version.major, version.minor, version.patch, isa);
}

// oneDNN refuses operands without rows, so these products answer for them.

void multiply_forward(const ConstMatrix& x, const ConstMatrix& w, std::span<const Scalar> bias, Matrix& y) {
  if (x.rows() == 0) return;
  // With these sizes it takes longer to transpose all of w than to transpose x and y.
  constexpr Range kTurned{16, 129};
  constexpr Index kTimesTheRows = 4;
  if (kTurned.contains(x.rows()) && w.rows() > kTimesTheRows * x.rows()) {
    cached_turned_forward(x.rows(), w.rows(), x.cols()).run(x, w, bias, y);
  } else {
    run_forward(Type::f32, x, w, bias, y);
  }
}

void multiply_backward_data(const ConstMatrix& dy, const ConstMatrix& w, Matrix& dx) {
  if (dy.rows() == 0) return;
  // There sgemm takes up to 1.7 times as long where rows are a power of two, and as long where they are not.
  constexpr Index kFewUnits = 128;
  constexpr Index kLongRow = 1024;
  if (w.rows() <= kFewUnits && w.cols() >= kLongRow) {
    return run_backward_data(Type::f32, dy, w, dx);
  }
  thread_engine();
  dnnl::error::wrap_c_api(dnnl_sgemm('N', 'N', dy.rows(), w.cols(), w.rows(), 1, dy.data(), dy.cols(),
                                     w.data(), w.cols(), 0, dx.data(), dx.cols()),
                          "oneDNN could not multiply dy * w");
}

void multiply_backward_weights(const ConstMatrix& dy, const ConstMatrix& x, Range rows, Matrix& dw,
                               Write write) {
  if (x.rows() == 0) return add_nothing(rows, dw, write);
  thread_engine();
  const Scalar keep = write == Write::kReplace ? 0 : 1;
  dnnl::error::wrap_c_api(
      dnnl_sgemm('T', 'N', rows.size(), x.cols(), x.rows(), 1, dy.data() + rows.begin, dy.cols(), x.data(),
                 x.cols(), keep, dw.data() + rows.begin * dw.cols(), dw.cols()),
      "oneDNN could not multiply transposed dy * x");
}

// A layout for each shape of b, and the products with it for each number of rows of a.
struct PackedMatrix::Layouts {
  struct Layout {
    Index rows, columns;
    ArrangedTensor b;
    std::map<Index, Product> products;
  };
  std::map<std::pair<Index, Index>, Layout> by_shape;
  Layout* used = nullptr;
};

PackedMatrix::PackedMatrix() {
  thread_engine();  // made before the layouts, as above
  layouts_ = std::make_unique<Layouts>();
}
PackedMatrix::PackedMatrix(PackedMatrix&&) noexcept = default;
PackedMatrix::~PackedMatrix() = default;

void PackedMatrix::pack(const ConstMatrix& b) {
  constexpr Index kTypicalRows = 64;
  const auto make = [&] {
    const Desc layout =
        product_of(plain(kTypicalRows, b.rows()), any(b.rows(), b.cols()), plain(kTypicalRows, b.cols()))
            .weights_desc();
    return Layouts::Layout{b.rows(), b.cols(), ArrangedTensor(plain(b.rows(), b.cols()), layout), {}};
  };
  auto found = layouts_->by_shape.find({b.rows(), b.cols()});
  if (found == layouts_->by_shape.end()) {
    found = layouts_->by_shape.emplace(std::pair{b.rows(), b.cols()}, make()).first;
  }
  layouts_->used = &found->second;
  layouts_->used->b.load(b.values());
}

void PackedMatrix::multiply(const ConstMatrix& a, Matrix& c) {
  Layouts::Layout& layout = *layouts_->used;
  auto found = layout.products.find(a.rows());
  if (found == layout.products.end()) {
    const auto desc = product_of(plain(a.rows(), layout.rows), layout.b.memory().get_desc(),
                                 plain(a.rows(), layout.columns));
    found = layout.products.emplace(a.rows(), Product(desc)).first;
  }
  found->second.run(a.data(), layout.b.memory().get_data_handle(), c.data());
}

// Before avx512_core oneDNN has nothing for bf16, and without avx512_core_bf16 it widens each operand.
Bf16Support bf16_support() {
  // The bits of a set of instructions include those of the sets within it.
  const auto has = [here = dnnl_get_effective_cpu_isa()](unsigned set) { return (here & set) == set; };
  if (has(dnnl_cpu_isa_avx512_core_bf16)) return Bf16Support::kNative;
  return has(dnnl_cpu_isa_avx512_core) ? Bf16Support::kEmulated : Bf16Support::kNone;
}

void multiply_forward(const Bf16Matrix& x, const Bf16Matrix& w, std::span<const Scalar> bias, Matrix& y) {
  if (x.rows() > 0) run_forward(Type::bf16, x, w, bias, y);
}

void multiply_backward_data(const Bf16Matrix& dy, const Bf16Matrix& w, Matrix& dx) {
  if (dy.rows() > 0) run_backward_data(Type::bf16, dy, w, dx);
}

void multiply_backward_weights(const Bf16Matrix& dy, const Bf16Matrix& x, Range rows, Matrix& dw,
                               Write write) {
  if (x.rows() == 0) return add_nothing(rows, dw, write);
  cached_product({Type::bf16, rows.size(), dy.rows(), x.cols(), {dy.cols(), true}, {x.cols()}, write})
      .run(dy.data() + rows.begin, x.data(), dw.data() + rows.begin * dw.cols());
}

}  // namespace lockstep
