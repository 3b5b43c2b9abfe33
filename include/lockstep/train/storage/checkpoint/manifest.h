// The description of a checkpoint: how far the run had come, its files with checksums, and where in them each
// part of each array lies. Written last, as manifest.json: a checkpoint with it is whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/data/loading/fingerprint.h"
#include "lockstep/distributed/saved_state.h"
#include "lockstep/optim/schedule.h"

namespace lockstep {

/// Bytes that have a checksum (xxh3, 64 bits) of their own; the last ones of a file may be fewer.
inline constexpr Index kCheckedBytes = Index{4} << 20;

struct CheckpointFile {
  Index bytes = 0;
  std::vector<std::uint64_t> checksums;  ///< checksum of each kCheckedBytes

  bool operator==(const CheckpointFile&) const = default;
};

/// Elements of an array, and where they are.
struct CheckpointBlock {
  Range range;
  std::string file;
  Index offset = 0;  ///< bytes
};

struct CheckpointArray {
  DataType type = DataType::kFloat;
  Index size = 0;                       ///< elements of the whole
  std::vector<CheckpointBlock> blocks;  ///< blocks in order, none over another
};

/// Files and arrays, by name: of one writer, or of all. A file may have several writers: each has a part of
/// it, which begins where a checksum does.
struct CheckpointParts {
  std::map<std::string, CheckpointFile> files;
  std::map<std::string, CheckpointArray> arrays;

  /// Adds the parts of the next writer: its part of a file follows those of the writers before.
  void add(const CheckpointParts& other);
};

/// The progress of the run, and the ranks and strategy that made the checkpoint.
struct CheckpointHeader {
  Progress progress;
  Index metrics_bytes = 0;  ///< length of the run's metrics.jsonl
  bool evaluated = false;   ///< the evaluation that is due after its last step was made before it
  double seconds = 0;       ///< time that steps have taken so far
  Index ranks = 1;
  std::string strategy;
  std::string algorithm;    ///< algorithm that carried the exchange out; may be empty
  std::string data;         ///< a description of the size of the training set
  Fingerprint fingerprint;  ///< fingerprint of the training set's content; unknown if a stream has no files
  std::map<std::string, std::string> versions;     ///< versions of the program and its libraries
  std::vector<std::string> incomplete_files = {};  ///< Observer::incomplete_files()
};

struct CheckpointManifest {
  CheckpointHeader header;
  CheckpointParts parts;
};

std::string to_json(const CheckpointParts& parts);
std::string to_json(const CheckpointManifest& manifest);

/// `name`: of the file, for errors. Errors: DataError if the text is not whole or not possible: names that
/// leave the directory, offsets beyond a file, counts that cannot be.
CheckpointParts parse_parts(const std::string& text, const std::string& name);
CheckpointManifest parse_manifest(const std::string& text, const std::string& name);

// A checkpoint as a resumed run reads it. Nothing of it is believed before its checksum is right, and no
// memory is taken by what it claims.

/// Errors: DataError if there is no such file.
void refuse_missing(const std::filesystem::path& path);

class CheckpointReader {
 public:
  /// Reads the manifest. Errors: CannotOpenError; DataError if it is damaged.
  explicit CheckpointReader(std::filesystem::path directory);

  const std::filesystem::path& directory() const { return directory_; }
  const CheckpointHeader& header() const { return manifest_.header; }
  /// Compares files with their sizes and checksums: each `ranks`-th, from the `rank`-th on. Errors:
  /// CannotOpenError; DataError naming the file and the block.
  void verify(Index ranks, Index rank) const;
  /// Errors: DataError if one of the files is not there.
  void refuse_missing_files() const;
  /// A text file of it; "" if it has none of that name. Errors: DataError.
  std::string text(const std::string& name) const;
  /// Fills the memory of the parts. Errors: DataError if an array is missing, or not as large or of the type
  /// that is expected; optional parts are left as they are then. Gives the optional arrays that were not
  /// found.
  std::vector<std::string> fill(const SavedState& state) const;

 private:
  std::filesystem::path directory_;
  CheckpointManifest manifest_;
};

}  // namespace lockstep
