// The replicas whose samples batch norm takes together when the batch is divided over replicas.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/types.h"

namespace lockstep {

/// Two questions have one answer each in every mode: with whom a replica is normalised, and whose moments go
/// into its running moments. Replicas of one such scope hold the same running moments.
///
///              normalised with     running moments of
///   local      itself              itself
///   averaged   itself              all replicas
///   sync       all replicas        all replicas
///   group(G)   its group           its group           (groups of G neighbours; the last may be smaller)
struct BatchNormMode {
  enum class Kind { kLocal, kAveraged, kSync, kGroup };

  Kind kind = Kind::kLocal;
  Index group = 1;

  /// The replicas over which the statistics of `replica` are taken.
  Range normalised_with(Index replica, Index replicas) const;
  /// The replicas whose statistics its running moments follow.
  Range moments_with(Index replica, Index replicas) const;

  bool operator==(const BatchNormMode&) const = default;
};

/// "local", "averaged", "sync", "group(4)". Errors: ConfigError naming these.
BatchNormMode parse_batch_norm_mode(std::string_view text);
std::string to_string(const BatchNormMode& mode);

}  // namespace lockstep
