// Short ways to open, load and gather a data set in tests.
#pragma once

#include "lockstep/data/loading/load_records.h"
#include "support/common.h"

namespace lockstep::test {

/// Some records of a data set.
struct RecordFilter {
  std::function<bool(Index id)> wants;
  Index count = 0;
};

/// Loads them without other ranks.
inline std::unique_ptr<Records> load(const RecordSource& source, const RecordFilter& filter,
                                     const TargetRule& rule) {
  const auto ranks = [filter](Index id) { return Range{0, filter.wants(id) ? 1 : 0}; };
  return load_records(source, rule, {.ranks = ranks, .count = filter.count}, alone());
}

/// All records of a data set.
inline RecordFilter everything(const RecordSource& source) {
  return {.wants = [](Index) { return true; }, .count = source.info().rows};
}

/// The records whose id leaves the remainder `part` when divided by `parts`.
inline RecordFilter every_nth(const RecordSource& source, Index parts, Index part) {
  return {.wants = [parts, part](Index id) { return id % parts == part; },
          .count = (source.info().rows + parts - 1 - part) / parts};
}

/// The ids in [0, rows) that the filter wants, in order.
inline std::vector<Index> wanted_ids(Index rows, const RecordFilter& filter) {
  std::vector<Index> ids;
  for (Index id = 0; id < rows; ++id) {
    if (filter.wants(id)) ids.push_back(id);
  }
  return ids;
}

struct Gathered {
  std::vector<Scalar> features;
  std::vector<Scalar> targets;
  bool operator==(const Gathered&) const = default;
};

inline Gathered gather(const Records& records, const DatasetInfo& info, const std::vector<Index>& ids) {
  const auto rows = std::ssize(ids);
  Gathered out{std::vector<Scalar>(static_cast<std::size_t>(rows * info.features.size())),
               std::vector<Scalar>(static_cast<std::size_t>(rows * info.label_columns()))};
  Matrix x(out.features.data(), rows, info.features.size());
  Matrix targets(out.targets.data(), rows, info.label_columns());
  records.gather(ids, x, targets);
  return out;
}

}  // namespace lockstep::test
