// The order of the classes of a label. Of two, the second is the positive one: its probability is that of
// yes, and precision, recall, F1 and average precision are about it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/table/values/column_stats.h"

namespace lockstep {

/// The classes in order: by size if all are numbers, else by their letters; of two, the positive one last.
/// That is `positive` or, where it is "", the one whose name means yes where only one does; else the one with
/// less than 0.4 of the records; else the later one. `label` names the label in messages. Errors: ConfigError
/// for a `positive` that is no class, or where there are not two.
std::vector<std::string> ordered_classes(std::span<const ValueCounts::Entry> classes,
                                         const std::string& positive, std::string_view label);

}  // namespace lockstep
