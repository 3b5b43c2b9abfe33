#include "sweep_description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "app/setup/catalogs.h"
#include "app/setup/startup.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/comm/agree.h"
#include "lockstep/config/toml.h"
#include "lockstep/data/loading/fingerprint.h"
#include "lockstep/train/rank_peer_group.h"

namespace lockstep {
namespace {

using Trials = std::vector<std::vector<Setting>>;
using Flags = std::vector<std::string>;

constexpr std::string_view kMark = "# ";
constexpr std::string_view kGrown = "grown to";

struct Description {
  std::vector<Flags> trials{{}};  // the flags that tell trials apart, each time that there were more
  Flags others;                   // these stay
  std::string config;
};

Flags flags_of_trials(const SweepRequest& request) {
  Flags flags;
  for (const std::string& grid : request.grids) flags.push_back("--grid " + grid);
  for (const std::string& random : request.randoms) flags.push_back("--random " + random);
  if (request.draws > 0) flags.push_back(fmt::format("--trials {}", request.draws));
  return flags;
}

Flags other_flags(const SweepRequest& request) {
  Flags flags;
  if (request.halving > 0) flags.push_back(fmt::format("--halving {}", request.halving));
  if (request.folds.folds > 0) {
    flags.push_back(fmt::format("--folds {}: {}", request.folds.folds, to_string(request.folds)));
  }
  flags.push_back(fmt::format("--ranks-per-trial {}", request.ranks_per_trial));
  return flags;
}

// The request that had these flags.
SweepRequest with_flags(SweepRequest request, const Flags& flags) {
  request.grids.clear();
  request.randoms.clear();
  for (const std::string& flag : flags) {
    const std::string value = flag.substr(flag.find(' ') + 1);
    if (flag.starts_with("--grid ")) request.grids.push_back(value);
    if (flag.starts_with("--random ")) request.randoms.push_back(value);
    if (flag.starts_with("--trials ")) request.draws = ValueType<Index>::parse(value).value_or(0);
  }
  return request;
}

Description parse(const std::string& text) {
  Description found;
  std::istringstream in(text);
  std::string line;
  while (std::getline(in, line) && line.starts_with(kMark)) {
    line.erase(0, kMark.size());
    if (line == kGrown) found.trials.emplace_back();
    const bool of_trials =
        line.starts_with("--grid ") || line.starts_with("--random ") || line.starts_with("--trials ");
    if (line.starts_with("--")) (of_trials ? found.trials.back() : found.others).push_back(line);
  }
  found.config.assign(std::istreambuf_iterator<char>(in), {});
  return found;
}

std::string to_text(const Description& description) {
  std::string text = "# A sweep: what its trials have in common, and the flags that tell them apart.\n";
  const auto add = [&](const Flags& flags) {
    for (const std::string& flag : flags) text += fmt::format("{}{}\n", kMark, flag);
  };
  add(description.trials.front());
  add(description.others);
  for (std::size_t i = 1; i < description.trials.size(); ++i) {
    text += fmt::format("{}{}\n", kMark, kGrown);
    add(description.trials[i]);
  }
  return text + "\n" + description.config;
}

// Without what decides only how the runs are carried out, and may change from start to start.
Config config_in_common(Config config) {
  const Index seed = config.run.seed;
  config.run = {};
  config.run.seed = seed;
  config.checkpoint = {};
  config.comm = {};
  config.debug = {};
  return config;
}

[[noreturn]] void refuse(const std::string& before, const std::string& now) {
  throw ConfigError("it had '{}', and now there is '{}'; name another run.dir, or give what it had", before,
                    now);
}

void refuse_other_flags(const Flags& before, const Flags& now) {
  for (std::size_t i = 0; i < std::max(before.size(), now.size()); ++i) {
    const std::string old_flag = i < before.size() ? before[i] : "";
    const std::string new_flag = i < now.size() ? now[i] : "";
    if (old_flag != new_flag) refuse(old_flag, new_flag);
  }
}

// Puts those of `further` that are new behind the others; nothing if these have other keys, or if some of
// them are not among those.
std::optional<Trials> grown(Trials trials, const Trials& further) {
  std::multiset<std::string> known;
  for (const auto& trial : trials) known.insert(describe_settings(trial));
  for (std::vector<Setting> trial : further) {
    std::ranges::sort(trial, {}, [&](const Setting& setting) {
      return std::ranges::find(trials.front(), setting.key, &Setting::key);
    });
    const auto found = known.find(describe_settings(trial));
    if (found == known.end()) {
      trials.push_back(std::move(trial));
    } else {
      known.erase(found);
    }
  }
  return known.empty() ? std::optional(std::move(trials)) : std::nullopt;
}

Trials trials_of(const Description& description, const SweepRequest& request, const Config& base,
                 const ListTrials& list) {
  Trials trials = list(base, with_flags(request, description.trials.front()));
  for (std::size_t i = 1; i < description.trials.size(); ++i) {
    const Trials further = list(base, with_flags(request, description.trials[i]));
    trials = grown(trials, further).value_or(trials);
  }
  return trials;
}

// data.json

using Json = nlohmann::ordered_json;

// A data set in more files is looked at when a trial opens it.
constexpr std::size_t kMaxListed = 1000;

// "all bytes 0123456789abcdef": what it is the hash of.
std::string scope_of(const std::string& hash) {
  return hash.substr(0, hash.rfind(' '));
}

// Two hashes cannot be compared if one start streams what another loads.
std::string describe_change(const Json& known, const std::string& now) {
  const std::string before = known.at("hash");
  if (before == now || scope_of(before) != scope_of(now)) return "";
  return fmt::format(
      "the {} data have changed since {}: '{}' has another content (hash of {}, was {}); trials on other "
      "data "
      "cannot be compared: bring the data back, or name another run.dir",
      known.at("set").get<std::string>(), known.at("since").get<std::string>(),
      known.at("name").get<std::string>(), now, before);
}

// *Collective.* Reads the file on rank 0.
Json read_list(Communicator& comm, const std::filesystem::path& file) {
  const std::string text = read_together(comm, file);
  Json json = Json::array();
  agree(comm, [&] {
    try {
      if (!text.empty()) json = parse_json<Json>(text);
    } catch (const DataError& error) {
      throw DataError("'{}' is damaged: {}", file.string(), error.what());
    }
  });
  return json;
}

}  // namespace

std::string describe_settings(std::span<const Setting> settings) {
  std::vector<std::string> words;
  for (const Setting& setting : settings) words.push_back(fmt::format("{} {}", setting.key, setting.value));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string describe_sweep(const std::string& before, const SweepRequest& request, const Config& base,
                           const ListTrials& list) {
  const Flags flags = flags_of_trials(request);
  const Config common = config_in_common(base);
  if (before.empty()) {
    return to_text(
        {.trials = {flags}, .others = other_flags(request), .config = to_toml(common, known_options())});
  }
  Description known = parse(before);
  refuse_other_flags(known.others, other_flags(request));
  const Config had = load_config({}, {.file = "sweep.toml", .text = known.config}, known_options());
  for (const auto& [option, old_text, new_text] : find_differences(had, common, known_options())) {
    refuse(fmt::format("{} = {}", option.key, old_text), fmt::format("{} = {}", option.key, new_text));
  }
  if (known.trials.back() == flags) return before;
  const Trials trials = trials_of(known, request, base, list);
  const std::optional<Trials> all = grown(trials, list(base, request));
  if (!all) refuse_other_flags(known.trials.back(), flags);
  if (all->size() == trials.size()) return before;
  error_if(request.halving > 0,
           "it has --halving, whose rungs follow from the number of trials, so that it cannot grow; name "
           "another run.dir");
  known.trials.push_back(flags);
  return to_text(known);
}

std::vector<std::vector<Setting>> described_trials(const std::string& text, const SweepRequest& request,
                                                   const Config& base, const ListTrials& list) {
  return trials_of(parse(text), request, base, list);
}

std::string find_changed_data(Communicator& comm, const std::filesystem::path& file) {
  RankPeerGroup peers(comm);
  for (const Json& known : read_list(comm, file)) {
    const auto files = known.value("files", std::vector<std::string>{});
    const bool there = std::ranges::all_of(files, [](const std::string& each) { return is_there(each); });
    if (files.empty() || !all_true(comm, there)) continue;
    const bool whole = scope_of(known.at("hash")) == "all bytes";
    const std::string change = describe_change(known, hash_files(files, whole, peers));
    if (!change.empty()) return change;
  }
  return "";
}

std::string note_data(Communicator& comm, const std::filesystem::path& file, const std::vector<RunData>& data,
                      const std::string& trial) {
  RankPeerGroup peers(comm);
  Json all = read_list(comm, file);
  const std::size_t before = all.size();
  std::string change;
  for (const RunData& set : data) {
    if (set.files.empty()) continue;
    const std::string hash = hash_files(set.files, set.whole, peers);
    const auto known = std::ranges::find_if(
        all, [&](const Json& other) { return other["set"] == set.kind && other["name"] == set.name; });
    if (known != all.end() && change.empty()) change = describe_change(*known, hash);
    if (known != all.end()) continue;
    all.push_back({{"set", set.kind}, {"name", set.name}, {"hash", hash}, {"since", trial}});
    if (set.files.size() <= kMaxListed) all.back()["files"] = set.files;
  }
  agree_on_first(comm, [&] {
    if (change.empty() && all.size() > before) write_file_atomically(file, indented(all));
  });
  return change;
}

}  // namespace lockstep
