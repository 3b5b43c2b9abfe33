// Quantities with a unit, as people write them on a command line.
#pragma once

#include <optional>
#include <string_view>

namespace lockstep {

/// "500ns", "2us", "0.1ms", "1s": seconds, not negative; none for anything else.
std::optional<double> parse_seconds(std::string_view text);

/// "25Gbit", "100Mbit" (per second), "1.5GB", "300MB" ("/s" may follow): bytes per second, above 0; none for
/// anything else.
std::optional<double> parse_bandwidth(std::string_view text);

}  // namespace lockstep
