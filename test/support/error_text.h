// The message of the error that some code throws.
#pragma once

#include "support/common.h"

namespace lockstep::test {

/// Runs `action`, which must throw an Expected, and returns the text of the error.
template <class Expected, class Action>
std::string error_text(const Action& action) {
  try {
    action();
  } catch (const Expected& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "an error of another kind: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

/// The text of the error that `action` throws, an Expected, or `none` if it throws nothing.
template <class Expected, class Action>
std::string error_or(const std::string& none, const Action& action) {
  try {
    action();
  } catch (const Expected& error) {
    return error.what();
  }
  return none;
}

/// Expects that each of the parts is somewhere in the text.
inline void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

inline void expect_no_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_EQ(text.find(part), std::string::npos) << "'" << part << "' in: " << text;
}

}  // namespace lockstep::test
