// The one door through which tests of case files open data: as a run, an inspection or a prediction does.
// Whoever gives data another face changes it here.
#pragma once

#include "lockstep/data/kinds/kind.h"
#include "support/common.h"

namespace lockstep::test {

using Texts = std::vector<std::string>;

/// The data sets of a config, and the records of each as lines: the features, a bar, and the targets with
/// what is behind them.
struct Opened {
  DataSets sets;
  std::string schema;
  /// By "train", "validation", "test"; "rejects" and "skipped" of the training set are what is left out
  /// there.
  std::map<std::string, Texts> records;

  /// The sets that there are.
  std::vector<const RecordSource*> sources() const;
};

/// *Collective.* Loads all records; on each rank all of them.
Texts lines_of(const RecordSource& source, PeerGroup& peers);

struct DataDoor {
  DataOptions data;  ///< as the config gives them
  std::uint64_t seed = 1;
  PeerGroup& peers;

  /// *Collective.* As a run opens them. `known`: the schema; "": it is learnt.
  Opened open(const std::string& known = "") const;
  /// A file to predict from; "": the training data.
  std::unique_ptr<RecordSource> open_input(const std::string& path, const std::string& schema) const;

 private:
  DataOptions chosen() const;
};

}  // namespace lockstep::test
