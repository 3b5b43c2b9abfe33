#include "model_path.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "lockstep/base/errors.h"
#include "lockstep/base/quoted.h"
#include "lockstep/train/storage/checkpoint/directory.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {

std::string find_model(const std::string& text) {
  const std::size_t sign = text.rfind('@');
  std::error_code ignored;
  if (sign == std::string::npos || std::filesystem::exists(text, ignored)) return text;
  const RunDirectory run{text.substr(0, sign)};
  const std::string name = text.substr(sign + 1);
  std::filesystem::path directory = run.checkpoints();
  if (!std::filesystem::exists(directory, ignored)) directory = run.noted_checkpoints().value_or(directory);
  const CheckpointDirectory checkpoints(directory);
  std::vector<Index> steps = checkpoints.steps();
  std::optional<Index> wanted = step_of(name);
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
