// wide(x) + deep(x).
#include "lockstep/nn/composite.h"
#include "sum.h"

namespace lockstep {

CompositeEntry wide_deep_entry() {
  return {.name = "wide_deep",
          .signature = "wide_deep(layers | layers)",
          .help =
              "the sum of a wide (linear) part and a deep part, trained together (Cheng et al. 2016); "
              "tensors are named wide.N and deep.N",
          .example = "wide_deep(dense(4) | dense(6) relu dense(4))",
          .example_input = {{7}},
          .build = [](GraphBuilder& graph, const Term& term, Index input, const std::string& path) {
            expect_chains(graph, term, path, 2);
            const Index wide = graph.add_chain(term.chains[0], input, path + ".wide");
            const Index deep = graph.add_chain(term.chains[1], input, path + ".deep");
            return graph.add_layer(make_sum(), {wide, deep}, path, term.name);
          }};
}

}  // namespace lockstep
