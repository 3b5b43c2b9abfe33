#include "run_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/setup/catalogs.h"
#include "app/setup/stage_choice.h"
#include "app/setup/startup.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/agree.h"
#include "lockstep/config/toml.h"
#include "lockstep/report/tables/tables.h"
#include "lockstep/train/storage/run_record.h"

namespace lockstep {
bool is_within(const std::filesystem::path& path, const std::filesystem::path& directory) {
  const auto plain = [](const std::filesystem::path& any) {
    return std::filesystem::absolute(any).lexically_normal();
  };
  const std::filesystem::path relative = plain(path).lexically_relative(plain(directory));
  return !relative.empty() && *relative.begin() != "..";
}

void note_checkpoints(const Config& config, const ResumeState& resume) {
  const RunDirectory& directory = resume.directory;
  if (resume.lock.whereabouts() != directory.root) return;
  const std::filesystem::path checkpoints = checkpoint_directory(config, directory).root();
  try {
    if (directory.noted_checkpoints() == checkpoints) return;
    write_file_atomically(directory.checkpointed(), checkpoints.string() + "\n");
  } catch (const Error&) {
  }
}

// A failure is ignored: the next start reports which lines are missing.
void sync_metrics(const RunDirectory& directory) {
  try {
    sync_file(directory.metrics());
    sync_directory(directory.root);  // makes its name durable, too
  } catch (const Error&) {
  }
}

CheckpointHooks checkpoint_hooks(const Config& config, const ResumeState& resume) {
  const bool inside = is_within(checkpoint_directory(config, resume.directory).root(), resume.directory.root);
  CheckpointHooks hooks;
  if (inside) {
    hooks.before = [&resume] {
      const std::string lost = describe_lost_directory(resume.directory, resume.lock);
      if (!lost.empty()) throw DataError(lost);
    };
  }
  hooks.sync = [&resume] { sync_metrics(resume.directory); };
  hooks.after = [config, &resume] { note_checkpoints(config, resume); };
  return hooks;
}

std::string describe_lost_directory(const RunDirectory& directory, const RunLock& lock) {
  const std::optional<std::filesystem::path> now = lock.whereabouts();
  if (now == directory.root) return "";
  const std::string root = directory.root.string();
  if (!now) return fmt::format("run.dir '{}' was deleted while the run went on", root);
  return fmt::format("run.dir '{}' was moved to '{}' while the run went on", root, now->string());
}

RunDirectory find_results_directory(const ResumeState& resume,
                                    const std::map<std::string, std::string>& texts) {
  if (const auto now = resume.lock.whereabouts()) return {*now};
  const RunDirectory anew = make_directory_beside(resume.directory.root);
  for (const auto& [name, text] : texts) write_file_atomically(anew.root / name, text);
  return anew;
}

void refuse_lost_files(const ResumeState& resume, const RunDirectory& results) {
  const RunDirectory& directory = resume.directory;
  const std::string lost = describe_lost_directory(directory, resume.lock);
  if (!lost.empty()) {
    const bool moved = resume.lock.whereabouts() == results.root;
    throw DataError("training is complete, but {}{}: model.safetensors and summary.json are in '{}'{}", lost,
                    moved ? "" : ", with its logs and all that was in it", results.root.string(),
                    moved ? "" : ", which was made anew with them and config.toml");
  }
  std::vector<std::string> missing;
  for (const std::filesystem::path& file :
       {directory.config(), directory.plan(), directory.ranks(), directory.log(), directory.metrics()}) {
    if (!is_there(file)) missing.push_back(file.filename().string());
  }
  if (missing.empty()) return;
  throw DataError(
      "training is complete, and model.safetensors and summary.json are in '{}', but other files were "
      "deleted from there while the run went on: {}",
      directory.root.string(), fmt::join(missing, ", "));
}

LostFiles::LostFiles(const Observer& output, const CheckpointWriter& writer, std::string command)
    : command_(std::move(command)), files_(output.incomplete_files()) {
  if (!files_.empty()) text_ = fmt::format("lines of {}", fmt::join(files_, " and "));
  if (const std::string& failure = writer.last_failure(); !failure.empty()) {
    attempt("the last checkpoint", [&] { throw DataError(failure); });
  }
}

bool LostFiles::attempt(const std::string& file, const std::function<void()>& write) {
  try {
    write();
    return true;
  } catch (const DataError& error) {
    text_ += fmt::format("{}{} ({})", text_.empty() ? "" : "; ", file, error.what());
    files_.push_back(file);
    return false;
  }
}

std::string LostFiles::describe() const {
  return fmt::format(
      "{}. Once files can be written, {} goes on from the newest checkpoint, if there is one, and writes "
      "again what came after it; lines lost before it, and those of log.txt, stay lost",
      text_, command_);
}

std::vector<std::string> incomplete_before(const ResumeState& resume) {
  if (resume.is_new) return {};
  std::vector<std::string> files;
  if (resume.checkpoint) files = resume.checkpoint->header().incomplete_files;
  // The log is never cut back to what it was at a checkpoint: what it lacks after it stays lost too.
  const std::string log = resume.directory.log().filename().string();
  const std::vector<std::string> lost = lost_files(resume.directory);
  const bool lacks_lines = std::ranges::find(lost, log) != lost.end();
  if (lacks_lines && std::ranges::find(files, log) == files.end()) files.push_back(log);
  return files;
}

void report_lost_before(Communicator& comm, const ResumeState& resume) {
  agree_on_first(comm, [&] {
    if (resume.is_new) return;
    const std::vector<std::string> lost = lost_files(resume.directory);
    if (lost.empty()) return;
    const std::string found = fmt::format("the run in '{}' went to its end, but lost {}",
                                          resume.directory.root.string(), fmt::join(lost, ", "));
    if (!resume.checkpoint) {
      throw DataError(found + ": there is no checkpoint to write it again from; name another run.dir");
    }
    log_info("{}: what came after its newest checkpoint is written again", found);
  });
}

void undo_preparation(const ResumeState& resume) {
  if (!resume.is_new) return;
  const std::filesystem::path& root = resume.directory.root;
  std::error_code error;
  if (resume.lock.held()) {
    for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
      std::error_code ignored;
      std::filesystem::remove_all(entry.path(), ignored);
    }
    if (!resume.root_was_there) std::filesystem::remove(root, error);
  }
  if (resume.moved_to.empty()) return;
  std::filesystem::rename(resume.moved_to, root, error);
  if (!error) {
    log_info("what was moved to '{}' is back in '{}'", resume.moved_to.string(), root.string());
  }
}

void refuse_other_content(const Config& config, const RecordSource& train, const Fingerprint& found,
                          const ResumeState& resume) {
  if (!resume.checkpoint) return;
  const std::vector<std::string>& allowed = config.run.resume_allow;
  if (std::ranges::find(allowed, "data.train") != allowed.end()) return;
  std::vector<std::string> changes;
  for (const std::string& change : describe_changes(resume.checkpoint->header().fingerprint, found, train)) {
    changes.push_back("data.train: " + change);
  }
  if (!changes.empty()) refuse_resume(resume, changes);
}

Config repeating_config(const Experiment& experiment, const RunPlan& plan) {
  Config config = experiment.config;
  config.train.replicas = plan.sampling.replicas;  // so that the same run is repeated on any number of ranks
  config.distribute.stages = std::max<Index>(1, std::ssize(plan.stages));  // eval and predict divide it so
  config.distribute.cut = cut_of_division(experiment).value_or(config.distribute.cut);
  if (config.run.resume == kRestart) config.run.resume = kAuto;  // one restart is meant, not one each time
  return config;
}

std::set<std::string> idle_keys(const Config& config) {
  return keys_without_effect(config, known_options(), choices(config));
}

std::map<std::string, std::string> describing_texts(const Experiment& experiment, const RunPlan& plan) {
  const Config config = repeating_config(experiment, plan);
  const RunDirectory names;
  std::map<std::string, std::string> texts{
      {names.config().string(), to_toml(config, known_options(), idle_keys(config))}};
  const std::string schema = experiment.train->schema();
  if (!schema.empty()) texts[names.schema().string()] = schema;
  return texts;
}

void fill_directory(const RunDirectory& directory, const Experiment& experiment, const RunPlan& plan,
                    const std::map<std::string, std::string>& texts) {
  for (const auto& [name, text] : texts) write_file_atomically(directory.root / name, text);
  write_file_atomically(directory.plan(),
                        model_table(*experiment.model) + "\n" + plan_table(std::span(&plan, 1)));
  std::string rejects;
  for (const RecordSource* source : experiment.sources()) {
    for (const std::string& reject : source->rejects()) rejects += reject + "\n";
  }
  if (!rejects.empty()) write_file_atomically(directory.rejects(), rejects);
}

ModelFacts threshold_facts(const std::optional<ChosenThreshold>& threshold) {
  ModelFacts facts;
  if (!threshold) return facts;
  facts[kThresholdFact] = fmt::format("{}", threshold->threshold);
  if (!threshold->measure.empty()) facts[kThresholdMeasureFact] = threshold->measure;
  return facts;
}

}  // namespace lockstep
