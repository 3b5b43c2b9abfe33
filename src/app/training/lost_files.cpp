#include "lost_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/agree.h"

namespace lockstep {

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
  const std::vector<std::string> lost = resume.directory.lost();
  const bool lacks_lines = std::ranges::find(lost, log) != lost.end();
  if (lacks_lines && std::ranges::find(files, log) == files.end()) files.push_back(log);
  return files;
}

void report_lost_before(Communicator& comm, const ResumeState& resume) {
  agree(comm, [&] {
    if (comm.rank() != 0 || resume.is_new) return;
    const std::vector<std::string> lost = resume.directory.lost();
    if (lost.empty()) return;
    const std::string found = fmt::format("the run in '{}' went to its end, but lost {}",
                                          resume.directory.root.string(), fmt::join(lost, ", "));
    if (!resume.checkpoint) {
      throw DataError(found + ": there is no checkpoint to write it again from; name another run.dir");
    }
    log_info("{}: what came after its newest checkpoint is written again", found);
  });
}

}  // namespace lockstep
