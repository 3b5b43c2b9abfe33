#include "lockstep/nn/params.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/random.h"

namespace lockstep {
namespace {

void fill_normal(std::span<Scalar> values, RandomStream& random, double deviation) {
  for (Scalar& value : values) value = static_cast<Scalar>(deviation * random.normal());
}

void fill_uniform(std::span<Scalar> values, RandomStream& random, double bound) {
  for (Scalar& value : values) value = static_cast<Scalar>(bound * (2.0 * random.uniform() - 1.0));
}

void initialise_tensor(const ParamInfo& param, std::span<Scalar> values, std::uint64_t seed,
                       double normal_std) {
  RandomStream random({.seed = seed, .purpose = Purpose::kInitialise, .a = hash_text(param.name), .b = 0});
  switch (param.initialiser) {
    case Initialiser::kHe:
      return fill_normal(values, random, std::sqrt(2.0 / static_cast<double>(param.fan_in)));
    case Initialiser::kXavier:
      return fill_uniform(values, random, std::sqrt(6.0 / static_cast<double>(param.fan_in + param.fan_out)));
    case Initialiser::kNormal:
      return fill_normal(values, random, normal_std);
    case Initialiser::kZero:
      std::ranges::fill(values, Scalar{0});
      return;
    case Initialiser::kOne:
      std::ranges::fill(values, Scalar{1});
      return;
    case Initialiser::kDeviation:
      return fill_normal(values, random, param.deviation);
    case Initialiser::kUniform:
      return fill_uniform(values, random, param.deviation);
  }
}

}  // namespace

Initialiser parse_initialiser(std::string_view name) {
  static const std::array<std::pair<std::string, Initialiser>, 4> kKnown{{{"he", Initialiser::kHe},
                                                                          {"xavier", Initialiser::kXavier},
                                                                          {"normal", Initialiser::kNormal},
                                                                          {"zero", Initialiser::kZero}}};
  std::vector<std::string> names;
  for (const auto& [known, initialiser] : kKnown) {
    if (known == name) return initialiser;
    names.push_back(known);
  }
  throw_unknown_name("initialiser", name, names);
}

Index Layout::count() const {
  Index total = 0;
  for (const ParamInfo& param : params) total += param.shape.size();
  return total;
}

std::vector<Index> Layout::chunk_offsets() const {
  std::vector<Index> offsets;
  for (const std::size_t first : chunk_begins) offsets.push_back(offset(first));
  return offsets;
}

Range append(Layout& layout, ParamInfo param) {
  param.range = {layout.size, layout.size + param.shape.size()};
  layout.size = round_up(param.range.end, kAlignment);
  error_if(layout.size > kMaxScalars, "the model has more than {} weights", kMaxScalars);
  layout.params.push_back(std::move(param));
  return layout.params.back().range;
}

void initialise(const ParamStore& store, std::uint64_t seed, double normal_std) {
  std::ranges::fill(store.values, Scalar{0});
  for (const ParamInfo& param : store.layout->params) {
    initialise_tensor(param, part(store.values, param.range), seed, normal_std);
  }
}

}  // namespace lockstep
