#include "lockstep/data/kinds/kind.h"

#include <algorithm>
#include <array>

#include "lockstep/data/formats/format.h"
#include "lockstep/data/inputs/reading_row.h"

namespace lockstep {

// One for each file that makes a kind.
DataKind text_kind();
DataKind windows_kind();
DataKind table_kind();
DataKind array_kind();

std::span<const DataKind> data_kinds() {
  static const std::array kinds{text_kind(), windows_kind(), table_kind(), array_kind()};
  return kinds;
}

const DataKind& kind_of(const DataOptions& data) {
  return *std::ranges::find_if(data_kinds(), [&data](const DataKind& kind) { return kind.is_of(data); });
}

const DataKind& kind_of_files(DataOptions data) {
  data.format = choose_format(data).name;
  return kind_of(data);
}

DataSets open_sets(const SetsRequest& request) {
  const ReadingRow row(request.peers.rank() == 0);
  return kind_of(request.data).open(request);
}

std::unique_ptr<RecordSource> open_input(const InputRequest& request) {
  const ReadingRow row(request.peers.rank() == 0);
  return kind_of(request.data).open_input(request);
}

}  // namespace lockstep
