// What `trainer --version` says about this build.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

std::vector<std::string> build_facts();

}  // namespace lockstep
