// What the ranks must agree on, and exchanges of small things that are not gradients.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep {

/// *Collective.* Runs `work` on each rank; if it fails with an Error anywhere, every rank throws one and the
/// same: the lowest failing rank's, with its exit code, naming the rank unless all failed alike. So an error
/// that any rank can meet ends all of them in an orderly way. Other exceptions pass through (and abort the
/// job).
void agree(Communicator& comm, const std::function<void()>& work);

/// *Collective.* The texts of all ranks, in order; they may differ in length.
std::vector<std::string> gather_texts(Communicator& comm, const std::string& mine);

/// *Collective.* The root's text, everywhere.
std::string broadcast_text(Communicator& comm, const std::string& text, int root = 0);

}  // namespace lockstep
