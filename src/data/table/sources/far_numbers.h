// Numbers of other data that lie far outside of those that the model learnt from, as they do in another unit
// or in another column: further away than all of training's numbers are from each other.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/data/peer_group.h"
#include "lockstep/data/table/text/row.h"
#include "lockstep/data/table/text/text_files.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

class FarNumbers {
 public:
  explicit FarNumbers(const TableSchema& schema);

  /// A record of that file: a cell for each column of the schema.
  void add(std::span<const Cell> cells, std::size_t file);

  /// *Collective.* A line for each file that has such numbers, of all ranks.
  std::vector<std::string> describe(const TextFiles& text, PeerGroup& peers) const;

 private:
  struct Bounds {  // of the training data
    std::size_t cell;
    double min, max;
  };
  struct Outside {  // numbers of a file that lie outside
    std::size_t file, bounds;
    NumberStats numbers;
  };
  using Found = std::map<std::pair<std::size_t, std::size_t>, NumberStats>;  // by file and bounds

  std::string describe(const Bounds& bounds, const NumberStats& outside) const;

  const TableSchema* schema_;
  std::vector<Bounds> bounds_;
  Found found_;
};

}  // namespace lockstep
