#include "support/data_door.h"

#include "lockstep/data/format.h"
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

DataOptions DataDoor::of_files() const {
  DataOptions chosen = data;
  chosen.format = choose_format(data).name;
  chosen = data_of_files(chosen, parts_beside_files(data));
  chosen.text.cache = "tokens";
  return chosen;
}

OpenTable DataDoor::open_table(const DataOptions& opened) const {
  return [&, this](Split split, const std::string& schema, const HoldOut& held) {
    return choose_format(opened).open({opened, split, seed, peers, schema, held});
  };
}

DataSets DataDoor::open_sets(const std::string& known) const {
  const std::set<Split> all{Split::kTrain, Split::kValidation, Split::kTest};
  const DataParts parts = parts_beside_files(data);
  const DataOptions opened = of_files();
  const OpenTable table = open_table(opened);
  if (opened.reads_tokens()) return open_texts(opened, parts, all, known, peers);
  if (opened.has_time_windows()) return open_windows(opened, parts, seed, all, known, table, peers);
  HoldOut held;
  const auto open_whole = [&] { return table(Split::kTrain, known, {}); };
  if (parts.any()) held = hold_out(parts, opened, seed, open_whole, peers);
  DataSets sets{.train = table(Split::kTrain, known, held)};
  const std::string schema = sets.train->schema();
  sets.validation = table(Split::kValidation, schema, held);
  sets.test = table(Split::kTest, schema, held);
  if (!held.any()) return sets;
  DataSets parted = split_validation(std::move(sets.train), held);
  if (!parted.validation) parted.validation = std::move(sets.validation);
  if (!parted.test) parted.test = std::move(sets.test);
  return parted;
}

Opened DataDoor::open(const std::string& known) const {
  Opened found{.sets = open_sets(known), .schema = {}, .records = {}};
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
  const DataOptions opened = of_files();
  if (opened.reads_tokens()) return open_input_text(opened, path, schema, peers);
  return format_of_input(path, opened)
      .open({.options = opened, .seed = seed, .peers = peers, .schema = schema, .input = path});
}

std::unique_ptr<RecordSource> DataDoor::open_last(const std::string& path, const std::string& schema) const {
  DataOptions opened = data_of_files(of_files());
  if (!path.empty()) opened.train = path;
  return open_last_windows(opened, schema, open_table(opened), peers);
}

}  // namespace lockstep::test
