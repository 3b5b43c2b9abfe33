// Whether the training set of a resumed run still has the content that it had.
#pragma once

#include "lockstep/data/fingerprint.h"
#include "resume_state.h"

namespace lockstep {

/// Whether a training set has the size that a checkpoint states. `loaded`: its content will be compared as a
/// whole if the checkpoint has its fingerprint; then only the rows count, and files may have been unpacked
/// meanwhile.
bool has_size_of(const RecordSource& train, const CheckpointHeader& header, bool loaded);

/// Errors: ConfigError with what differs if the training set, once it is read, has not the content that the
/// checkpoint's run had, but for "data.train" in run.resume_allow. Passes where that is not known.
void refuse_other_content(const Config& config, const RecordSource& train, const Fingerprint& found,
                          const ResumeState& resume);

}  // namespace lockstep
