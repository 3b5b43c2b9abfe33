// A data set, opened: a list of chunks of consecutive records. In memory a record is a *packed record*, a
// string of bytes whose length is the same for all and whose meaning only its format knows, but for its end:
// the targets, and then the weight, as label_columns() scalars. So records are read, sent to other ranks,
// shared and cached by the same few lines whatever the format.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/base/types.h"
#include "lockstep/data/dataset.h"
#include "lockstep/math/matrix.h"

namespace lockstep {

struct Fingerprint;
struct TableText;
class Vocabulary;
class WindowSource;

/// A remark on the data for the user.
struct Note {
  std::string text;  ///< line by line
  /// Its figures for programs, under the name of what they are about: {"bad": {"records": 3, "of":
  /// 300}}.
  nlohmann::ordered_json figures = nullptr;
};

/// Consecutive records that are read together. The borders depend on the files and the config, never on
/// ranks.
struct Chunk {
  Range records;
  /// Can be reached only by going through the chunk before it, as in a compressed file: one reader should
  /// read both, in order.
  bool follows_on = false;
  /// Number of the file that it is in; where features and labels are files of their own, of the pair.
  Index file = 0;
};

/// The number of a record in the files, from 0 on, where those at the positions `skipped` were left out.
inline Index position_among(std::span<const Index> skipped, Index id) {
  for (const Index left_out : skipped) id += left_out <= id ? 1 : 0;
  return id;
}

/// Reads the chunks of a data set, any of them in any order; fastest in their own. Keeps files open, so one
/// thread alone uses it.
class ChunkReader {
 public:
  virtual ~ChunkReader() = default;

  /// Packs the records of the chunk, in order, one after the other into `packed` (as many as it has, of
  /// record_bytes each). Errors: DataError with file, record or line, expected, found.
  virtual void read(Index chunk, std::span<std::byte> packed) = 0;
};

/// Reads nothing: the records are computed from their ids.
class ComputedReader final : public ChunkReader {
 public:
  void read(Index, std::span<std::byte>) override {}
};

/// Immutable, so safe from several threads. Must outlive its readers and the records that were read.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  virtual const DatasetInfo& info() const { return info_; }

  /// They cover [0, rows) in order.
  virtual std::span<const Chunk> chunks() const { return chunks_; }

  /// The rules that turn the files into features, learnt from the training data: saved with the model, and
  /// given to whoever opens other data for it. "" for formats that learn nothing. The text is made anew by
  /// each call.
  virtual std::string schema() const { return ""; }
  /// That of a text, whose schema() is made of it; null for other data.
  virtual std::shared_ptr<const Vocabulary> vocabulary() const { return nullptr; }
  virtual std::vector<Note> notes() const { return {}; }
  /// Values that may have been misread, for a warning, line by line.
  virtual std::vector<std::string> doubts() const { return {}; }
  /// Records that were left out because they are bad, a hundred at most: position, found and expected of
  /// each.
  virtual std::vector<std::string> rejects() const { return {}; }
  /// The length of each record, where info().has_lengths, else none. Errors: DataError.
  virtual std::vector<Scalar> lengths() const { return {}; }
  /// Positions of all records that were left out: their numbers, as if they had been counted with the others
  /// from 0 on; ascending.
  virtual std::span<const Index> skipped() const { return {}; }
  /// The number of a record in the files, from 0 on, those that were left out counted with the others.
  virtual Index position(Index id) const { return position_among(skipped(), id); }
  /// That of records which are computed from what was read when the source was opened; else null.
  virtual const Fingerprint* fingerprint() const { return nullptr; }
  /// The table that its records are those of, one for one; else null.
  virtual const TableText* table() const { return nullptr; }
  /// This source, if its records are windows of time (time_windows.h).
  virtual const WindowSource* as_windows() const { return nullptr; }
  /// Paths of the files on disk, each once, in order; empty for data that are computed.
  virtual std::vector<std::string> files() const { return {}; }
  /// The path of the file that holds the features of a chunk; "" for data that are computed.
  virtual std::string file_of(const Chunk& chunk) const {
    const std::vector<std::string> all = files();
    return chunk.file < std::ssize(all) ? at(all, chunk.file) : "";
  }

  /// A reader of records whose targets obey the rule. Errors: DataError.
  virtual std::unique_ptr<ChunkReader> reader(const TargetRule& rule) const = 0;

  /// The chunks that each of so many ranks reads where all are read together: share_chunks().
  virtual std::vector<Range> shares(Index ranks) const;
  /// A reader for someone who reads each chunk of a share once.
  virtual std::unique_ptr<ChunkReader> reader_of_share(const TargetRule& rule) const { return reader(rule); }

  /// Writes the features and targets of the records `ids`, which are held packed at `records` (no pointers
  /// if record_bytes is 0), to the first rows of x and `targets`, as Records::gather does.
  virtual void unpack(std::span<const Index> ids, std::span<const std::byte* const> records, Matrix& x,
                      Matrix& targets) const = 0;

 protected:
  DatasetInfo info_;
  std::vector<Chunk> chunks_;
};

}  // namespace lockstep
