#include "support/bf16_operands.h"

namespace lockstep::test {

RoundedOperand::RoundedOperand(const Operand& operand) : wide(operand), values(operand.values().size()) {
  round_to_bf16(wide.values(), values);
  std::ranges::transform(values, wide.values().begin(), widen);
}

RoundedOperand random_operand(Index rows, Index columns, std::mt19937_64& rng) {
  return RoundedOperand(Operand(rows, columns, rng));
}

RoundedOperand whole_numbers(Index rows, Index columns, std::mt19937_64& rng) {
  Operand operand(rows, columns);
  std::uniform_int_distribution<int> small(-8, 8);
  for (Scalar& value : operand.values()) value = static_cast<Scalar>(small(rng));
  return RoundedOperand(operand);
}

void expect_equal(const Operand& found, const Operand& expected, const char* what) {
  EXPECT_TRUE(std::ranges::equal(found.values(), expected.values())) << what;
}

}  // namespace lockstep::test
