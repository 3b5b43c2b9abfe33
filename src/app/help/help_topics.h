// The search of `trainer help TOPIC` in the guides.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/table.h"
#include "lockstep/config/option.h"

namespace lockstep {

/// One of configs/guides, as it was when the program was built.
struct Guide {
  std::string_view name;  ///< "tables"
  std::string_view text;  ///< Markdown
};

std::span<const Guide> guides();

/// known_names(), and those of the guides.
KnownNames names_with_guides();

/// The text of a guide, or of a part of it, for a terminal: without the comments that say how its commands
/// are checked.
std::string guide_page(std::string_view text);

/// A part of a guide: from a heading to the next one. A comment below the heading may name what it answers:
/// `<!-- help: overfitting, regularisation -->`.
struct GuideSection {
  std::string_view guide;    ///< its name
  std::string_view heading;  ///< without its mark
  std::string_view text;     ///< with the heading
  int score = 0;             ///< how well it answers; see kNamed
};

/// From this score on a heading, or the comment below it, has the words.
inline constexpr int kNamed = 1000;

/// The sections that have the words, the best first: those whose comment names them, whose heading has them,
/// whose text has them often. Case, '_' and '-' do not matter, and a word may be the beginning of a longer
/// one.
std::vector<GuideSection> find_sections(std::string_view words);

/// A catalog as a table: the heads, and a row for each entry, whose first cell is its name in backticks,
/// perhaps with arguments behind it.
struct CatalogTable {
  std::string title;  ///< "Losses (`train.loss`)"
  std::vector<Cells> rows;
};

/// All that a config can name: layers, presets, losses and so on, and what cannot be combined.
std::vector<CatalogTable> catalog_tables();

}  // namespace lockstep
