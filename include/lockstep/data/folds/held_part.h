// A part of the training samples that data.validation names in place of a file: "stratified(0.1)".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/data/folds/folds.h"

namespace lockstep {

/// Which samples are held back for validation.
struct HeldPart {
  enum class By { kClass, kTime, kGroup };

  By by = By::kClass;
  std::string column = {};  ///< of a table, that kTime and kGroup read
  double share = 0;         ///< of the samples, in (0, 1)
  std::string text = {};    ///< as the user wrote it, for messages
};

/// "stratified(0.1)", "time(date, 0.1)" or "group(customer, 0.1)"; nothing if `text` names a file.
/// Errors: ConfigError for such a word with other arguments.
std::optional<HeldPart> parse_held_part(std::string_view text);

struct HeldAssignment {
  std::shared_ptr<const FoldAssignment> folds;  ///< fold 1 is the part; the other records are trained on
  std::string note;                             ///< how many records, classes or groups are in each
};

/// *Collective.* Divides the records of `whole`, the training set without anything held back. Errors, the
/// same on all ranks: ConfigError if these records cannot be divided so; DataError.
HeldAssignment assign_held_part(const HeldPart& part, const DataOptions& data, std::uint64_t seed,
                                const RecordSource& whole, PeerGroup& peers);

}  // namespace lockstep
