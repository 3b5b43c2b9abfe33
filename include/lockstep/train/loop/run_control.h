// Requests from outside while a run goes on: to stop, or to write a checkpoint because it is time. A request
// can reach any rank at any moment; the ranks agree on it here, between two steps. Other small news of the
// ranks are sent with it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/timer.h"
#include "lockstep/comm/communicator.h"

namespace lockstep {

/// Seconds of a time limit that are reserved for the steps under way, the log and the exit. A checkpoint
/// needs its own time beside.
inline constexpr double kReserveSeconds = 3;

struct RunControlOptions {
  std::filesystem::path stop_file = {};  ///< its existence is a wish to stop; empty: none. Rank 0 looks
  std::vector<std::filesystem::path> further_stop_files = {};  ///< stop files of what the run is a part of
  std::optional<double> checkpoint_seconds = {};               ///< between two checkpoints
  std::optional<double> seconds_left = {};                     ///< time until this program is ended by force
  std::function<double()> last_checkpoint = {};                ///< seconds that it took; null: there are none
};

class RunControl {
 public:
  RunControl(Communicator& comm, const RunControlOptions& options);

  /// *Collective.* Between two steps, or parts of an evaluation: now and then (about ten times a second) lets
  /// the ranks agree. True if they have agreed to stop, or that a checkpoint is due. With a checksum they
  /// agree at once, and the checksums of all ranks are added up.
  bool look(std::optional<std::uint64_t> checksum = {});
  /// *Collective.* Agrees at once.
  bool agree(std::uint64_t checksum = 0);
  /// *Local.* Whether the ranks agreed in the last look(), which can have waited for them.
  bool just_agreed() const { return looks_skipped_ == 0; }
  /// Whether the checksums of the last agreement add up to 0 (modulo 2^64); the same on all ranks.
  bool checksums_agree() const { return checksums_agree_; }

  /// *Local.* Whether this rank already knows of a wish that agree() will bring up, as it was a tenth of a
  /// second ago.
  bool has_wish();

  /// *Collective*, with the same reason everywhere: the run stops here.
  void stop(const std::string& reason) { reason_ = reason; }

  /// Agreed by all ranks: why the run stops; "" if it goes on.
  const std::string& stop_reason() const { return reason_; }
  bool stops() const { return !reason_.empty(); }
  bool checkpoint_due() const { return checkpoint_due_; }

  /// A checkpoint was begun. The next is due an interval later.
  void checkpoint_taken();

 private:
  std::string wish() const;
  bool clock_wants_checkpoint() const {
    return options_.checkpoint_seconds && since_checkpoint_.seconds() >= *options_.checkpoint_seconds;
  }

  Communicator& comm_;
  RunControlOptions options_;
  Stopwatch since_start_;
  Stopwatch since_checkpoint_;
  Stopwatch since_look_;
  Stopwatch since_wish_;
  bool has_wish_ = false;
  Index looks_to_skip_ = 0;  // before the next agreement; the same on all ranks
  Index looks_skipped_ = 0;
  std::string reason_;
  bool checkpoint_due_ = false;
  bool checksums_agree_ = true;
};

// The moment when a run is going to be ended by force, from its config or its Slurm job.

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
