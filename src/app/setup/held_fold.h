// The training samples that the config holds back by a rule: a fold, or a part that data.validation names.
#pragma once

#include <optional>
#include <string>

#include "lockstep/config/config.h"
#include "lockstep/data/folds/held_part.h"

namespace lockstep {

struct HeldFold {
  Index fold = 0;                ///< that is the validation set; 0: nothing is held back by a rule
  std::optional<HeldPart> part;  ///< nothing: it is data.fold
  std::string column;            ///< that says so, and nothing about the record; "": none does
};

/// Errors: ConfigError where data.validation names a part with wrong arguments.
HeldFold held_fold(const Config& config);

/// The data as the formats are to open them: a part is no file, and its column is no feature, unless the
/// config takes it for one.
DataOptions data_of_files(const DataOptions& data, const HeldFold& held);

/// Errors: ConfigError where data.validation names a part, and there is a file of that name.
void refuse_file_of_that_name(const DataOptions& data);

}  // namespace lockstep
