#include "record_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr const char* kInputKey = "--input";

std::optional<Scalar> ignored_label(const DataOptions& options) {
  if (options.ignore_label.empty()) return {};
  const auto number = number_in<Scalar>(options.ignore_label);
  error_if(!number, "train.ignore_label: found {}, expected a number, as -100",
           in_quotes(options.ignore_label));
  return number;
}

// The files that are asked for; all paths are empty if the config names nothing.
FileGroup files_of(const OpenRequest& request, Labels labels) {
  const DataOptions& options = request.options;
  if (request.input) {
    return {.records = {*request.input, kInputKey},
            .lengths = {request.lengths, "--lengths"},
            .record = options.record,
            .numbers = request.numbers};
  }
  const std::string key = "data." + to_string(request.split);
  const auto beside = [&](const char* ending, const std::string& train, const std::string& validation,
                          const std::string& test) {
    const bool there = labels == Labels::kInFilesOfTheirOwn;
    return NamedFile{there ? of_split(request.split, train, validation, test) : "", key + ending};
  };
  const FileGroup files{
      .records = {of_split(request.split, options.train, options.validation, options.test), key},
      .labels = beside("_labels", options.train_labels, options.validation_labels, options.test_labels),
      .weights = beside("_weights", options.train_weights, options.validation_weights, options.test_weights),
      .lengths = beside("_lengths", options.train_lengths, options.validation_lengths, options.test_lengths),
      .record = options.record,
      .ignored = ignored_label(options)};
  const bool no_records = files.records.path.empty();
  const bool no_labels = files.labels.path.empty();
  for (const auto& [file, noun] :
       {std::pair(&files.weights, "weights"), std::pair(&files.lengths, "lengths")}) {
    error_if(no_records && no_labels && !file->path.empty(),
             "{} is set, but {} is not: name the file with the records of these {}", file->key, key, noun);
  }
  if (no_records && no_labels) {
    if (request.split != Split::kTrain) return files;
    throw ConfigError("data.train is not set: name the file to train on, or set data.format = \"synthetic\"");
  }
  error_if(no_records || (no_labels && labels == Labels::kInFilesOfTheirOwn),
           "{} is set, but {} is not: name the file with the {}", no_labels ? key : files.labels.key,
           no_labels ? files.labels.key : key,
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
      : parts_(std::move(parts)) {
    info_ = parts_.front()->info();
    info_.name = name;
    info_.rows = 0;
    info_.source_bytes = 0;
    for (std::size_t part = 0; part < parts_.size(); ++part) add(part);
  }

  std::unique_ptr<ChunkReader> reader(const TargetRule& rule) const override {
    return std::make_unique<JoinedReader>(parts_, part_chunks_, rule);
  }
  void unpack(std::span<const Index> ids, std::span<const std::byte* const> records, Matrix& x,
              Matrix& targets) const override {
    parts_.front()->unpack(ids, records, x, targets);
  }
  std::vector<std::string> files() const override { return of_parts(&RecordSource::files); }
  std::vector<Note> notes() const override { return of_parts(&RecordSource::notes); }
  std::vector<Scalar> lengths() const override { return of_parts(&RecordSource::lengths); }
  std::string file_of(const Chunk& chunk) const override { return at(parts_, chunk.file)->files().front(); }

 private:
  template <class T>
  std::vector<T> of_parts(std::vector<T> (RecordSource::*list)() const) const {
    std::vector<T> all;
    for (const auto& part : parts_) std::ranges::move((*part.*list)(), std::back_inserter(all));
    return all;
  }
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
  std::vector<PartChunk> part_chunks_;
};

std::unique_ptr<RecordSource> open_all(const FileGroup& files, std::span<const std::string> extensions,
                                       const OpenGroup& open) {
  const auto& [path, key] = files.records;
  const std::vector<std::string> records =
      key == kInputKey ? list_input_files(path, extensions) : list_files(path, extensions, key);
  std::vector<FileGroup> groups(records.size(), files);
  for (std::size_t i = 0; i < records.size(); ++i) groups[i].records.path = records[i];
  for (const auto& [member, noun] :
       {std::pair(&FileGroup::labels, "labels"), std::pair(&FileGroup::weights, "weights"),
        std::pair(&FileGroup::lengths, "lengths")}) {
    const NamedFile& named = files.*member;
    if (named.path.empty()) continue;
    const std::vector<std::string> beside = list_files(named.path, extensions, named.key);
    if (beside.size() != records.size()) {
      throw DataError("{} names {} files, but {} names {}: expected a file of {} for each file of records",
                      key, records.size(), named.key, beside.size(), noun);
    }
    for (std::size_t i = 0; i < beside.size(); ++i) (groups[i].*member).path = beside[i];
  }
  std::vector<std::unique_ptr<RecordSource>> sources;
  for (const FileGroup& group : groups) sources.push_back(open(group));
  if (sources.size() == 1) return std::move(sources.front());
  return std::make_unique<JoinedSource>(std::move(sources), path);
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
    if (request.input || !files.records.path.empty()) source = open_all(files, extensions, open);
  });
  return source;
}

}  // namespace lockstep
