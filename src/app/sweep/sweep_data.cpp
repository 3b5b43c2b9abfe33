#include <fmt/format.h>

#include <algorithm>

#include "app/setup/startup.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/loading/fingerprint.h"
#include "lockstep/train/rank_peer_group.h"
#include "sweep_description.h"

namespace lockstep {
namespace {

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
  agree(comm, [&] {
    if (comm.rank() == 0 && change.empty() && all.size() > before) {
      write_file_atomically(file, indented(all));
    }
  });
  return change;
}

}  // namespace lockstep
