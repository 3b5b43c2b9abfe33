// The search of `trainer help TOPIC` in the guides.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/config/option.h"

namespace lockstep {

/// One of configs/guides, as it was when the program was built.
struct Guide {
  std::string_view name;  ///< "tables"
  std::string_view text;  ///< Markdown
};

std::span<const Guide> guides();

/// Every number that a run writes, with its one definition: the fields of metrics.jsonl and summary.json, and
/// the words of the log for them. They are the tables of the guide on output, each with its mark above it,
/// `<!-- numbers: training -->`, and an empty line below.
std::string number_tables();

/// known_names(), and those of the guides.
KnownNames names_with_guides();

/// The text of a guide for a terminal: without the comments that say how its commands are checked.
std::string guide_page(const Guide& guide);

/// The title of a guide: its first line, without the mark.
std::string_view guide_title(const Guide& guide);

/// The guides that show or name a key of the config.
struct KeyUses {
  std::string example;                  ///< a line of a config; "" if none shows it
  std::vector<std::string_view> names;  ///< guides that name it
};

KeyUses find_uses(std::string_view key);

}  // namespace lockstep
