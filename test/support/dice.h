// Random choices of a test that can be drawn again, from a seed and the number of the case.
#pragma once

#include "lockstep/base/types.h"
#include "support/common.h"

namespace lockstep::test {

class Dice {
 public:
  Dice(std::uint64_t seed, Index number) {
    const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
    std::seed_seq words{low(seed), low(seed >> 32), low(static_cast<std::uint64_t>(number))};
    random_.seed(words);
  }

  Index whole(Index least, Index most) { return std::uniform_int_distribution<Index>(least, most)(random_); }
  double real(double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random_);
  }
  double normal() { return std::normal_distribution<double>()(random_); }
  bool chance(double probability) { return real(0, 1) < probability; }
  std::string one_of(const std::vector<std::string>& texts) {
    return at(texts, whole(0, std::ssize(texts) - 1));
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace lockstep::test
