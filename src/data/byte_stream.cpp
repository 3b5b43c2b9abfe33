#include "lockstep/data/byte_stream.h"

#include <fmt/format.h>

#include <algorithm>

#include "byte_inputs.h"
#include "hdf5_dataset.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/data/file_list.h"

namespace lockstep {
namespace {

std::unique_ptr<ByteStream::Input> open_input(const ArrayPath& path, Packing packing) {
  if (!path.array.empty()) return path.file.ends_with(".npz") ? open_array(path) : open_hdf5(path);
  return packing == Packing::kNone ? open_plain(path.file) : open_gzip(path.file);
}

void split_off_fields(ArrayPath& path) {
  const std::size_t colon = path.array.find(':');
  if (colon == std::string::npos) return;
  path.fields = path.array.substr(colon + 1);
  path.array.resize(colon);
}

}  // namespace

ArrayPath split_array_path(const std::string& path) {
  for (const std::string_view archive : {".npz:", ".h5:", ".hdf5:"}) {
    const std::size_t end = path.find(archive);
    if (end == std::string::npos) continue;
    ArrayPath found{path.substr(0, end + archive.size() - 1), path.substr(end + archive.size())};
    if (archive == ".npz:") split_off_fields(found);
    return found;
  }
  for (const std::string_view array : {".npy:", ".npy.gz:"}) {
    const std::size_t end = path.find(array);
    if (end == std::string::npos) continue;
    return {path.substr(0, end + array.size() - 1), "", path.substr(end + array.size())};
  }
  return {path, ""};
}

std::vector<std::string> ArrayPath::field_names() const {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin < fields.size();) {
    const std::size_t end = std::min(fields.find('+', begin), fields.size());
    names.push_back(fields.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

std::string ArrayPath::inside() const {
  return (array.empty() ? "" : ":" + array) + (fields.empty() ? "" : ":" + fields);
}

bool holds_arrays(const std::string& file) {
  return file.ends_with(".npz") || file.ends_with(".h5") || file.ends_with(".hdf5");
}

std::vector<std::string> list_arrays(const std::string& file) {
  return file.ends_with(".npz") ? names_in_archive(file) : Hdf5Dataset::names(file);
}

ByteStream::ByteStream(const std::string& path, Packing packing, const std::string& encoding) : path_(path) {
  const ArrayPath source = split_array_path(is_standard_input(path) ? "/dev/stdin" : path);
  check_regular_file(source.file);
  input_ = open_input(source, packing);
  if (!encoding.empty()) input_ = open_decoded(std::move(input_), encoding);
  file_bytes_ = lockstep::file_bytes(source.file);
}

ByteStream::~ByteStream() = default;

bool ByteStream::compressed() const {
  return input_->compressed();
}

Index ByteStream::max_bytes() const {
  return input_->max_bytes();
}

Index ByteStream::read(std::span<std::byte> bytes) {
  const Index got = input_->read(bytes.data(), std::ssize(bytes));
  if (got < 0) {
    throw DataError(fmt::format(
        "cannot read on in '{}' after {} bytes of data: {}; if its disk is in order it is damaged: "
        "fetch or make the file again",
        path_, with_commas(position_), input_->reason()));
  }
  position_ += got;
  return got;
}

void ByteStream::go_to(Index position) {
  if (position == position_) return;
  if (!input_->go_to(position)) {
    throw DataError(
        fmt::format("cannot go to byte {} of '{}': {}", with_commas(position), path_, input_->reason()));
  }
  position_ = position;
}

std::string ByteStream::cut_off() const {
  return input_->cut_off();
}

}  // namespace lockstep
