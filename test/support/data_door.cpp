#include "support/data_door.h"

#include "lockstep/data/formats/format.h"
#include "support/loaded.h"

namespace lockstep::test {

Texts lines_of(const RecordSource& source, PeerGroup& peers) {
  const RecordNeeds all{.ranks = [&](Index) { return Range{0, peers.size()}; }, .count = source.info().rows};
  const auto records = load_records(source, {}, all, peers);
  Texts lines;
  for (Index id = 0; id < source.info().rows; ++id) {
    const Gathered one = gather(*records, source.info(), {id});
    lines.push_back(fmt::format("{}", fmt::join(one.features, " ")));
    if (!one.targets.empty()) lines.back() += fmt::format(" | {}", fmt::join(one.targets, " "));
  }
  return lines;
}

std::vector<const RecordSource*> Opened::sources() const {
  std::vector<const RecordSource*> all{sets.train.get()};
  if (sets.validation) all.push_back(sets.validation.get());
  if (sets.test) all.push_back(sets.test.get());
  return all;
}

DataOptions DataDoor::chosen() const {
  DataOptions chosen = data;
  chosen.format = choose_format(data).name;
  chosen.text.cache = "tokens";
  return chosen;
}

Opened DataDoor::open(const std::string& known) const {
  const std::set<Split> all{Split::kTrain, Split::kValidation, Split::kTest};
  Opened found{
      .sets = open_sets({.data = chosen(), .wanted = all, .seed = seed, .schema = known, .peers = peers}),
      .schema = {},
      .records = {}};
  const DataSets& sets = found.sets;
  found.schema = sets.train->schema();
  found.records["train"] = lines_of(*sets.train, peers);
  found.records["rejects"] = sets.train->rejects();
  for (const Index id : sets.train->skipped()) found.records["skipped"].push_back(std::to_string(id));
  if (sets.validation) found.records["validation"] = lines_of(*sets.validation, peers);
  if (sets.test) found.records["test"] = lines_of(*sets.test, peers);
  return found;
}

std::unique_ptr<RecordSource> DataDoor::open_input(const std::string& path, const std::string& schema) const {
  return lockstep::open_input(
      {.data = chosen(), .input = path.empty() ? data.train : path, .schema = schema, .peers = peers});
}

}  // namespace lockstep::test
