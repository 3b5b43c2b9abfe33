#include "thread_engine.h"

#include <omp.h>

namespace lockstep {
namespace {

dnnl::reorder make_reorder(const dnnl::memory& from, const dnnl::memory& to, Write write) {
  return dnnl::reorder(dnnl::reorder::primitive_desc(from, to, exact_attributes(write)));
}

ThreadEngine make_thread_engine() {
  omp_set_num_threads(1);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return {engine, dnnl::stream(engine)};
}

}  // namespace

ThreadEngine& thread_engine() {
  thread_local ThreadEngine here = make_thread_engine();
  return here;
}

dnnl::primitive_attr exact_attributes(Write write) {
  dnnl::primitive_attr attributes;
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  if (write == Write::kAdd) {
    dnnl::post_ops sum;
    sum.append_sum(1);
    attributes.set_post_ops(sum);
  }
  return attributes;
}

dnnl::memory borrowed_memory(const dnnl::memory::desc& desc) {
  return dnnl::memory(desc, thread_engine().engine, DNNL_MEMORY_NONE);
}

void point_to(dnnl::memory& memory, const void* data) {
  memory.set_data_handle(const_cast<void*>(data));
}

ArrangedTensor::ArrangedTensor(const dnnl::memory::desc& plain, const dnnl::memory::desc& arranged)
    : plain_(borrowed_memory(plain)),
      arranged_(arranged, thread_engine().engine),
      load_(make_reorder(plain_, arranged_, Write::kReplace)),
      replace_(make_reorder(arranged_, plain_, Write::kReplace)),
      add_(make_reorder(arranged_, plain_, Write::kAdd)) {}

void ArrangedTensor::load(std::span<const Scalar> plain) {
  point_to(plain_, plain.data());
  load_.execute(thread_engine().stream, plain_, arranged_);
}

void ArrangedTensor::store(std::span<Scalar> plain, Write write) {
  point_to(plain_, plain.data());
  dnnl::reorder& reorder = write == Write::kReplace ? replace_ : add_;
  reorder.execute(thread_engine().stream, arranged_, plain_);
}

ArrangedWeights::ArrangedWeights(const dnnl::memory::desc& plain, const dnnl::memory::desc& arranged)
    : plain_(borrowed_memory(plain)),
      arranged_(arranged),
      load_(dnnl::reorder::primitive_desc(thread_engine().engine, plain, thread_engine().engine, arranged,
                                          exact_attributes())) {}

// Primitives for other numbers of samples want the same layout, more often than not.
ArrangedWeights::Copy& ArrangedWeights::find_copy(Index offset) const {
  thread_engine();  // before the copies, which must go first when the thread ends
  thread_local std::multimap<Index, Copy> by_offset;
  const auto [begin, end] = by_offset.equal_range(offset);
  for (auto known = begin; known != end; ++known) {
    if (known->second.memory.get_desc() == arranged_) return known->second;
  }
  return by_offset.emplace(offset, Copy{dnnl::memory(arranged_, thread_engine().engine)})->second;
}

void ArrangedWeights::fill(Copy& copy, const void* values, std::uint64_t version) {
  point_to(plain_, values);
  load_.execute(thread_engine().stream, plain_, copy.memory);
  copy.version = version;
}

ConvolutionDescription::ConvolutionDescription(const ConvolutionKey& key, const ConvolutionTypes& types) {
  using Tag = dnnl::memory::format_tag;
  const ConvolutionShape& s = key.shape;
  x = Desc({key.rows, s.in_channels, s.in_height, s.in_width}, types.x, Tag::nhwc);
  y = Desc({key.rows, s.out_channels, s.out_height(), s.out_width()}, types.y, Tag::nhwc);
  const Dims dims{s.groups, s.out_channels / s.groups, s.in_channels / s.groups, s.vertical.size,
                  s.horizontal.size};
  weights = Desc(dims, types.weights, Tag::goihw);
  any_weights = Desc(dims, types.weights, Tag::any);
  if (key.has_bias) bias = Desc({s.out_channels}, dnnl::memory::data_type::f32, Tag::a);
  strides = {s.vertical.stride, s.horizontal.stride};
  dilations = {s.vertical.dilation - 1, s.horizontal.dilation - 1};
  pads_before = {s.vertical.pad_before, s.horizontal.pad_before};
  pads_after = {s.vertical.pad_after, s.horizontal.pad_after};
}

dnnl::convolution_forward::primitive_desc forward_primitive(const ConvolutionDescription& d) {
  return describe<dnnl::convolution_forward>(exact_attributes(), dnnl::prop_kind::forward_training, kDirect,
                                             d.x, d.any_weights, d.bias, d.y, d.strides, d.dilations,
                                             d.pads_before, d.pads_after);
}

}  // namespace lockstep
