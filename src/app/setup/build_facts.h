// The facts about this build that `trainer --version` prints.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

std::vector<std::string> build_facts();

}  // namespace lockstep
