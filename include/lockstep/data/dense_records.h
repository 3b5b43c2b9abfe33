// Records of one size in memory, one after the other: what every format that reads a file ends up with.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "lockstep/data/id_set.h"
#include "lockstep/data/records.h"

namespace lockstep {

class DenseRecords : public Records {
 public:
  /// Features stay bytes where the file has bytes: a quarter of the memory of scalars.
  using Features = std::variant<std::vector<std::uint8_t>, std::vector<Scalar>>;

  /// The records `ids`, in ascending order of id: `feature_count` features and `target_count` targets of
  /// each.
  DenseRecords(IdSet ids, Index feature_count, Index target_count, Features features,
               std::vector<Scalar> targets);

  Index rows() const override { return ids_.size(); }
  Index bytes() const override;
  void gather(std::span<const Index> ids, Matrix& x, Matrix& targets) const override;

 private:
  IdSet ids_;
  Index feature_count_;
  Index target_count_;
  Features features_;
  std::vector<Scalar> targets_;
};

}  // namespace lockstep
