// Configs given as the text of a file.
#pragma once

#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/config/command_line.h"
#include "support/common.h"
#include "support/error_text.h"
#include "support/known_names.h"

namespace lockstep::test {

/// Errors: ConfigError that names the file run.toml.
inline Config load(const std::string& text) {
  return load_config({}, {"run.toml", text}, options());
}

/// A config with these values of keys of [train], by their names in the section.
inline Config train_config(const nlohmann::json& given) {
  const auto text_of = [](const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  Config config;
  for (const auto& [name, value] : given.items()) {
    std::string text;
    for (const nlohmann::json& each : value.is_array() ? value : nlohmann::json::array({value}))
      text += (text.empty() ? "" : ",") + text_of(each);
    find_option(options(), "train." + name)->assign(config, text);
  }
  return config;
}

/// What load() says of the text; "no error" if it takes it.
inline std::string error_of(const std::string& text) {
  return error_or<ConfigError>("no error", [&] { load(text); });
}

}  // namespace lockstep::test
