// The config as TOML, read from a file's text with file and line in every error.
#pragma once

#include <CLI/CLI.hpp>

#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/config/option.h"

namespace lockstep {

/// The TOML library parses and destroys nested tables by recursion, so that a deep text would end the stack.
/// Errors: ConfigError where a key has too many parts (a.b.c has three) or brackets are nested too deep: file
/// and line, what was found, the limit. Text that is no TOML passes: the parser refuses it.
void check_toml_limits(std::string_view text, const std::string& file);

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

}  // namespace lockstep
