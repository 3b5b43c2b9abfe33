#include "expect_chains.h"

#include <fmt/format.h>

namespace lockstep {

void expect_chains(const GraphBuilder& graph, const Term& term, const std::string& path, std::size_t count) {
  if (count == 0 ? term.chains.size() >= 2 : term.chains.size() == count) return;
  throw graph.error(path, term.text,
                    fmt::format("{} chain{} of layers between '|', expected {}", term.chains.size(),
                                term.chains.size() == 1 ? "" : "s",
                                count == 0 ? std::string("at least 2") : std::to_string(count)));
}

}  // namespace lockstep
