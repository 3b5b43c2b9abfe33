// The beginning of a command: how all ranks come to the same config, what is checked of the launch, the
// machine and the data, and what is said of them.
#pragma once

#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "experiment.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/config/command_line.h"
#include "lockstep/config/config.h"
#include "lockstep/data/record_source.h"
#include "lockstep/math/kernels.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

/// *Collective.* Rank 0 reads the config file, if one is named; every rank gets its text. Errors:
/// AgreedError.
ConfigText read_config_together(Communicator& comm, const std::string& file);
/// The file that --config names, else that of the run.
std::string config_of_run(const CommandLine& line, const RunDirectory& run);

// Checks before a run, against the ways in which a launch can go wrong without anybody noticing.

/// *Collective.* Refuses when a rank was given another command. Errors: AgreedError naming the ranks.
void refuse_different_commands(Communicator& comm, const CommandLine& line);

/// *Collective.* Refuses when a rank has another config or another program. Before data is opened, which is
/// the work of all ranks together. Errors: AgreedError naming the ranks.
void refuse_differences(Communicator& comm, const Config& config);

/// *Collective.* Refuses when a rank has data of another size. Errors: AgreedError naming the ranks.
void refuse_different_data(Communicator& comm, std::span<const RecordSource* const> sources);

// The kernels of this machine: whether they multiply as the config wants.

/// "native", "emulated" or "none".
std::string to_string(Bf16Support support);

/// How the run multiplies on this rank: "fp32", "bf16", or "bf16, emulated".
std::string describe_precision(const Config& config);

/// *Local*: call it where ranks agree(). Errors: ConfigError if this rank cannot run train.precision.
void refuse_missing_precision(const Config& config);

/// The facts about this build that `trainer --version` prints, by name.
std::vector<std::pair<std::string, std::string>> build_facts();

// Reports on data sets beside their records: the schema that a run keeps, and what was left out.

/// "60000 rows in 47040016 bytes": equal for equal data, wherever they are.
std::string describe_size(const RecordSource& source);

inline constexpr std::size_t kAllLines = std::numeric_limits<std::size_t>::max();

/// Logs the notes of all sources. Of each, `shown` lines are on the console; the log file has them all.
void log_notes(std::span<const RecordSource* const> sources, std::size_t shown = kAllLines);

/// *Collective.* Rank 0 reads a file, such as the schema of a run; "" if it is not there. Errors:
/// AgreedError.
std::string read_together(Communicator& comm, const std::filesystem::path& file);

}  // namespace lockstep
