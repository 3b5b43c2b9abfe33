#include "restart.h"

#include <fmt/format.h>

#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "run_files.h"

namespace lockstep {

RunLock claim_restart(const Config& config, const RunDirectory& directory) {
  RunLock lock = claim_to_move(directory);
  const CheckpointDirectory checkpoints = checkpoint_directory(config, directory);
  if (is_within(checkpoints.root(), directory.root) || checkpoints.steps().empty()) return lock;
  throw ConfigError(fmt::format(
      "run.resume = \"restart\" moves run.dir '{}' away, but not checkpoint.dir '{}', which has checkpoints: "
      "name another checkpoint.dir, or move that one away",
      directory.root.string(), checkpoints.root().string()));
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

}  // namespace lockstep
