// --model: a run, or one of its checkpoints by a name after '@'.
#pragma once

#include <string>

namespace lockstep {

/// "RUN@best", "RUN@last" or "RUN@step-500" as the directory of that checkpoint; any other text, and the name
/// of something that exists, as it is. Errors: ConfigError if there is no such checkpoint, with those that
/// there are; DataError if the directory cannot be read.
std::string find_model(const std::string& text);

}  // namespace lockstep
