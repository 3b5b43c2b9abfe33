#include "lockstep/report/model_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lockstep/base/quoted.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr std::size_t kColumns = 5;
using Row = std::array<std::string, kColumns>;

struct Counts {
  Index parameters = 0;
  Index flops = 0;
  Index bytes = 0;
};

std::vector<Index> parameters_by_node(const Model& model) {
  std::vector<Index> parameters(model.nodes().size());
  for (const ParamInfo& param : model.layout().params) {
    parameters[static_cast<std::size_t>(param.layer)] += param.shape.size();
  }
  return parameters;
}

Counts count(const Model& model, Index number, Index parameters) {
  const ModelNode& node = model.node(number);
  Counts counts{.parameters = parameters, .flops = node.layer->flops()};
  const Index cached = node.layer->only_reshapes() ? 0 : node.layer->cache_size();
  const Index kept = model.owns_output(number) ? node.out.size() : 0;
  counts.bytes = (kept + cached) * Index{sizeof(Scalar)};
  return counts;
}

Row row(std::string layer, std::string shape, const Counts& counts) {
  return {std::move(layer), std::move(shape), with_commas(counts.parameters), with_commas(counts.flops),
          human_bytes(static_cast<double>(counts.bytes))};
}

}  // namespace

std::string model_table(const Model& model) {
  std::vector<Row> rows{{"layer", "output", "parameters", "FLOPs per sample", "activations"},
                        {"input", to_string(model.input()), "", "", ""}};
  Counts total;
  const std::vector<Index> parameters = parameters_by_node(model);
  for (Index i = 0; i < static_cast<Index>(model.nodes().size()); ++i) {
    const ModelNode& node = model.node(i);
    const Counts counts = count(model, i, parameters[static_cast<std::size_t>(i)]);
    total.parameters += counts.parameters;
    total.flops += counts.flops;
    total.bytes += counts.bytes;
    rows.push_back(row(fmt::format("{} {}", node.path, excerpt(node.text)), to_string(node.out), counts));
  }
  rows.push_back(row("total", "", total));

  std::array<std::size_t, kColumns> widths{};
  for (const Row& cells : rows) {
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string text;
  for (const Row& cells : rows) {
    text += fmt::format("{:<{}}  {:<{}}", cells[0], widths[0], cells[1], widths[1]);
    for (std::size_t i = 2; i < kColumns; ++i) text += fmt::format("  {:>{}}", cells[i], widths[i]);
    text += '\n';
  }
  return text;
}

}  // namespace lockstep
