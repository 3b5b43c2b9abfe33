// A checkpoint as a resumed run reads it. Nothing of it is believed before its checksum is right, and no
// memory is taken by what it claims.
#pragma once

#include <filesystem>

#include "lockstep/distributed/saved_state.h"
#include "lockstep/train/storage/checkpoint/manifest.h"

namespace lockstep {

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
