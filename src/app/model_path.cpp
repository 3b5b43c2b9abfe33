#include "model_path.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/quoted.h"
#include "lockstep/train/storage/checkpoint/directory.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {
namespace {

// The directory in which the run has made checkpoints, wherever that is.
CheckpointDirectory checkpoints_of(const RunDirectory& run) {
  std::error_code ignored;
  if (std::filesystem::exists(run.checkpoints(), ignored)) return CheckpointDirectory(run.checkpoints());
  if (!std::filesystem::exists(run.checkpointed(), ignored)) return CheckpointDirectory(run.checkpoints());
  std::string noted = read_file(run.checkpointed());
  noted.erase(noted.find_last_not_of('\n') + 1);
  return CheckpointDirectory(noted);
}

std::optional<Index> parse_step(std::string_view name) {
  constexpr std::string_view kStep = "step-";
  if (!name.starts_with(kStep)) return std::nullopt;
  const std::string_view digits = name.substr(kStep.size());
  Index step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return step;
}

}  // namespace

std::string find_model(const std::string& text) {
  const std::size_t sign = text.rfind('@');
  std::error_code ignored;
  if (sign == std::string::npos || std::filesystem::exists(text, ignored)) return text;
  const RunDirectory run{text.substr(0, sign)};
  const std::string name = text.substr(sign + 1);
  const CheckpointDirectory checkpoints = checkpoints_of(run);
  std::vector<Index> steps = checkpoints.steps();
  std::optional<Index> wanted = parse_step(name);
  if (name == "best") wanted = checkpoints.best();
  if (name == "last" && !steps.empty()) wanted = steps.front();
  if (wanted && std::ranges::find(steps, *wanted) != steps.end())
    return checkpoints.finished(*wanted).string();
  std::vector<std::string> known;
  if (checkpoints.best()) known.emplace_back("best");
  if (!steps.empty()) known.emplace_back("last");
  std::ranges::reverse(steps);
  for (const Index step : steps) known.push_back(fmt::format("step-{}", step));
  throw ConfigError(fmt::format("--model {}: the run '{}' has no checkpoint {}; {}", in_quotes(text),
                                run.root.string(), in_quotes(name),
                                known.empty()
                                    ? fmt::format("there is none in '{}'", checkpoints.root().string())
                                    : fmt::format("those that it has: {}", fmt::join(known, ", "))));
}

}  // namespace lockstep
