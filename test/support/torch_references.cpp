#include "torch_references.h"

#include "lockstep/base/file.h"
#include "support/common.h"

namespace lockstep::test {
namespace {

// Numbers of waves() in make_torch_layers.py are in the file as what they are made of.
void write_out_waves(nlohmann::json& value) {
  if (!value.is_structured()) return;
  if (!value.contains("waves")) {
    for (nlohmann::json& each : value) write_out_waves(each);
    return;
  }
  const auto [count, phase, divisor] = value.at("waves").get<std::tuple<Index, double, double>>();
  std::vector<double> numbers;
  for (Index i = 0; i < count; ++i) {
    const double wave = 1.5 * std::sin(1.7 * static_cast<double>(i) + phase);
    numbers.push_back(std::nearbyint(wave * 64) / 64 / divisor);
  }
  value = numbers;
}

}  // namespace

nlohmann::json torch_references(const std::string& section, const std::string& name) {
  auto cases = parse_json<nlohmann::json>(read_file(LOCKSTEP_TEST_DATA "/regression/" + name)).at(section);
  write_out_waves(cases);
  EXPECT_FALSE(cases.empty()) << section;
  return cases;
}

}  // namespace lockstep::test
