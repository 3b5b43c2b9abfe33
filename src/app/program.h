// The program behind main(): parses the command line, then hands over to a command.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/comm/session.h"

namespace lockstep {

/// Runs a body as run_session() does.
using Session = std::function<int(const std::function<int(Communicator&)>& body, ThreadLevel level)>;

/// Runs `trainer ARGUMENTS` to its end. Returns the exit code of the process.
int run_program(const std::vector<std::string>& arguments, const Session& session = run_session);

}  // namespace lockstep
