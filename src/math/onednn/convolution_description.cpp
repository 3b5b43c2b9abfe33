#include "convolution_description.h"

#include "thread_engine.h"

namespace lockstep {

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
