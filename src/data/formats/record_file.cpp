#include "record_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/inputs/byte_stream.h"

namespace lockstep {
namespace {

constexpr const char* kInputKey = "--input";

// The files that are asked for; all paths are empty if the config names nothing.
FileGroup files_of(const OpenRequest& request, Labels labels) {
  if (request.input) {
    return {.records = *request.input,
            .lengths = request.lengths,
            .records_key = kInputKey,
            .lengths_key = "--lengths",
            .record = request.options.record,
            .numbers = request.numbers};
  }
  FileGroup files;
  const DataOptions& options = request.options;
  const Split split = request.split;
  files.records_key = "data." + to_string(split);
  files.labels_key = files.records_key + "_labels";
  files.weights_key = files.records_key + "_weights";
  files.lengths_key = files.records_key + "_lengths";
  files.record = options.record;
  files.records = of_split(split, options.train, options.validation, options.test);
  if (labels == Labels::kInFilesOfTheirOwn) {
    files.labels = of_split(split, options.train_labels, options.validation_labels, options.test_labels);
    files.weights = of_split(split, options.train_weights, options.validation_weights, options.test_weights);
    files.lengths = of_split(split, options.train_lengths, options.validation_lengths, options.test_lengths);
  }
  const auto refuse_without_records = [&files](const std::string& path, const std::string& key,
                                               const char* noun) {
    if (!files.records.empty() || !files.labels.empty() || path.empty()) return;
    throw ConfigError("{} is set, but {} is not: name the file with the records of these {}", key,
                      files.records_key, noun);
  };
  refuse_without_records(files.weights, files.weights_key, "weights");
  refuse_without_records(files.lengths, files.lengths_key, "lengths");
  if (files.records.empty() && files.labels.empty()) {
    if (split != Split::kTrain) return files;
    throw ConfigError("data.train is not set: name the file to train on, or set data.format = \"synthetic\"");
  }
  const bool no_labels = files.labels.empty();
  error_if(files.records.empty() || (no_labels && labels == Labels::kInFilesOfTheirOwn),
           "{} is set, but {} is not: name the file with the {}",
           no_labels ? files.records_key : files.labels_key, no_labels ? files.labels_key : files.records_key,
           no_labels ? "labels of these records" : "records of these labels");
  return files;
}

struct PartChunk {
  std::size_t part;
  Index chunk;
};

// Keeps the files of one part open at a time.
class JoinedReader final : public ChunkReader {
 public:
  JoinedReader(std::span<const std::unique_ptr<RecordSource>> parts, std::span<const PartChunk> part_chunks,
               const TargetRule& rule)
      : parts_(parts), part_chunks_(part_chunks), rule_(rule) {}

  void read(Index chunk, std::span<std::byte> packed) override {
    const PartChunk& where = at(part_chunks_, chunk);
    if (!reader_ || where.part != part_) {
      reader_.reset();
      reader_ = parts_[where.part]->reader(rule_);
      part_ = where.part;
    }
    reader_->read(where.chunk, packed);
  }

 private:
  std::span<const std::unique_ptr<RecordSource>> parts_;
  std::span<const PartChunk> part_chunks_;
  TargetRule rule_;
  std::size_t part_ = 0;
  std::unique_ptr<ChunkReader> reader_;
};

// Several data sets of the same shape, one after the other, as one. Errors: DataError if their records
// differ.
class JoinedSource final : public RecordSource {
 public:
  JoinedSource(std::vector<std::unique_ptr<RecordSource>> parts, const std::string& name)
      : parts_(std::move(parts)), info_(parts_.front()->info()) {
    info_.name = name;
    info_.rows = 0;
    info_.source_bytes = 0;
    for (std::size_t part = 0; part < parts_.size(); ++part) add(part);
  }

  const DatasetInfo& info() const override { return info_; }
  std::span<const Chunk> chunks() const override { return chunks_; }
  std::unique_ptr<ChunkReader> reader(const TargetRule& rule) const override {
    return std::make_unique<JoinedReader>(parts_, part_chunks_, rule);
  }
  void unpack(std::span<const Index> ids, std::span<const std::byte* const> records, Matrix& x,
              Matrix& targets) const override {
    parts_.front()->unpack(ids, records, x, targets);
  }
  std::vector<std::string> files() const override {
    std::vector<std::string> all;
    for (const auto& part : parts_) {
      for (const std::string& file : part->files()) all.push_back(file);
    }
    return all;
  }
  std::vector<Note> notes() const override {
    std::vector<Note> all;
    for (const auto& part : parts_) std::ranges::move(part->notes(), std::back_inserter(all));
    return all;
  }
  std::vector<Scalar> lengths() const override {
    std::vector<Scalar> all;
    for (const auto& part : parts_) std::ranges::copy(part->lengths(), std::back_inserter(all));
    return all;
  }
  std::string file_of(const Chunk& chunk) const override { return at(parts_, chunk.file)->files().front(); }

 private:
  void add(std::size_t part) {
    const RecordSource& source = *parts_[part];
    const DatasetInfo& added = source.info();
    error_if<DataError>(added.features != info_.features || added.label_columns() != info_.label_columns() ||
                            added.record_bytes != info_.record_bytes,
                        "records of '{}' have {} features and {} targets in {} bytes, those of '{}' have {} "
                        "and {} in {}: all files of a data set must have the same",
                        parts_.front()->info().name, to_string(info_.features), info_.target_columns,
                        info_.record_bytes, added.name, to_string(added.features), added.target_columns,
                        added.record_bytes);
    const std::span<const Chunk> chunks = source.chunks();
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const Range records = chunks[i].records;
      chunks_.push_back({.records = {info_.rows + records.begin, info_.rows + records.end},
                         .follows_on = chunks[i].follows_on,
                         .file = static_cast<Index>(part)});
      part_chunks_.push_back({part, static_cast<Index>(i)});
    }
    info_.rows += added.rows;
    info_.source_bytes += added.source_bytes;
  }

  std::vector<std::unique_ptr<RecordSource>> parts_;
  DatasetInfo info_;
  std::vector<Chunk> chunks_;
  std::vector<PartChunk> part_chunks_;
};

std::unique_ptr<RecordSource> open_all(const FileGroup& files, std::span<const std::string> extensions,
                                       const OpenGroup& open) {
  const bool of_input = files.records_key == kInputKey;
  const std::vector<std::string> records = of_input
                                               ? list_input_files(files.records, extensions)
                                               : list_files(files.records, extensions, files.records_key);
  // A file beside each file of records; "" for each if the config names none.
  const auto list_beside = [&](const std::string& path, const std::string& key, const char* noun) {
    if (path.empty()) return std::vector<std::string>(records.size());
    std::vector<std::string> beside = list_files(path, extensions, key);
    if (beside.size() == records.size()) return beside;
    throw DataError("{} names {} files, but {} names {}: expected a file of {} for each file of records",
                    files.records_key, records.size(), key, beside.size(), noun);
  };
  const std::vector<std::string> labels = list_beside(files.labels, files.labels_key, "labels");
  const std::vector<std::string> weights = list_beside(files.weights, files.weights_key, "weights");
  const std::vector<std::string> lengths = list_beside(files.lengths, files.lengths_key, "lengths");
  std::vector<std::unique_ptr<RecordSource>> sources;
  for (std::size_t i = 0; i < records.size(); ++i) {
    FileGroup group = files;
    group.records = records[i];
    group.labels = labels[i];
    group.weights = weights[i];
    group.lengths = lengths[i];
    sources.push_back(open(group));
  }
  if (sources.size() == 1) return std::move(sources.front());
  return std::make_unique<JoinedSource>(std::move(sources), files.records);
}

}  // namespace

void RecordFile::check_size(const ByteStream& stream) const {
  const Index available = stream.max_bytes() - offset;
  const Index wanted = records * record_bytes;
  if (available < wanted) {
    if (!stream.compressed()) fail_truncated(available, "");
    throw DataError(
        "'{}' is truncated or damaged: its header states {} records of {} bytes, but a gzip file of {} bytes "
        "cannot hold more than {} bytes; fetch or make the file again",
        path, with_commas(records), with_commas(record_bytes), with_commas(file_bytes),
        with_commas(stream.max_bytes()));
  }
  if (!stream.compressed() && available > wanted) fail_surplus(with_commas(available - wanted));
}

void RecordFile::fail_truncated(Index bytes_found, const std::string& note) const {
  const Index whole = bytes_found / record_bytes;
  throw DataError(
      "'{}' is truncated: record {} of {} is incomplete: expected {} bytes, found {}{}; fetch or make the "
      "file again",
      path, with_commas(whole), with_commas(records), with_commas(record_bytes),
      with_commas(bytes_found - whole * record_bytes), note);
}

void RecordFile::fail_surplus(const std::string& found) const {
  throw DataError(
      "'{}' does not fit its header: expected the end after {} records of {} bytes, found {} bytes; fetch or "
      "make the file again",
      path, with_commas(records), with_commas(record_bytes), found);
}

RecordFileReader::RecordFileReader(const RecordFile& file)
    : file_(file), stream_(file.path, file.compressed ? Packing::kDetect : Packing::kNone) {}

std::span<const std::byte> RecordFileReader::read(Range records) {
  const Index wanted = records.size() * file_.record_bytes;
  buffer_.resize(static_cast<std::size_t>(wanted));
  if (!file_.fortran_order.empty()) {
    read_fortran_order(records);
    return buffer_;
  }
  stream_.go_to(file_.offset + records.begin * file_.record_bytes);
  const Index found = stream_.read(buffer_);
  if (found < wanted) {
    file_.fail_truncated(records.begin * file_.record_bytes + found, stream_.cut_off());
  }
  if (records.end == file_.records) check_end();
  return buffer_;
}

void RecordFileReader::read_fortran_order(Range records) {
  const Index element_bytes = file_.record_bytes / std::ssize(file_.fortran_order);
  run_.resize(static_cast<std::size_t>(records.size() * element_bytes));
  Index begin = file_.offset + records.begin * element_bytes;
  for (const Index position : file_.fortran_order) {
    stream_.go_to(begin);
    if (stream_.read(run_) < std::ssize(run_)) file_.fail_truncated(begin - file_.offset, stream_.cut_off());
    for (Index i = 0; i < records.size(); ++i) {
      std::memcpy(buffer_.data() + i * file_.record_bytes + position * element_bytes,
                  run_.data() + i * element_bytes, static_cast<std::size_t>(element_bytes));
    }
    begin += file_.records * element_bytes;
  }
  if (records.end == file_.records) check_end();
}

// One byte more: it would be too many, and asking for it makes zlib compare the check sum at the end.
void RecordFileReader::check_end() {
  std::array<std::byte, 1> surplus{};
  if (stream_.read(surplus) > 0) file_.fail_surplus("more");
  const std::string note = stream_.cut_off();
  if (note.empty()) return;
  throw DataError("'{}' is truncated: its records are whole, its check sum is not{}", file_.path, note);
}

std::unique_ptr<RecordSource> open_files(const OpenRequest& request, Labels labels,
                                         std::span<const std::string> extensions, const OpenGroup& open) {
  std::unique_ptr<RecordSource> source;
  request.peers.agree([&] {
    const FileGroup files = files_of(request, labels);
    if (request.input || !files.records.empty()) source = open_all(files, extensions, open);
  });
  return source;
}

}  // namespace lockstep
