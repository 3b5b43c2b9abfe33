// The flags of predict.
#pragma once

#include "front_end.h"

namespace lockstep {

/// Errors: ConfigError naming the flag, and what was expected.
PredictRequest parse_predict(const FrontEnd& front);

}  // namespace lockstep
