// A file of records of one size, from some offset to its end, as a rule one after the other: what most binary
// formats come to, once their headers are read. It may be packed with gzip.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/inputs/byte_stream.h"
#include "lockstep/data/record_source.h"

namespace lockstep {

struct RecordFile {
  std::string path;
  Index offset = 0;  ///< bytes before the first record
  Index records = 0;
  Index record_bytes = 0;
  Index file_bytes = 0;  ///< size on disk
  bool compressed = false;
  /// In Fortran order all first elements of the records lie one after the other, then all of another element
  /// and so on: the positions of these elements in a record. Empty: record after record.
  std::vector<Index> fortran_order = {};

  /// Before any memory is taken: a raw file shows its size, a gzip file an upper bound of it.
  /// Errors: DataError if the file is too short, or seen to be too long.
  void check_size(const ByteStream& stream) const;

  [[noreturn]] void fail_truncated(Index bytes_found, const std::string& note) const;
  [[noreturn]] void fail_surplus(const std::string& found) const;
};

/// Reads records anywhere in a file; in a compressed one, forwards is fast.
class RecordFileReader {
 public:
  /// `file` must outlive the reader. Errors: DataError if it cannot be opened.
  explicit RecordFileReader(const RecordFile& file);

  /// The bytes of consecutive records; valid until the next call.
  /// Errors: DataError if the file ends too early or, where these are its last records, too late, or is
  /// damaged.
  std::span<const std::byte> read(Range records);

 private:
  void check_end();
  void read_fortran_order(Range records);

  const RecordFile& file_;
  ByteStream stream_;
  std::vector<std::byte> buffer_;
  std::vector<std::byte> run_;  // bytes of one element of several records
};

// Opening the files of a data set whose sizes stand in their headers, or follow from their sizes.

/// A path, "" where there is none, and the config key, or the flag, that names it.
struct NamedFile {
  std::string path = {};
  std::string key = {};
};

/// One file of records, and the files of its labels, weights and lengths.
struct FileGroup {
  NamedFile records = {};
  NamedFile labels = {};
  NamedFile weights = {};
  NamedFile lengths = {};
  RecordShape record = RecordShape::kAuto;
  bool numbers = false;                ///< see OpenRequest
  std::optional<Scalar> ignored = {};  ///< a label that means that there is none
};

/// How a format opens one file, or a group. Errors: DataError.
using OpenGroup = std::function<std::unique_ptr<RecordSource>(const FileGroup&)>;

/// The files in which a format keeps its labels, and its weights and lengths if it has any.
enum class Labels { kInFilesOfTheirOwn, kWithTheRecords };

/// *Collective.* FormatEntry::open for such formats: all files that the config names for the split, or that
/// predictions are for.
/// `extensions` are those of the format. Errors as there.
std::unique_ptr<RecordSource> open_files(const OpenRequest& request, Labels labels,
                                         std::span<const std::string> extensions, const OpenGroup& open);

}  // namespace lockstep
