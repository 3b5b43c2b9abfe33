// Proof that training saw each sample as often as it should: sums over the ids of samples that do not depend
// on their order, so that all ranks can add theirs, compared with what the ids must add up to.
#pragma once

#include <array>
#include <span>
#include <string>

#include "lockstep/base/types.h"

namespace lockstep {

/// How many ids, and two sums of hashes of them. Sums of up to 2^40 ids do not overflow; another set of as
/// many ids has the same sums with a chance of one in 2^40.
struct IdSums {
  static constexpr std::size_t kNumbers = 3;
  std::array<Index, kNumbers> numbers{};

  void add(std::span<const Index> ids);
  void add(const IdSums& other);
  Index count() const { return numbers[0]; }
  bool operator==(const IdSums&) const = default;
};

/// Sums of the ids [begin, end), each counted `times` times.
IdSums sums_of(Range ids, Index times);

/// "" if the sums are those expected, else what is wrong with the samples of `epoch` (from 1).
std::string compare_sums(const IdSums& found, const IdSums& expected, Index epoch);

}  // namespace lockstep
