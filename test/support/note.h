// Whether the text of a note on the data says its figures.
#pragma once

#include "lockstep/base/text.h"
#include "lockstep/data/record_source.h"
#include "support/common.h"

namespace lockstep::test {

/// All figures above 1 and all texts; a count of 0 or 1 need not be said.
inline void expect_told(const Note& note) {
  ASSERT_TRUE(note.figures.is_object()) << note.text;
  const nlohmann::ordered_json figures = note.figures.flatten();
  for (const auto& [name, value] : figures.items()) {
    if (value.is_number() && value.get<double>() <= 1) continue;
    const std::string told = value.is_string()           ? value.get<std::string>()
                             : value.is_number_integer() ? with_commas(value.get<Index>())
                                                         : fmt::format("{:.4g}", value.get<double>());
    EXPECT_NE(note.text.find(told), std::string::npos) << name << ": no '" << told << "' in: " << note.text;
  }
}

}  // namespace lockstep::test
