// The catalog of kinds of data. A kind says what a record is: a row of a table or of an array, a window of
// time, a window of a text; and so how the sets of a config are opened, and what is asked of the config.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/refusal_name.h"
#include "lockstep/data/options.h"
#include "lockstep/data/parts/validation_split.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"

namespace lockstep {

/// The sets to open: those that are `wanted`, and what it takes to know them.
struct SetsRequest {
  const DataOptions& data;  ///< with the format that was chosen
  std::set<Split> wanted;
  std::uint64_t seed = 1;
  std::string schema = {};  ///< of a model; "": it is learnt
  PeerGroup& peers;
};

/// A file to predict from.
struct InputRequest {
  const DataOptions& data;  ///< of the training
  std::string input;
  std::string schema;        ///< of the model
  std::string lengths = {};  ///< the file of the lengths of sequences; "": all positions count
  PeerGroup& peers;
};

/// Keys that cannot be used together, by the name of the refusal.
struct KindRefusal {
  bool applies;
  RefusalName name;
};

struct DataKind {
  std::string name;
  /// Whether data of this config, whose format was chosen, are of the kind.
  bool (*is_of)(const DataOptions&);
  bool has_tokens = false;    ///< its numbers are tokens
  bool forecasts = false;     ///< a record is a past, its targets are the numbers behind it
  std::string no_folds = {};  ///< why trainer cv cannot divide its records; "": it can
  std::vector<KindRefusal> (*refusals)(const DataOptions&) = nullptr;
  /// *Collective.* Errors, the same on all ranks: ConfigError, DataError.
  DataSets (*open)(const SetsRequest&);
  /// *Collective.* The records to predict, without targets. Errors as above.
  std::unique_ptr<RecordSource> (*open_input)(const InputRequest&);
};

/// Every kind of data there is; the first one that data are of is theirs. To add one: src/README.md.
std::span<const DataKind> data_kinds();
const DataKind& kind_of(const DataOptions& data);
/// As kind_of() where the format may be left to the names of files. Errors: as choose_format().
const DataKind& kind_of_files(DataOptions data);

/// *Collective.* The sets of a config, opened by its kind.
DataSets open_sets(const SetsRequest& request);
std::unique_ptr<RecordSource> open_input(const InputRequest& request);

}  // namespace lockstep
