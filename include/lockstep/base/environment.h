// Environment variables are input like any other: they may be missing, empty, garbage, or left over from
// another job.
#pragma once

#include <optional>
#include <string>

#include "lockstep/base/types.h"

namespace lockstep {

/// The value of a variable as it can be shown in a message: bytes that are not printable ASCII are '?', and a
/// long value is cut. None if the variable is not set.
std::optional<std::string> environment_text(const char* name);

/// The value of a variable that holds a whole number from 0 to 1,000,000,000; none if it is not set, or is
/// anything else.
std::optional<Index> environment_number(const char* name);

/// The name of this machine.
std::string host_name();

}  // namespace lockstep
