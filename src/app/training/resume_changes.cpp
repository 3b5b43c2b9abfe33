#include "resume_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/setup/catalogs.h"
#include "app/setup/data_notes.h"
#include "content_check.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/quoted.h"
#include "lockstep/data/folds/held_part.h"
#include "lockstep/distributed/strategies/asynchronous.h"

namespace lockstep {
namespace {

// Whether a run of the one strategy can resume with the other: both keep one set of weights.
bool alike(const Config& before, const Config& now) {
  const auto kind = [](const Config& config) {
    const StrategyEntry& entry = strategy_entry(config.distribute.strategy);
    return entry.weights_per_replica || is_asynchronous(config.distribute) ? entry.name : "";
  };
  return kind(before) == kind(now);
}

// Whether a part of the training samples was or is held back for validation: what the model learns from
// changes with it, as with data.validation_share.
bool holds_back_part(const Config& before, const Config& now) {
  return parse_held_part(before.data.validation) || parse_held_part(now.data.validation);
}

}  // namespace

void refuse_changes(const Config& config, const RecordSource& train, const ResumeState& resume) {
  if (!resume.config) return;
  Config now = config;
  Config before = *resume.config;
  // An older run kept no format that follows from the end of a file's name.
  if (before.data.format.empty()) now.data.format.clear();
  const std::vector<Option> new_options = declare_options(now, known_names());
  const std::vector<Option> old_options = declare_options(before, known_names());
  const std::vector<std::string>& allowed = config.run.resume_allow;
  constexpr std::size_t kMaxValueBytes = 1000;
  std::vector<std::string> changes;
  const auto is_allowed = [&](const std::string& key) {
    return std::ranges::find(allowed, key) != allowed.end();
  };
  for (std::size_t i = 0; i < new_options.size(); ++i) {
    const std::string& key = new_options[i].key;
    const bool divides = key == "data.validation" && holds_back_part(before, now);
    const OnResume rule = divides ? OnResume::kMustStay : new_options[i].on_resume;
    const bool may =
        rule == OnResume::kMayChange || is_allowed(key) || (rule == OnResume::kIfAlike && alike(before, now));
    if (may || new_options[i].text() == old_options[i].text()) continue;
    changes.push_back(fmt::format("{} was {}, is {}", key, excerpt(old_options[i].text(), kMaxValueBytes),
                                  excerpt(new_options[i].text(), kMaxValueBytes)));
  }
  const bool same_size = !resume.checkpoint || has_size_of(train, resume.checkpoint->header(),
                                                           config.data.memory == MemoryMode::kLoad);
  if (!same_size && !is_allowed("data.train")) {
    changes.push_back(
        fmt::format("data.train had {}, has {}", resume.checkpoint->header().data, describe_size(train)));
  }
  if (!changes.empty()) refuse_resume(resume, changes);
}

void refuse_resume(const ResumeState& resume, const std::vector<std::string>& changes) {
  throw ConfigError(fmt::format(
      "the run cannot go on from '{}': it would be another experiment:\n  {}\nChange them back, name "
      "those that you mean in run.resume_allow, begin again with run.resume = \"restart\", or name another "
      "run.dir",
      (resume.checkpoint ? resume.checkpoint->directory() : resume.directory.root).string(),
      fmt::join(changes, "\n  ")));
}

}  // namespace lockstep
