// Tells the content of a data set from other content of the same size. It depends on neither ranks, threads
// nor paths, nor on how a data set is spread over ranks: it is a sum of hashes, each keyed by a position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"

namespace lockstep {

struct Fingerprint {
  /// kRecords or kFileBlocks; "": nothing is known. Only fingerprints of one kind can be compared.
  std::string kind;
  /// kRecords: features, labels, weights and, if they have any, lengths. kFileBlocks: one for each sampled
  /// file.
  std::vector<std::uint64_t> parts;

  bool operator==(const Fingerprint&) const = default;

  /// All packed records: what training reads, however it is stored.
  static constexpr const char* kRecords = "records";
  /// Some blocks of the files as they are on disk.
  static constexpr const char* kFileBlocks = "blocks of files";
};

/// The share of one rank in a fingerprint of kind kRecords.
class RecordHashes {
 public:
  explicit RecordHashes(const DatasetInfo& info);

  /// Adds a packed record. All ranks together add each record once, in any order.
  void add(Index id, std::span<const std::byte> record);
  /// *Collective.* The fingerprint of what all ranks have added.
  Fingerprint sum(PeerGroup& peers) const;

 private:
  // Features, labels, weights and, if records have any, lengths: bytes in a record, and sums.
  std::vector<std::size_t> bytes_;
  std::vector<std::uint64_t> sums_;
};

/// *Collective.* The fingerprint of kind kFileBlocks of the files of a source: some MiB are read, spread
/// evenly over them with their first and last bytes, each block by one rank. Unknown if the source has no
/// files. Errors, the same on all ranks: DataError.
Fingerprint sample_files(const RecordSource& source, PeerGroup& peers);

/// *Collective.* A text that tells the content of files from other content: of all their bytes, or, as above,
/// of some of their blocks, as the text says. Errors, the same on all ranks: DataError.
std::string hash_files(const std::vector<std::string>& files, bool whole, PeerGroup& peers);

/// The differences, line by line: "the labels of 'x.csv' are not those of the run (fingerprint ..., was
/// ...)". Empty if nothing does, or if the two cannot be compared.
std::vector<std::string> describe_changes(const Fingerprint& before, const Fingerprint& now,
                                          const RecordSource& source);

}  // namespace lockstep
