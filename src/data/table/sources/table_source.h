// A data set of delimited text files. What is learnt from the training data (the schema) turns any other
// into the same features.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/table/schema/encoder.h"
#include "lockstep/base/errors.h"
#include "lockstep/data/byte_stream.h"
#include "lockstep/data/format.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/table/schema/scan.h"
#include "lockstep/data/table/text/table_text.h"
#include "lockstep/data/table/values/schema.h"
#include "lockstep/data/validation_split.h"

namespace lockstep {

struct TableRequest {
  std::vector<std::string> paths;
  std::string name;  ///< name of the data set, for messages
  const TableOptions& options;
  std::string schema;  ///< JSON to read by; "": it is learnt from this table
  bool labels = true;  ///< false: labels and weights are left out, and may be missing
  HoldOut held = {};   ///< records that nothing is learnt from
  PeerGroup& peers;
};

/// Errors: DataError if the schema that other data needs is not there.
void check_request(const TableRequest& request);

/// The chunks of a data set of text files, with so many records each. Those without any, in the middle of a
/// long record or of bad ones, are taken out of the text.
std::vector<Chunk> chunks_of(TextFiles& text, const std::vector<Index>& rows);

/// The records of a chunk are not those that were counted.
[[noreturn]] void fail_changed(const TextFiles& text, const TextChunk& chunk);

/// Tells of the bad records of a data set, if it has any.
void note_bad_records(const std::string& name, Index good, Index bad, std::vector<std::string>& notes);

class TableSource final : public RecordSource {
 public:
  /// *Collective.* Walks over all records once or, to learn a schema without declared kinds, twice.
  /// Errors, the same on all ranks: ConfigError, DataError.
  explicit TableSource(const TableRequest& request);

  const DatasetInfo& info() const override { return info_; }
  std::span<const Chunk> chunks() const override { return chunks_; }
  std::unique_ptr<ChunkReader> reader(const TargetRule& rule) const override;
  void unpack(std::span<const Index> ids, std::span<const std::byte* const> records, Matrix& x,
              Matrix& targets) const override;
  std::string schema() const override { return to_json(schema_); }
  std::vector<std::string> notes() const override { return notes_; }
  std::vector<std::string> doubts() const override { return doubts_; }
  std::vector<std::string> rejects() const override { return rejects_; }
  std::span<const Index> skipped() const override { return skipped_; }
  std::vector<std::string> files() const override { return table_.text.paths(); }

 private:
  Scan learn(const TableRequest& request);
  Scan check(const TableRequest& request);
  const NumberStats& weights_in(const Scan& scan) const;  // requires weights
  void check_weights(const Scan& scan) const;

  TableText table_;
  TableSchema schema_;
  std::vector<RowColumn> columns_;
  std::unique_ptr<Encoder> encoder_;
  std::vector<Chunk> chunks_;
  DatasetInfo info_;
  std::vector<std::string> notes_;
  std::vector<std::string> doubts_;
  std::vector<std::string> rejects_;
  std::vector<Index> skipped_;
};

// How the text formats open what the config names: all files that it means are one table.

/// *Collective.* FormatEntry::open for a Source that is made from a TableRequest. Errors as there.
template <class Source>
std::unique_ptr<RecordSource> open_tables(const OpenRequest& request,
                                          std::span<const std::string> extensions) {
  const DataOptions& data = request.options;
  const std::string& name = request.split == Split::kTrain        ? data.train
                            : request.split == Split::kValidation ? data.validation
                                                                  : data.test;
  if (name.empty() && request.split != Split::kTrain) return nullptr;
  const std::string key = "data." + to_string(request.split);
  std::vector<std::string> paths;
  request.peers.agree([&] {
    if (name.empty()) {
      throw ConfigError(
          "data.train is not set: name the file to train on, or set data.format = \"synthetic\"");
    }
    paths = list_files(name, extensions, key);
  });
  return std::make_unique<Source>(TableRequest{.paths = std::move(paths),
                                               .name = name,
                                               .options = data.table,
                                               .schema = request.schema,
                                               .held = request.held,
                                               .peers = request.peers});
}

/// *Collective.* FormatEntry::open_input likewise.
template <class Source>
std::unique_ptr<RecordSource> open_input_tables(const InputRequest& request,
                                                std::span<const std::string> extensions) {
  std::vector<std::string> paths;
  request.peers.agree([&] { paths = list_input_files(request.path, extensions); });
  return std::make_unique<Source>(TableRequest{.paths = std::move(paths),
                                               .name = request.path,
                                               .options = request.options.table,
                                               .schema = request.schema,
                                               .labels = false,
                                               .peers = request.peers});
}

}  // namespace lockstep
