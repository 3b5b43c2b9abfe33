// The flags of single commands: from the texts that were given to what they ask for. Errors are ConfigErrors
// that name the flag, and say what was expected.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "front_end.h"
#include "lockstep/config/command_line.h"

namespace lockstep {

/// --np of plan; one rank if it is not given.
std::vector<Index> parse_world_sizes(const FrontEnd& front);
/// The machines of plan: none without --nodes.
PlannedNodes parse_planned_nodes(const FrontEnd& front, std::string_view command,
                                 const std::string& config_file);
/// For sweep and cv.
SweepRequest parse_sweep(const FrontEnd& front, std::string_view command);
PredictRequest parse_predict(const FrontEnd& front);
/// For importance: sets its fields of `line`.
void parse_importance(const FrontEnd& front, CommandLine& line);

/// "500ns", "2us", "0.1ms", "1s": seconds, not negative; none for anything else.
std::optional<double> parse_seconds(std::string_view text);

/// "25Gbit", "100Mbit" (per second), "1.5GB", "300MB" ("/s" may follow): bytes per second, above 0; none for
/// anything else.
std::optional<double> parse_bandwidth(std::string_view text);

}  // namespace lockstep
