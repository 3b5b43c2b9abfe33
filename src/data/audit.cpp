#include "lockstep/data/audit.h"

#include <fmt/format.h>

#include "id_set.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// 22 bits each, so that their sums fit.
constexpr std::uint64_t kMask = (std::uint64_t{1} << 22) - 1;

void add_one(Index id, Index times, IdSums& sums) {
  const std::uint64_t hash = id_hash(0, id);
  sums.numbers[0] += times;
  sums.numbers[1] += times * static_cast<Index>(hash & kMask);
  sums.numbers[2] += times * static_cast<Index>(hash >> 22 & kMask);
}

}  // namespace

void IdSums::add(std::span<const Index> ids) {
  for (const Index id : ids) add_one(id, 1, *this);
}

void IdSums::add(const IdSums& other) {
  for (std::size_t i = 0; i < kNumbers; ++i) numbers[i] += other.numbers[i];
}

IdSums sums_of(Range ids, Index times) {
  IdSums sums;
  for (Index id = ids.begin; id < ids.end; ++id) add_one(id, times, sums);
  return sums;
}

std::string compare_sums(const IdSums& found, const IdSums& expected, Index epoch) {
  if (found == expected) return "";
  if (found.count() != expected.count()) {
    return fmt::format("data.audit: epoch {} used {} samples, expected {}", epoch, with_commas(found.count()),
                       with_commas(expected.count()));
  }
  return fmt::format(
      "data.audit: epoch {} used {} samples as it should, but not each as often as it should: their ids add "
      "up to {} and {}, expected {} and {}",
      epoch, with_commas(found.count()), found.numbers[1], found.numbers[2], expected.numbers[1],
      expected.numbers[2]);
}

}  // namespace lockstep
