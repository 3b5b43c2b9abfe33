// A data set of delimited text files. What is learnt from the training data (the schema) turns any other
// into the same features.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/table/schema/encoder.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/table/schema/scan.h"
#include "lockstep/data/table/text/table_text.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

struct TableRequest {
  std::vector<std::string> paths;
  std::string name;  ///< name of the data set, for messages
  const TableOptions& options;
  std::string schema;  ///< JSON to read by; "": it is learnt from this table
  bool labels = true;  ///< false: labels and weights are left out, and may be missing
  const TableQuestions* questions = nullptr;
  PeerGroup& peers;
};

/// The common part of the data sets of text files.
class TextSource : public RecordSource {
 public:
  std::vector<Note> notes() const override { return notes_; }
  std::vector<std::string> rejects() const override { return records_.rejects; }
  std::span<const Index> skipped() const override { return records_.bad_positions; }
  void unpack(std::span<const Index> ids, std::span<const std::byte* const> records, Matrix& x,
              Matrix& targets) const override;

 protected:
  /// Errors: DataError if the schema that other data needs is not there.
  static void check_request(const TableRequest& request);
  /// The records that were found in the text become chunks. Those of the text without any, in the middle of a
  /// long record or of bad ones, become none.
  void take_records(const RecordCounts& records, const TextFiles& text, const std::string& name);
  /// The chunk of the text that a chunk of records is in.
  const TextChunk& chunk_of(const TextFiles& text, Index number) const {
    return at(text.chunks, at(text_chunks_, number));
  }
  /// The features and labels of a packed record.
  virtual void unpack_record(const std::byte* packed, Scalar* features, Scalar* labels) const = 0;
  /// The records of a chunk are not those that were counted.
  [[noreturn]] static void fail_changed(const TextFiles& text, const TextChunk& chunk);

  RecordCounts records_;
  std::vector<Index> text_chunks_;  // of each chunk its number among those of the text
  std::vector<Note> notes_;
};

class TableSource final : public TextSource {
 public:
  /// *Collective.* Walks over all records once or, where something is to be found out before, twice.
  /// Errors, the same on all ranks: ConfigError, DataError.
  explicit TableSource(const TableRequest& request);

  std::unique_ptr<ChunkReader> reader(const TargetRule& rule) const override;
  std::string schema() const override { return to_json(schema_); }
  std::vector<std::string> doubts() const override { return doubts_; }
  std::vector<std::string> files() const override { return table_.text.paths(); }
  const TableText* table() const override { return &table_; }

 private:
  class Reader;

  void unpack_record(const std::byte* packed, Scalar* features, Scalar* labels) const override {
    encoder_->unpack(packed, features, labels);
  }
  Scan learn(const TableRequest& request);
  Scan check(const TableRequest& request);
  const NumberStats& weights_in(const Scan& scan) const;  // requires weights
  void check_weights(const Scan& scan) const;

  TableSchema schema_;
  TableText table_;
  std::vector<RowColumn> columns_;
  std::unique_ptr<Encoder> encoder_;
  std::vector<std::string> doubts_;
};

// How the text formats open what the config names: all files that it means are one table.

/// *Collective.* Nothing if the config names no such set. Errors as of FormatEntry::open.
std::optional<TableRequest> table_request(const OpenRequest& request,
                                          std::span<const std::string> extensions);

/// *Collective.* FormatEntry::open for a Source that is made from a TableRequest. Errors as there.
template <class Source>
std::unique_ptr<RecordSource> open_tables(const OpenRequest& request,
                                          std::span<const std::string> extensions) {
  const std::optional<TableRequest> tables = table_request(request, extensions);
  return tables ? std::make_unique<Source>(*tables) : nullptr;
}

}  // namespace lockstep
