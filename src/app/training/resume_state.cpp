#include "resume_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>

#include "app/setup/catalogs.h"
#include "app/setup/run_config.h"
#include "app/setup/startup.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/distributed/strategies/asynchronous.h"
#include "lockstep/train/storage/checkpoint.h"
#include "lockstep/train/storage/run_record.h"
#include "run_files.h"

namespace lockstep {
namespace {

constexpr const char* kNever = "never";

// Why a checkpoint is not whole; "" if it is. *Collective.* Errors: AgreedError if that cannot be found out,
// since a rank cannot open it. What only some ranks miss cannot be opened either: rank 0 looks for all files.
std::string find_damage(Communicator& comm, const std::filesystem::path& path,
                        std::unique_ptr<CheckpointReader>& reader) {
  bool damaged = false;
  try {
    agree(comm, [&] {
      try {
        if (comm.rank() == 0) refuse_missing(path / kManifestName);
        reader = std::make_unique<CheckpointReader>(path);
        if (comm.rank() == 0) reader->refuse_missing_files();
        reader->verify(comm.size(), comm.rank());
      } catch (const CannotOpenError&) {
        throw;
      } catch (const DataError&) {
        damaged = true;
        throw;
      }
    });
    return "";
  } catch (const AgreedError& error) {
    const std::vector<Index> found = gather_numbers(comm, damaged ? 1 : 0);
    if (std::ranges::count(found, 1) > 0) return error.what();
    throw AgreedError(
        fmt::format("{}; the checkpoint '{}' is left as it is: every rank must be able to read it; "
                    "to go on from the one before, move it away",
                    error.what(), path.string()),
        error.exit_code());
  }
}

enum class Damaged { kPutAside, kLeft };

// *Collective.* The newest whole one; nothing if there is none at all.
std::unique_ptr<CheckpointReader> newest_whole(Communicator& comm, const CheckpointDirectory& directory,
                                               Damaged others) {
  std::vector<Index> steps;
  agree_on_first(comm, [&] { steps = directory.steps(); });
  steps.resize(static_cast<std::size_t>(broadcast_value(comm, std::ssize(steps))));
  if (!steps.empty()) comm.broadcast(as_buffer(std::span(steps)), 0);
  for (const Index step : steps) {
    std::unique_ptr<CheckpointReader> reader;
    const std::string damage = find_damage(comm, directory.finished(step), reader);
    if (damage.empty()) return reader;
    if (comm.rank() == 0) {
      const bool aside = others == Damaged::kPutAside;
      log_warning("the checkpoint of step {} is not used{}: {}", with_commas(step),
                  aside ? ", and put aside" : "", damage);
      if (aside) directory.set_aside(step);
    }
  }
  if (steps.empty()) return nullptr;
  throw AgreedError(
      fmt::format(
          "'{}' has no whole checkpoint: nothing to go on from{}", directory.root().string(),
          others == Damaged::kLeft
              ? "; name another in run.resume"
              : ". What was found is kept beside with the ending .damaged; to start anew, name another "
                "run.dir, or give run.resume = \"restart\""),
      kExitData);
}

// *Collective.* The checkpoints of a run that is there: its config may name another directory for them.
CheckpointDirectory checkpoints_of_run(Communicator& comm, const RunDirectory& run) {
  CheckpointDirectory checkpoints(run.checkpoints());
  agree(comm, [&] {
    if (!is_there(run.config())) return;
    const ConfigText text{.file = run.config().string(), .text = read_file(run.config())};
    checkpoints = checkpoint_directory(load_config({}, text, known_options()), run);
    if (comm.rank() == 0) refuse_foreign_checkpoints(checkpoints, run);
  });
  return checkpoints;
}

// A checkpoint, or a run with some.
std::unique_ptr<CheckpointReader> named_checkpoint(Communicator& comm, const std::string& name) {
  std::unique_ptr<CheckpointReader> reader;
  if (broadcast_value(comm, is_there(std::filesystem::path(name) / kManifestName))) {
    const std::string damage = find_damage(comm, name, reader);
    if (!damage.empty()) throw AgreedError(damage, kExitData);
    return reader;
  }
  reader = newest_whole(comm, checkpoints_of_run(comm, {name}), Damaged::kLeft);
  if (reader == nullptr) {
    throw AgreedError(fmt::format("run.resume is '{}': no checkpoint, and no run directory with checkpoints; "
                                  "expected auto, never, restart, or such a directory",
                                  name),
                      kExitConfig);
  }
  return reader;
}

// Names the damaged checkpoints that an earlier start has put aside.
std::string list_damaged(const CheckpointDirectory& checkpoints) {
  constexpr std::size_t kListed = 3;
  std::vector<std::string> names = checkpoints.damaged();
  if (names.empty()) return "";
  const std::size_t more = names.size() - std::min(names.size(), kListed);
  names.resize(names.size() - more);
  return fmt::format(" but damaged ones ({}{})", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

// *Collective.* For a run that finds no checkpoint. Errors: AgreedError if it has made some: to begin anew
// would empty its history.
void refuse_lost_checkpoints(Communicator& comm, const Config& config, const RunDirectory& directory) {
  std::string noted;
  agree_on_first(comm, [&] { noted = directory.noted_checkpoints().value_or("").string(); });
  noted = broadcast_text(comm, noted);
  if (noted.empty()) return;
  const CheckpointDirectory checkpoints = checkpoint_directory(config, directory);
  const std::string damaged = broadcast_text(comm, comm.rank() == 0 ? list_damaged(checkpoints) : "");
  throw AgreedError(
      fmt::format(
          "the run in '{}' has made checkpoints in '{}', and there is none in '{}' now{}: nothing to go "
          "on from. Bring them back, or name their directory in checkpoint.dir; to begin again, give "
          "run.resume = \"restart\", which moves what is there away, or name another run.dir",
          directory.root.string(), noted, checkpoints.root().string(), damaged),
      kExitData);
}

// Rank 0: the right to move run.dir away. Errors: ConfigError if it is not the directory of a run, if
// another trainer works in it, or if its checkpoints are elsewhere and would be mixed with new ones.
RunLock claim_restart(const Config& config, const RunDirectory& directory) {
  RunLock lock = claim_to_move(directory);
  const CheckpointDirectory checkpoints = checkpoint_directory(config, directory);
  if (is_within(checkpoints.root(), directory.root) || checkpoints.steps().empty()) return lock;
  throw ConfigError(
      "run.resume = \"restart\" moves run.dir '{}' away, but not checkpoint.dir '{}', which has checkpoints: "
      "name another checkpoint.dir, or move that one away",
      directory.root.string(), checkpoints.root().string());
}

// *Collective.* Finds the earlier run in run.dir, which is resumed or moved away.
void look_into_directory(Communicator& comm, const Config& config, ResumeState& resume) {
  const RunDirectory& directory = resume.directory;
  const bool restarts = config.run.resume == kRestart;
  std::array<Index, 2> found{};  // whether there is something, and the steps of a run that ended
  agree_on_first(comm, [&] {
    found = {directory.exists() ? 1 : 0, 0};
    if (found[0] == 0) return;
    if (restarts) {
      resume.moved_lock = claim_restart(config, directory);
      return;
    }
    if (is_there(directory.config())) resume.lock = RunLock(directory);
    found[1] = lockstep::completed_steps(directory).value_or(0);
  });
  comm.broadcast(as_buffer(std::span(found)), 0);
  if (found[0] == 0) return;
  resume.restarts = restarts;
  if (restarts) return;
  resume.is_new = false;
  if (found[1] > 0) resume.completed_steps = found[1];
  resume.checkpoint = newest_whole(comm, checkpoint_directory(config, directory), Damaged::kPutAside);
  if (!resume.checkpoint && !resume.completed_steps) refuse_lost_checkpoints(comm, config, directory);
}

// Whether a run of the one strategy can resume with the other: both keep one set of weights.
bool alike(const Config& before, const Config& now) {
  const auto kind = [](const Config& config) {
    const StrategyEntry& entry = strategy_entry(config.distribute.strategy);
    return entry.weights_per_replica || is_asynchronous(config.distribute) ? entry.name : "";
  };
  return kind(before) == kind(now);
}

// Whether a training set has the size that a checkpoint states. `loaded`: its content will be compared as a
// whole if the checkpoint has its fingerprint; then only the rows count, and files may have been unpacked
// meanwhile.
bool has_size_of(const RecordSource& train, const CheckpointHeader& header, bool loaded) {
  if (!loaded || header.fingerprint.kind != Fingerprint::kRecords) return describe_size(train) == header.data;
  return header.data.starts_with(fmt::format("{} rows in", train.info().rows));
}

}  // namespace

std::string resume_command(const Config& config) {
  return config.run.resume == kAuto ? "the same command" : "the same command with --run.resume auto";
}

CheckpointDirectory checkpoint_directory(const Config& config, const RunDirectory& directory) {
  return CheckpointDirectory(config.checkpoint.dir.empty() ? directory.checkpoints()
                                                           : std::filesystem::path(config.checkpoint.dir));
}

ResumeState find_resume_state(Communicator& comm, const Config& config) {
  ResumeState resume{.directory = {config.run.dir}};
  agree_on_first(comm, [&] {
    refuse_foreign_checkpoints(checkpoint_directory(config, resume.directory), resume.directory);
  });
  const bool automatic = config.run.resume == kAuto;
  if (automatic || config.run.resume == kRestart) {
    look_into_directory(comm, config, resume);
  } else if (config.run.resume != kNever) {
    resume.checkpoint = named_checkpoint(comm, config.run.resume);
  }
  if (!resume.checkpoint && !resume.completed_steps) return resume;
  agree(comm, [&] {
    const CheckpointReader* checkpoint = resume.checkpoint.get();
    const std::filesystem::path file =
        checkpoint != nullptr ? checkpoint->directory() / kCheckpointConfig : resume.directory.config();
    resume.config = load_config({}, {.file = file.string(), .text = read_file(file)}, known_options());
    const std::string key = other_kind(*resume.config, config);
    error_if(!key.empty(), "{} is the directory of a run with another config ({}): name another one{}",
             automatic ? fmt::format("run.dir '{}'", resume.directory.root.string())
                       : fmt::format("'{}', which run.resume names,", config.run.resume),
             key, automatic ? ", or run.resume = \"restart\", which moves that run away" : "");
    if (checkpoint != nullptr) resume.schema = checkpoint->text(RunDirectory{}.schema().string());
  });
  return resume;
}

Config complete(Config config, const ResumeState& resume) {
  if (resume.config && !config.given.contains("train.replicas")) {
    config.train.replicas = resume.config->train.replicas;
  }
  return config;
}

void log_resume(const Config& config, const ResumeState& resume, const RunPlan& plan,
                const std::string& algorithm) {
  if (!resume.checkpoint) {
    if (resume.is_new) return;
    log_info("the run in '{}' was ended before its first checkpoint: it starts anew",
             resume.directory.root.string());
    return;
  }
  const CheckpointHeader& from = resume.checkpoint->header();
  log_info("goes on from '{}': {}, epoch {:.2f}, on {} with {}", resume.checkpoint->directory().string(),
           plural(from.progress.steps, "step"), from.progress.epochs, plural(from.ranks, "rank"),
           from.strategy);
  const bool ordered = config.distribute.reduction == Reduction::kOrdered;
  const Index stages = std::max<Index>(1, std::ssize(plan.stages));
  const auto same_stages = [&](const DistOptions& before) {
    return before.stages == stages &&
           (stages == 1 || (before.placement == config.distribute.placement &&
                            before.schedule.chunks == config.distribute.schedule.chunks));
  };
  const bool same = from.ranks == plan.ranks() && from.strategy == config.distribute.strategy &&
                    from.algorithm == algorithm && (!resume.config || same_stages(resume.config->distribute));
  if (ordered || same) return;
  log_info(
      "the sums of gradients are made in another order now (ranks, stages and their placement, strategy or "
      "exchange algorithm are others, and distribute.reduction is native): the last bits will differ from "
      "those of a run that was not interrupted");
}

void remove_partial_files(const RunDirectory& run) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(run.root, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    if (entry->path().filename().string().find(".partial-") != std::string::npos) {
      remove_if_there(entry->path());
    }
  }
}

void prepare(ResumeState& resume, const Config& config) {
  if (resume.restarts) {
    resume.moved_to = move_away(resume.directory);
    // Before a new directory gets the name: else a crash could leave the name to that one alone.
    sync_directory(resume.moved_to.has_parent_path() ? resume.moved_to.parent_path() : ".");
    log_info("run.resume = \"restart\": what was in '{}' is in '{}' now", resume.directory.root.string(),
             resume.moved_to.string());
  }
  if (resume.is_new) {
    std::error_code unknown;
    resume.root_was_there =
        std::filesystem::exists(std::filesystem::symlink_status(resume.directory.root, unknown));
    create_run_directory(resume.directory.root);
  } else if (!resume.checkpoint) {
    reuse_run_directory(resume.directory.root);
  }
  if (!resume.lock.held()) resume.lock = RunLock(resume.directory);
  remove_if_there(resume.directory.stop());  // an earlier wish may have left it
  remove_partial_files(resume.directory);
  const CheckpointDirectory checkpoints = checkpoint_directory(config, resume.directory);
  resume.checkpoints_lock = claim_checkpoints(checkpoints, resume.directory);
  checkpoints.remove_partial();
}

void refuse_changes(const Config& now, const RecordSource& train, const ResumeState& resume) {
  if (!resume.config) return;
  const Config& before = *resume.config;
  constexpr std::size_t kMaxValueBytes = 1000;
  std::vector<std::string> changes;
  const auto is_allowed = [&now](const std::string& key) {
    return std::ranges::count(now.run.resume_allow, key) > 0;
  };
  for (const auto& [option, old_text, new_text] : find_differences(before, now, known_options())) {
    // The part of the training samples that is held back changes what the model learns from.
    const bool divides =
        option.key == "data.validation" && (validation_part(before.data) || validation_part(now.data));
    const OnResume rule = divides ? OnResume::kMustStay : option.on_resume;
    if (rule == OnResume::kMayChange || is_allowed(option.key)) continue;
    if (rule == OnResume::kIfAlike && alike(before, now)) continue;
    changes.push_back(fmt::format("{} was {}, is {}", option.key, excerpt(old_text, kMaxValueBytes),
                                  excerpt(new_text, kMaxValueBytes)));
  }
  const bool same_size = !resume.checkpoint || has_size_of(train, resume.checkpoint->header(),
                                                           now.data.memory == MemoryMode::kLoad);
  if (!same_size && !is_allowed("data.train")) {
    changes.push_back(
        fmt::format("data.train had {}, has {}", resume.checkpoint->header().data, describe_size(train)));
  }
  if (!changes.empty()) refuse_resume(resume, changes);
}

void refuse_resume(const ResumeState& resume, const std::vector<std::string>& changes) {
  throw ConfigError(
      "the run cannot go on from '{}': it would be another experiment:\n  {}\nChange them back, name those "
      "that you mean in run.resume_allow, begin again with run.resume = \"restart\", or name another run.dir",
      (resume.checkpoint ? resume.checkpoint->directory() : resume.directory.root).string(),
      fmt::join(changes, "\n  "));
}

std::string config_digest(const Config& config) {
  std::string text;
  for (const auto& [key, value] : result_options(config)) text += fmt::format("{} = {}\n", key, value);
  return fmt::format("{:016x}", hash_text(text));
}

}  // namespace lockstep
