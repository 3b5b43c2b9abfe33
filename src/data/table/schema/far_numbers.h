// Numbers of other data that lie far outside of those that a model learnt from, as they do in another unit or
// in another column: further away than all of training's numbers are from each other.
#pragma once

#include <cstddef>
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
  /// The schema must outlive it.
  explicit FarNumbers(const TableSchema& schema);

  /// The cells of a record of that file, one for each column of the schema.
  void add(std::span<const Cell> cells, std::size_t file);

  /// *Collective.* A line for each file that has such numbers, of all ranks.
  std::vector<std::string> describe(const TextFiles& text, PeerGroup& peers) const;

 private:
  struct Bounds {
    std::size_t cell = 0;
    double min = 0;  // of the training data
    double max = 0;
  };
  struct Outside {
    std::size_t file = 0;
    std::size_t cell = 0;
    Index records = 0;
    double min = 0;  // of the file's numbers that lie outside
    double max = 0;
  };
  using Found = std::map<std::pair<std::size_t, std::size_t>, Outside>;  // by file and cell

  static void add(Found& found, const Outside& outside);
  std::string describe(const Outside& outside) const;

  const TableSchema& schema_;
  std::vector<Bounds> bounds_;
  Found found_;
};

}  // namespace lockstep
