// Reads a data set to its end as a run would.
#pragma once

#include <algorithm>
#include <vector>

#include "lockstep/data/record_source.h"

namespace lockstep::fuzz {

inline void read_all(const RecordSource& source) {
  constexpr Index kMaxBytes = Index{64} << 20;
  const DatasetInfo& info = source.info();
  const Index features = info.features.size();
  if (features > kMaxBytes || info.record_bytes == 0) return;
  const auto reader = source.reader({});
  std::vector<Scalar> x(static_cast<std::size_t>(features));
  std::vector<Scalar> targets(static_cast<std::size_t>(std::max<Index>(info.label_columns(), 1)));
  for (Index chunk = 0; chunk < std::ssize(source.chunks()); ++chunk) {
    const Range records = at(source.chunks(), chunk).records;
    if (records.size() > kMaxBytes / info.record_bytes) return;
    std::vector<std::byte> packed(static_cast<std::size_t>(records.size() * info.record_bytes));
    reader->read(chunk, packed);
    for (Index id = records.begin; id < records.end; ++id) {
      const std::byte* record = packed.data() + (id - records.begin) * info.record_bytes;
      Matrix row(x.data(), 1, features);
      Matrix target(targets.data(), 1, info.label_columns());
      source.unpack({&id, 1}, {&record, 1}, row, target);
    }
  }
}

}  // namespace lockstep::fuzz
