// The config as TOML: read from a file's text with file and line in every error, and written out resolved.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iosfwd>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lockstep/config/option.h"

namespace lockstep {

/// TOML for CLI11, which then treats a key of the file like a flag that was not given.
class TomlFormat final : public CLI::Config {
 public:
  /// `file`: its name in errors. The options must outlive this.
  TomlFormat(std::span<const Option> options, std::string file) : options_(options), file_(std::move(file)) {}

  /// One item for each key, named as in Option::key, whose value the option accepts.
  /// Errors: ConfigError with one line "FILE:LINE: ..." for each thing that is wrong, in the order of lines.
  std::vector<CLI::ConfigItem> from_config(std::istream& in) const override;

  /// The resolved dump of the options; CLI11's arguments change nothing.
  std::string to_config(const CLI::App* app, bool default_also, bool write_description,
                        std::string prefix) const override;

 private:
  std::span<const Option> options_;
  std::string file_;
};

/// Every option with its value, section by section; what is not given, and the keys in `without_effect`, as
/// comments. Read again it gives the same Config.
std::string to_toml(const Config& config, const std::set<std::string>& without_effect = {});

/// Equal for equal configs only: the hash of to_toml(config).
std::uint64_t config_hash(const Config& config);

/// The option's value as TOML: "text" in quotes, [0.1, 0.2] in brackets.
std::string toml_value(const Option& option);
/// Another value, which is written as `assign` takes it.
std::string toml_value(const Option& option, const std::string& text);

/// `text` as a TOML string, in quotes, control characters escaped.
std::string toml_string(std::string_view text);

}  // namespace lockstep
