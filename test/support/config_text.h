// Configs given as the text of a file.
#pragma once

#include <string>

#include "lockstep/base/errors.h"
#include "lockstep/config/command_line.h"
#include "support/known_names.h"

namespace lockstep::test {

/// Errors: ConfigError that names the file run.toml.
inline Config load(const std::string& text) {
  return load_config({}, {"run.toml", text}, options());
}

/// What load() says of the text; "no error" if it takes it.
inline std::string error_of(const std::string& text) {
  try {
    load(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace lockstep::test
