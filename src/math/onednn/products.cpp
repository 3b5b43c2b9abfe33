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

Desc plain(Index rows, Index columns) {
  return {{rows, columns}, dnnl::memory::data_type::f32, Dims{columns, 1}};
}

Desc transposed(Index rows, Index columns) {
  return {{rows, columns}, dnnl::memory::data_type::f32, Dims{1, rows}};
}

// Describes an operand whose layout oneDNN chooses for the primitive.
Desc any(Index rows, Index columns) {
  return {{rows, columns}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

// The description of a product; that of the bias is empty if there is none.
dnnl::matmul::primitive_desc product_of(const Desc& a, const Desc& b, const Desc& c, const Desc& bias = {}) {
  return describe<dnnl::matmul>(exact_attributes(), a, b, bias, c);
}

// c = a * b + bias
class Product {
 public:
  explicit Product(const dnnl::matmul::primitive_desc& desc)
      : matmul_(desc),
        arguments_{{DNNL_ARG_SRC, borrowed_memory(desc.src_desc())},
                   {DNNL_ARG_WEIGHTS, borrowed_memory(desc.weights_desc())},
                   {DNNL_ARG_DST, borrowed_memory(desc.dst_desc())}} {
    if (!desc.bias_desc().is_zero()) arguments_.emplace(DNNL_ARG_BIAS, borrowed_memory(desc.bias_desc()));
  }

  void run(const Scalar* a, const void* b, Scalar* c, std::span<const Scalar> bias = {}) {
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

struct ForwardKey {
  Index rows, out, in;
  bool has_bias;

  auto operator<=>(const ForwardKey&) const = default;
};

// y = x w^T as it stands makes the primitive turn all of w around.
class PlainForward {
 public:
  static constexpr bool kWithBias = true;

  explicit PlainForward(const ForwardKey& key)
      : product_(product_of(plain(key.rows, key.in), transposed(key.in, key.out), plain(key.rows, key.out),
                            key.has_bias ? plain(1, key.out) : Desc())) {}

  void run(const ConstMatrix& x, const ConstMatrix& w, std::span<const Scalar> bias, Matrix& y) {
    product_.run(x.data(), w.data(), y.data(), bias);
  }

 private:
  Product product_;
};

// y^T = w x^T, where x and y are turned around, which are small; the bias comes after it.
class TurnedForward {
 public:
  static constexpr bool kWithBias = false;

  explicit TurnedForward(const ForwardKey& key)
      : TurnedForward(key,
                      product_of(plain(key.out, key.in), any(key.in, key.rows), plain(key.out, key.rows))) {}

  void run(const ConstMatrix& x, const ConstMatrix& w, std::span<const Scalar> bias, Matrix& y) {
    x_.load(x.values());
    product_.run(w.data(), x_.memory().get_data_handle(), y_transposed_.data());
    transpose(as_matrix(std::as_const(y_transposed_).span(), w.rows(), x.rows()), y.data(), y.cols());
    if (!bias.empty()) add_to_rows(bias, y);
  }

 private:
  TurnedForward(const ForwardKey& key, const dnnl::matmul::primitive_desc& desc)
      : product_(desc),
        x_(transposed(key.in, key.rows), desc.weights_desc()),
        y_transposed_(key.rows * key.out) {}

  Product product_;
  ArrangedTensor x_;
  AlignedBuffer<Scalar> y_transposed_;
};

template <class Forward>
void run_forward(const ConstMatrix& x, const ConstMatrix& w, std::span<const Scalar> bias, Matrix& y) {
  thread_engine();  // before the cache, which must go first when the thread ends
  thread_local std::map<ForwardKey, Forward> cache;
  const ForwardKey key{x.rows(), w.rows(), x.cols(), Forward::kWithBias && !bias.empty()};
  cache.try_emplace(key, key).first->second.run(x, w, bias, y);
}

// dx = dy w
void multiply_with_few(const ConstMatrix& dy, const ConstMatrix& w, Matrix& dx) {
  thread_engine();  // made before the cache, as above
  thread_local std::map<std::array<Index, 3>, Product> cache;
  const std::array key{dy.rows(), dy.cols(), w.cols()};
  auto found = cache.find(key);
  if (found == cache.end()) {
    const auto desc =
        product_of(plain(dy.rows(), dy.cols()), plain(w.rows(), w.cols()), plain(dy.rows(), w.cols()));
    found = cache.emplace(key, Product(desc)).first;
  }
  found->second.run(dy.data(), w.data(), dx.data());
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
    run_forward<TurnedForward>(x, w, bias, y);
  } else {
    run_forward<PlainForward>(x, w, bias, y);
  }
}

void multiply_backward_data(const ConstMatrix& dy, const ConstMatrix& w, Matrix& dx) {
  if (dy.rows() == 0) return;
  // There sgemm takes up to 1.7 times as long where rows are a power of two, and as long where they are not.
  constexpr Index kFewUnits = 128;
  constexpr Index kLongRow = 1024;
  if (w.rows() <= kFewUnits && w.cols() >= kLongRow) return multiply_with_few(dy, w, dx);
  thread_engine();
  dnnl::error::wrap_c_api(dnnl_sgemm('N', 'N', dy.rows(), w.cols(), w.rows(), 1, dy.data(), dy.cols(),
                                     w.data(), w.cols(), 0, dx.data(), dx.cols()),
                          "oneDNN could not multiply dy * w");
}

void multiply_backward_weights(const ConstMatrix& dy, const ConstMatrix& x, Range rows, Matrix& dw,
                               Write write) {
  if (x.rows() == 0) {
    if (write == Write::kReplace)
      std::fill_n(dw.data() + rows.begin * dw.cols(), rows.size() * dw.cols(), Scalar{0});
    return;
  }
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

PackedMatrix::PackedMatrix() : layouts_(std::make_unique<Layouts>()) {}
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

}  // namespace lockstep
