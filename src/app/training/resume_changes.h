// The differences that are allowed between a run and the one that it resumes.
#pragma once

#include <string>
#include <vector>

#include "resume_state.h"

namespace lockstep {

/// Errors: ConfigError with a list of the keys that differ from the checkpoint's run and would make another
/// experiment of it, but for those in run.resume_allow.
void refuse_changes(const Config& config, const RecordSource& train, const ResumeState& resume);

/// Errors: always ConfigError, with the list of `changes`.
[[noreturn]] void refuse_resume(const ResumeState& resume, const std::vector<std::string>& changes);

}  // namespace lockstep
