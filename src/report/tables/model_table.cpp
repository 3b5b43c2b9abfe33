#include "lockstep/report/tables/model_table.h"

#include <fmt/format.h>

#include <vector>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

using ModelRow = std::vector<std::string>;

struct Counts {
  Index parameters = 0;
  Index flops = 0;
  Index bytes = 0;
};

std::vector<Index> parameters_by_op(const Model& model) {
  std::vector<Index> parameters(model.ops().size());
  for (const ParamInfo& param : model.layout().params) {
    at(parameters, param.layer) += param.shape.size();
  }
  return parameters;
}

Counts count(const Model& model, Index number, Index parameters) {
  const ModelOp& op = model.op(number);
  Counts counts{.parameters = parameters, .flops = op.layer->flops()};
  const Index cached = op.layer->only_reshapes() ? 0 : op.layer->cache_size();
  const Index kept = model.owns_output(number) ? op.out.size() : 0;
  counts.bytes = (kept + cached) * Index{sizeof(Scalar)};
  return counts;
}

ModelRow row(std::string layer, std::string shape, const Counts& counts) {
  return {std::move(layer), std::move(shape), with_commas(counts.parameters), with_commas(counts.flops),
          human_bytes(counts.bytes)};
}

}  // namespace

std::vector<std::vector<std::string>> model_rows(const Model& model) {
  std::vector<ModelRow> rows{{"layer", "output", "parameters", "FLOPs per sample", "activations"},
                             {"input", to_string(model.input()), "", "", ""}};
  Counts total;
  const std::vector<Index> parameters = parameters_by_op(model);
  for (Index i = 0; i < std::ssize(model.ops()); ++i) {
    const ModelOp& op = model.op(i);
    const Counts counts = count(model, i, at(parameters, i));
    total.parameters += counts.parameters;
    total.flops += counts.flops;
    total.bytes += counts.bytes;
    rows.push_back(row(fmt::format("{} {}", op.path, excerpt(op.text)), to_string(op.out), counts));
  }
  rows.push_back(row("total", "", total));
  return rows;
}

std::string model_table(const Model& model) {
  return text_table(model_rows(model), 2);
}

}  // namespace lockstep
