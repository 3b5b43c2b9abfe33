// The numbers of PyTorch that regression/make_torch_references.py and make_torch_layers.py wrote.
#pragma once

#include "lockstep/base/json.h"
#include "lockstep/base/types.h"
#include "support/common.h"

namespace lockstep::test {

/// All cases of a section: "optimizers", "clipping", "schedules", "losses"; in torch_layers.json "layers".
nlohmann::json torch_references(const std::string& section,
                                const std::string& name = "torch_references.json");

/// Equal to 1e-5 of the expected value, or to `absolute` where that is nearly zero.
inline void expect_close(std::span<const Scalar> actual, const std::vector<double>& expected,
                         double absolute) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], 1e-5 * std::abs(expected[i]) + absolute) << "element " << i;
}

}  // namespace lockstep::test
