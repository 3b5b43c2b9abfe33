#include "record_file.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {

void RecordFile::check_size(const ByteStream& stream) const {
  const Index available = stream.max_bytes() - offset;
  const Index wanted = records * record_bytes;
  if (available < wanted) {
    if (!stream.compressed()) fail_truncated(available, "");
    throw DataError(
        fmt::format("'{}' is truncated or damaged: its header states {} records of {} bytes, but a gzip file "
                    "of {} bytes cannot hold more than {} bytes; fetch or make the file again",
                    path, with_commas(records), with_commas(record_bytes), with_commas(file_bytes),
                    with_commas(stream.max_bytes())));
  }
  if (!stream.compressed() && available > wanted) fail_surplus(with_commas(available - wanted));
}

void RecordFile::fail_truncated(Index bytes_found, const std::string& note) const {
  const Index whole = bytes_found / record_bytes;
  throw DataError(
      fmt::format("'{}' is truncated: record {} of {} is incomplete: expected {} bytes, found {}{}; fetch or "
                  "make the file again",
                  path, with_commas(whole), with_commas(records), with_commas(record_bytes),
                  with_commas(bytes_found - whole * record_bytes), note));
}

void RecordFile::fail_surplus(const std::string& found) const {
  throw DataError(
      fmt::format("'{}' does not fit its header: expected the end after {} records of {} bytes, found {} "
                  "bytes; fetch or make the file again",
                  path, with_commas(records), with_commas(record_bytes), found));
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
  throw DataError(
      fmt::format("'{}' is truncated: its records are whole, its check sum is not{}", file_.path, note));
}

}  // namespace lockstep
