// CLI11 with our flags. Values stay text here: the options say what is a value, in the same words as for the
// file.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/config/command_line.h"
#include "lockstep/config/option.h"

namespace lockstep {

class FrontEnd {
 public:
  /// With the own flags of all commands. The options must outlive this.
  explicit FrontEnd(std::span<const Option> options);

  /// Errors: ConfigError for a missing value.
  void parse(const std::vector<std::string>& arguments);
  /// Fills the options that no flag has filled, nor an alternative of theirs. Errors: ConfigError.
  void read_file(const ConfigText& file);
  /// Errors: ConfigError naming the first flag that is unknown, or whose value is refused.
  void check_flags() const;
  /// Writes what was filled to the fields, but for `without`, and returns the keys.
  std::set<std::string> assign_all(const std::set<std::string>& without = {}) const;
  /// After read_file: the keys that the command line gives.
  const std::set<std::string>& flagged() const { return flagged_; }

  /// The flag that asks for a text, whatever else was said: "--help", "--help-all" or "--version".
  std::optional<std::string> wanted_text() const;
  /// The first word that is no flag, and those after it.
  std::optional<std::string> command() const;
  std::vector<std::string> operands() const { return app_.remaining(); }
  /// The value of an own flag; "true" if it takes none.
  std::optional<std::string> value(std::string_view own_flag) const;
  /// All values of an own flag that may be given several times, in order.
  std::vector<std::string> values(std::string_view own_flag) const;

 private:
  CLI::Option* add_value_flag(const std::string& names);
  bool loses_to_a_flag(const Option& option) const;
  std::string expectation(std::string_view flag) const;
  std::string describe_unknown_flag(std::string_view flag) const;

  std::span<const Option> options_;
  CLI::App app_;
  CLI::Option* command_ = nullptr;
  CLI::Option* help_ = nullptr;
  CLI::Option* help_all_ = nullptr;
  CLI::Option* version_ = nullptr;
  std::map<std::string, CLI::Option*, std::less<>> own_flags_;
  std::vector<CLI::Option*> flags_;  // one for each of options_, in their order
  std::set<std::string> flagged_;    // keys that the command line gives
};

}  // namespace lockstep
