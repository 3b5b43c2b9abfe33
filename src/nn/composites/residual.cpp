// x + body(x), with a projection of x where the shapes differ.
#include <fmt/format.h>

#include "lockstep/nn/composite.h"
#include "sum.h"

namespace lockstep {
namespace {

// A stride that takes an image of `from` to one of `to` pixels under a window of one pixel.
Index stride_between(Index from, Index to) {
  const Index stride = to == 0 ? 1 : divide_up(from, to);
  return (from - 1) / stride + 1 == to ? stride : 0;
}

// He et al. 2015, option B: a linear projection. "" if none can be.
std::string projection(const Shape& from, const Shape& to) {
  const auto in = as_image(from);
  const auto out = as_image(to);
  if (!in && !out) return fmt::format("dense({}, bias=false)", to.size());
  if (!in || !out) return "";
  const Index stride = stride_between(in->height, out->height);
  if (stride == 0 || stride != stride_between(in->width, out->width)) return "";
  return fmt::format("conv2d({}, 1, stride={}, bias=false)", out->channels, stride);
}

}  // namespace

CompositeEntry residual_entry() {
  return {.name = "residual",
          .signature = "residual(layers)",
          .help =
              "x + layers(x) (He et al. 2015); where the shapes differ x goes through a projection, conv2d "
              "of one pixel with a stride or dense, without bias; tensors are named body.N and shortcut",
          .example = "residual(dense(6) tanh dense(4))",
          .example_input = {{5}},
          .build = [](GraphBuilder& graph, const Term& term, Index input, const std::string& path) {
            expect_chains(graph, term, path, 1);
            const Index body = graph.add_chain(term.chains[0], input, path + ".body");
            Index shortcut = input;
            if (graph.shape(input) != graph.shape(body)) {
              const std::string layer = projection(graph.shape(input), graph.shape(body));
              if (layer.empty()) {
                throw graph.error(path, term.name,
                                  fmt::format("no projection takes {} to {}, so that they could be added",
                                              to_string(graph.shape(input)), to_string(graph.shape(body))));
              }
              shortcut = graph.add_layer(layer, input, path + ".shortcut");
            }
            return graph.add_layer(make_sum(), {shortcut, body}, path, term.name);
          }};
}

}  // namespace lockstep
