#include "content_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/setup/data_notes.h"
#include "resume_changes.h"

namespace lockstep {

bool has_size_of(const RecordSource& train, const CheckpointHeader& header, bool loaded) {
  if (!loaded || header.fingerprint.kind != Fingerprint::kRecords) return describe_size(train) == header.data;
  return header.data.starts_with(fmt::format("{} rows in", train.info().rows));
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

}  // namespace lockstep
