// Byte-pair encoding (Sennrich et al. 2016) of bytes (Radford et al. 2019). A text is cut into runs, and a
// run is at first a piece for each byte. Again and again the two pieces that stand side by side most often
// become one, everywhere, until there are enough. Counts of pairs are kept as runs change. A pair waits in a
// queue with each count that it rises to, and goes back into it with a smaller one that it has when its turn
// comes.
#include <cstddef>
#include <cstdint>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockstep/base/process.h"
#include "token_file.h"

namespace lockstep {
namespace {

class PieceLearner {
 public:
  explicit PieceLearner(const std::unordered_map<std::string, Index>& runs) {
    for (Index byte = 0; byte < 256; ++byte) number_of(std::string(1, static_cast<char>(byte)));
    for (const auto& [text, count] : runs) {
      Run& run = runs_.emplace_back(Run{.count = count});
      for (const char c : text) run.pieces.push_back(static_cast<unsigned char>(c));
      for (std::size_t i = 0; i + 1 < run.pieces.size(); ++i)
        count_pair(run.pieces[i], run.pieces[i + 1], std::ssize(runs_) - 1, count);
    }
  }

  /// So many pieces, or fewer where no pair stands twice.
  std::vector<std::string> learn(Index max_pieces) {
    while (std::ssize(values_) < max_pieces && !queue_.empty()) {
      throw_if_stopped();
      const auto [count, pair] = queue_.top();
      queue_.pop();
      PairUse& use = pairs_.at(~pair);
      if (use.count == count && count > 1) merge(~pair, std::exchange(use.runs, {}));
      if (use.count > 1 && use.count < count) queue_.emplace(use.count, pair);
    }
    return std::move(values_);
  }

 private:
  using Piece = std::uint32_t;
  using Pair = std::uint64_t;

  struct Run {
    std::vector<Piece> pieces = {};
    Index count = 0;
  };
  struct PairUse {
    Index count = 0;
    std::vector<std::uint32_t> runs = {};  // those that have, or had it, some of them twice
  };

  static Pair pair_of(Piece a, Piece b) { return Pair{a} << 32 | b; }

  Piece number_of(const std::string& value) {
    const auto [entry, is_new] = numbers_.emplace(value, static_cast<Piece>(values_.size()));
    if (is_new) values_.push_back(value);
    return entry->second;
  }

  void count_pair(Piece a, Piece b, Index run, Index change) {
    PairUse& use = pairs_[pair_of(a, b)];
    use.count += change;
    if (change < 0) return;
    use.runs.push_back(static_cast<std::uint32_t>(run));
    queue_.emplace(use.count, ~pair_of(a, b));
  }

  void merge(Pair pair, const std::vector<std::uint32_t>& runs) {
    const auto a = static_cast<Piece>(pair >> 32);
    const auto b = static_cast<Piece>(pair);
    const Piece both = number_of(values_[a] + values_[b]);
    for (const std::uint32_t number : runs) {
      const Index count = runs_[number].count;
      std::vector<Piece>& pieces = runs_[number].pieces;
      for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
        if (pieces[i] != a || pieces[i + 1] != b) continue;
        if (i > 0) count_pair(pieces[i - 1], a, number, -count);
        if (i > 0) count_pair(pieces[i - 1], both, number, count);
        if (i + 2 < pieces.size()) count_pair(b, pieces[i + 2], number, -count);
        if (i + 2 < pieces.size()) count_pair(both, pieces[i + 2], number, count);
        pieces[i] = both;
        pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
    pairs_[pair].count = 0;
  }

  std::vector<std::string> values_;
  std::unordered_map<std::string, Piece> numbers_;
  std::vector<Run> runs_;
  std::unordered_map<Pair, PairUse> pairs_;
  // With the complement of the pair: of several with one count that of the lowest numbers comes first.
  std::priority_queue<std::pair<Index, Pair>> queue_;
};

}  // namespace

std::vector<std::string> learn_pieces(const std::unordered_map<std::string, Index>& runs, Index max_pieces) {
  return PieceLearner(runs).learn(max_pieces);
}

}  // namespace lockstep
