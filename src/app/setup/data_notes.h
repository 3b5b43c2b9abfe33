// Reports on data sets beside their records: the schema that a run keeps, and what was left out.
#pragma once

#include <limits>
#include <span>
#include <string>

#include "experiment.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/record_source.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

/// "60000 rows in 47040016 bytes": equal for equal data, wherever they are.
std::string describe_size(const RecordSource& source);

inline constexpr std::size_t kAllLines = std::numeric_limits<std::size_t>::max();

/// Logs the notes of all sources. Of each, `shown` lines are on the console; the log file has them all.
void log_notes(std::span<const RecordSource* const> sources, std::size_t shown = kAllLines);

/// Warns of what hardly can be meant of model, loss, data and batch together.
void log_doubts(const Communicator& comm, const Experiment& experiment, const RunPlan& plan);

/// The text of rejects.txt; "" if no record was left out.
std::string list_rejects(std::span<const RecordSource* const> sources);

/// *Collective.* Rank 0 reads the schema of a run; "" if it has none. Errors: AgreedError.
std::string load_schema_together(Communicator& comm, const RunDirectory& directory);

}  // namespace lockstep
