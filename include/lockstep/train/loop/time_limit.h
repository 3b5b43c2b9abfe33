// The moment when a run is going to be ended by force, from its config or its Slurm job.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// Seconds of a time limit: "50 minutes" (also seconds, hours), or in one of the notations of Slurm's --time:
/// "minutes", "minutes:seconds", "hours:minutes:seconds", "days-hours", "days-hours:minutes",
/// "days-hours:minutes:seconds". Infinity for "UNLIMITED", "INFINITE" and, as in Slurm, a limit of zero.
/// Errors: ConfigError naming `key` and the text, also if all of the time is kept in reserve.
double parse_time_limit(std::string_view key, std::string_view text);

struct TimeLeft {
  std::optional<double> seconds;  ///< infinite: there is no limit; none: it is not known
  std::string warning;            ///< why it is not known although the variable is set; "": all is well
};

/// Seconds until the end of a Slurm job. `end_time`: the value of SLURM_JOB_END_TIME; `now`: seconds since
/// 1970. A value that cannot be the end of this job gives no limit: with one, each start of the run would
/// stop after its first step.
TimeLeft job_time_left(std::string_view end_time, double now);

}  // namespace lockstep
