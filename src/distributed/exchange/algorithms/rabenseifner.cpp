// With P the largest power of two up to the number of ranks N, the first 2 (N - P) ranks form pairs of
// neighbours. A pair folds: each adds one half of the numbers of both, and the second gives its half to the
// first, which continues for both. P ranks are left. By recursive halving each of them ends with the sum of a
// P-th of the numbers, by recursive doubling they give these to each other, and the first of each pair hands
// everything to the second.
#include <bit>

#include "distributed/exchange/reducers.h"

namespace lockstep {
namespace {

Index middle_of(Range range) {
  return split_evenly(range, 2, 0, kAlignment).end;
}

// The stages of the ranks that are left; `number` is this rank's position among them, `rank_of` the rank that
// stands at a position.
template <class RankOf>
void halve_and_double(std::vector<Stage>& stages, int number, int left, Index count, const RankOf& rank_of) {
  struct Level {
    int partner;
    Range kept;
    Range given;
  };
  std::vector<Level> levels;
  Range mine{0, count};
  for (int distance = left / 2; distance > 0; distance /= 2) {
    const Range low{mine.begin, middle_of(mine)};
    const Range high{low.end, mine.end};
    const bool keeps_low = (number & distance) == 0;
    levels.push_back({rank_of(number ^ distance), keeps_low ? low : high, keeps_low ? high : low});
    mine = levels.back().kept;
  }
  for (const Level& level : levels) {
    append_stage(stages, {level.partner, level.given}, {level.partner, level.kept}, Write::kAdd);
  }
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    append_stage(stages, {level->partner, level->kept}, {level->partner, level->given}, Write::kReplace);
  }
}

}  // namespace

std::vector<Stage> rabenseifner_stages(int rank, int ranks, Index count) {
  const int left = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
  const int pairs = ranks - left;
  const Range whole{0, count};
  const Range low{0, middle_of(whole)};
  const Range high{low.end, count};
  const Range none{};
  std::vector<Stage> stages;
  const bool paired = rank < 2 * pairs;
  const bool second = paired && rank % 2 == 1;
  const int partner = second ? rank - 1 : rank + 1;
  if (second) {
    append_stage(stages, {partner, low}, {partner, high}, Write::kAdd);
    append_stage(stages, {partner, high}, {partner, none}, Write::kReplace);
    append_stage(stages, {partner, none}, {partner, whole}, Write::kReplace);
    return stages;
  }
  if (paired) {
    append_stage(stages, {partner, high}, {partner, low}, Write::kAdd);
    append_stage(stages, {partner, none}, {partner, high}, Write::kReplace);
  }
  const int number = paired ? rank / 2 : rank - pairs;
  halve_and_double(stages, number, left, count,
                   [pairs](int position) { return position < pairs ? 2 * position : position + pairs; });
  if (paired) append_stage(stages, {partner, whole}, {partner, none}, Write::kReplace);
  return stages;
}

AlgorithmEntry rabenseifner_entry() {
  return staged_entry(
      "rabenseifner",
      "recursive halving to add and recursive doubling to hand out: about as few bytes as the "
      "ring, in few stages",
      rabenseifner_stages);
}

}  // namespace lockstep
