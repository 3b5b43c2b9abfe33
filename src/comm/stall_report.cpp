#include "stall_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "lockstep/base/json.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxDescribed = 8;  // ranks with all details; of others only the numbers

std::string call_of(const RankStatus& rank) {
  return fmt::format(
      "{}{} of {}", kCallNames[static_cast<std::size_t>(rank.call)],
      rank.call_number > 0 ? fmt::format(" {}", rank.call_number) : "",
      rank.communicator == 0 ? "all ranks" : fmt::format("part {} of the ranks", rank.communicator));
}

// With the stage where it has one: the ranks of other stages call theirs by the same number.
std::string where_it_waits(const RankStatus& rank) {
  const bool names_stage = rank.stage >= 0 && rank.communicator != 0;
  return call_of(rank) + (names_stage ? fmt::format(", on stage {}", rank.stage) : "");
}

using Describe = std::string (*)(const RankStatus& rank);

std::map<std::string, std::vector<int>> by_call(std::span<const RankStatus> ranks, Describe describe) {
  std::map<std::string, std::vector<int>> groups;
  for (const RankStatus& rank : ranks) {
    if (rank.waits()) groups[describe(rank)].push_back(rank.rank);
  }
  return groups;
}

// Why it does not wait with the others.
std::string condition(const RankStatus& rank) {
  if (!rank.known) return "its host does not answer";
  if (!rank.process.empty()) return fmt::format("its process is {}", rank.process);
  if (!rank.answered) return "it does not answer";
  if (rank.call != Call::kNone) return fmt::format("it waits in {}", where_it_waits(rank));
  return fmt::format("it has not got on for {:.1f} s", rank.stuck);
}

std::string last_known(const RankStatus& rank) {
  if (!rank.known) return "";
  std::string text =
      fmt::format("; last seen in phase {}", kPhaseNames[static_cast<std::size_t>(rank.phase)]);
  if (rank.step < 0) return text;
  text += fmt::format(" of step {}", rank.step + 1);
  if (rank.end_sample > rank.first_sample) {
    text += fmt::format(", samples {} to {}", rank.first_sample, rank.end_sample - 1);
  }
  if (rank.phase == Phase::kStageForward || rank.phase == Phase::kStageBackward) {
    return text + fmt::format(", micro-batch {} of stage {}", rank.bucket, rank.stage);
  }
  if (rank.stage >= 0) text += fmt::format(", stage {}", rank.stage);
  return text + (rank.bucket < 0 ? ", no bucket under way" : fmt::format(", bucket {}", rank.bucket));
}

}  // namespace

std::vector<int> missing_ranks(std::span<const RankStatus> ranks) {
  std::vector<int> missing;
  for (const RankStatus& rank : ranks) {
    if (!rank.waits()) missing.push_back(rank.rank);
  }
  const auto groups = by_call(ranks, call_of);
  if (!missing.empty() || groups.size() <= 1) return missing;
  const auto most = std::ranges::max_element(
      groups, [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const auto as_many = std::ranges::count_if(
      groups, [&](const auto& group) { return group.second.size() == most->second.size(); });
  for (const auto& [call, members] : groups) {
    if (as_many > 1 || call != most->first) missing.insert(missing.end(), members.begin(), members.end());
  }
  std::ranges::sort(missing);
  return missing;
}

std::string describe_stall(std::span<const RankStatus> ranks, double waited) {
  const std::vector<int> missing = missing_ranks(ranks);
  std::string text = fmt::format("stall: ranks have waited for {:.1f} s; ", waited);
  if (missing.empty()) {
    text += "all wait in the same call, so messages do not get through: look at the network";
  } else {
    text += fmt::format("{} of {} did not arrive: rank{} {}", missing.size(), ranks.size(),
                        missing.size() == 1 ? "" : "s", fmt::join(missing, ", "));
  }
  for (const int number : std::span(missing).first(std::min(missing.size(), kMaxDescribed))) {
    const RankStatus& rank = *std::ranges::find(ranks, number, &RankStatus::rank);
    text += fmt::format("\n  rank {} (host {}, pid {}): {}{}", rank.rank, rank.host, rank.pid,
                        condition(rank), last_known(rank));
  }
  for (const auto& [call, members] : by_call(ranks, where_it_waits)) {
    text += fmt::format("\n  waiting in {}: rank{} {}", call, members.size() == 1 ? "" : "s",
                        fmt::join(members, ", "));
  }
  return text;
}

std::string to_json(std::span<const RankStatus> ranks) {
  auto json = nlohmann::json::array();
  for (const RankStatus& rank : ranks) {
    json.push_back({{"rank", rank.rank},
                    {"host", rank.host},
                    {"pid", rank.pid},
                    {"answered", rank.answered},
                    {"process", rank.process},
                    {"phase", static_cast<int>(rank.phase)},
                    {"step", rank.step},
                    {"samples", {rank.first_sample, rank.end_sample}},
                    {"bucket", rank.bucket},
                    {"stage", rank.stage},
                    {"call", static_cast<int>(rank.call)},
                    {"call_number", rank.call_number},
                    {"communicator", rank.communicator},
                    {"stuck", rank.stuck}});
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<RankStatus> statuses_from_json(const std::string& text) {
  std::vector<RankStatus> ranks;
  try {
    for (const auto& entry : parse_json<nlohmann::json>(text)) {
      RankStatus rank{.rank = entry.at("rank"), .host = entry.at("host"), .pid = entry.at("pid")};
      rank.known = true;
      rank.answered = entry.at("answered");
      rank.process = entry.at("process");
      const std::size_t phase = entry.at("phase");
      const std::size_t call = entry.at("call");
      rank.phase = static_cast<Phase>(std::min(phase, kPhaseNames.size() - 1));
      rank.step = entry.at("step");
      rank.first_sample = entry.at("samples").at(0);
      rank.end_sample = entry.at("samples").at(1);
      rank.bucket = entry.at("bucket");
      rank.stage = entry.at("stage");
      rank.call = static_cast<Call>(std::min(call, kCallNames.size() - 1));
      rank.call_number = entry.at("call_number");
      rank.communicator = entry.at("communicator");
      rank.stuck = entry.at("stuck");
      ranks.push_back(std::move(rank));
    }
  } catch (const nlohmann::json::exception&) {
    return {};
  } catch (const DataError&) {
    return {};
  }
  return ranks;
}

}  // namespace lockstep
