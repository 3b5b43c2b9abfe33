#include "lockstep/data/inputs/byte_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "byte_inputs.h"
#include "hdf5_dataset.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/data/inputs/reading_row.h"

namespace lockstep {
namespace {

// A file as it is.
class PlainInput final : public ByteStream::Input, NoCopy {
 public:
  explicit PlainInput(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file_ < 0) throw DataError("cannot open '{}': {}", path, std::strerror(errno));
    bytes_ = file_bytes(path);
  }
  ~PlainInput() override { ::close(file_); }

  bool compressed() const override { return false; }
  Index max_bytes() const override { return bytes_; }

  Index read_some(std::byte* bytes, Index count) override {
    ssize_t got = 0;
    do {
      got = ::pread(file_, bytes, static_cast<std::size_t>(count), position_);
    } while (got < 0 && errno == EINTR);
    error_ = errno;
    return got;
  }
  std::string reason() const override { return std::strerror(error_); }

 private:
  int file_;
  int error_ = 0;
  Index bytes_ = 0;
};

namespace fs = std::filesystem;

std::vector<std::string> files_of_directory(const std::string& path, std::span<const std::string> extensions,
                                            const std::string& key) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    const char first = entry.path().filename().string().front();
    if (first != '.' && first != '_' && entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<std::string> known;
  std::ranges::copy_if(files, std::back_inserter(known),
                       [&](const std::string& file) { return ends_as(file, extensions); });
  if (!known.empty()) return known;
  if (files.empty()) throw DataError("{} names '{}', a directory without files", key, path);
  return files;
}

// Empty if nothing matches. Braces first, so that what a pattern with them gives is sorted as a whole.
std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> files;
  if (glob(pattern.c_str(), GLOB_BRACE, nullptr, &found) == 0) {
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  std::ranges::sort(files);
  return files;
}

// Splits a list at commas outside of braces.
std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (c == ',' && depth <= 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

[[noreturn]] void fail_missing(const std::string& text, const std::string& key) {
  const bool is_pattern = text.find_first_of("*?[{") != std::string::npos;
  std::error_code unknown;
  const fs::path here = fs::current_path(unknown);
  const bool begins_here = !unknown && !fs::path(text).is_absolute();
  throw DataError("{} names '{}', which does not exist{}{}, or fetch the data set", key, text,
                  begins_here ? fmt::format(" in '{}'", here.string()) : "",
                  is_pattern ? " and matches no file: correct it" : ": correct the path");
}

std::vector<std::string> list(const std::string& text, std::span<const std::string> extensions,
                              const std::string& key) {
  const std::vector<std::string> parts = split_list(text);
  std::error_code error;
  const bool exists = fs::exists(text, error);
  const bool no_path = error == std::errc::filename_too_long && parts.size() > 1;  // but a list of many
  if (!no_path && fs::is_directory(text)) return files_of_directory(text, extensions, key);
  if (exists) return {text};
  std::vector<std::string> files;
  if (parts.size() == 1) {
    files = matches(text);
    if (files.empty()) fail_missing(text, key);
    return files;
  }
  for (const std::string& part : parts) {
    const std::vector<std::string> more = list(part, extensions, key);
    files.insert(files.end(), more.begin(), more.end());
  }
  return files;
}

}  // namespace

ArrayPath split_array_path(const std::string& path) {
  const std::string lower = in_lower_case(path);
  for (const std::string_view archive : {".npz:", ".h5:", ".hdf5:"}) {
    const std::size_t end = lower.find(archive);
    if (end == std::string::npos) continue;
    ArrayPath found{path.substr(0, end + archive.size() - 1), path.substr(end + archive.size())};
    if (const std::size_t colon = found.array.find(':'); archive == ".npz:" && colon != std::string::npos) {
      found.fields = found.array.substr(colon + 1);
      found.array.resize(colon);
    }
    return found;
  }
  for (const std::string_view array : {".npy:", ".npy.gz:"}) {
    const std::size_t end = lower.find(array);
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
  return ends_as(file, ".npz") || ends_as(file, ".h5") || ends_as(file, ".hdf5");
}

std::vector<std::string> list_arrays(const std::string& file) {
  return ends_as(file, ".npz") ? names_in_archive(file) : Hdf5Dataset::names(file);
}

std::unique_ptr<ByteStream::Input> open_plain(const std::string& path) {
  return std::make_unique<PlainInput>(path);
}

Index ByteStream::Input::read(std::byte* bytes, Index count) {
  Index done = 0;
  while (done < count) {
    const Index got = read_some(bytes + done, count - done);
    if (got < 0) return -1;
    if (got == 0) break;
    done += got;
    position_ += got;
  }
  return done;
}

bool ByteStream::Input::pass_over(Index count) {
  std::vector<std::byte> dropped(std::size_t{1} << 16);
  while (count > 0) {
    const Index got = read(dropped.data(), std::min(count, std::ssize(dropped)));
    if (got <= 0) return got == 0;
    count -= got;
  }
  return true;
}

ByteStream::ByteStream(const std::string& path, Packing packing, const std::string& encoding) : path_(path) {
  const ArrayPath source = split_array_path(is_standard_input(path) ? "/dev/stdin" : path);
  check_regular_file(source.file);
  if (source.array.empty()) {
    input_ = packing == Packing::kNone ? open_plain(source.file) : open_gzip(source.file);
  } else {
    input_ = ends_as(source.file, ".npz") ? open_array(source) : open_hdf5(source);
  }
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
    throw DataError(
        "cannot read on in '{}' after {} bytes of data: {}; if its disk is in order it is damaged: fetch or "
        "make the file again",
        path_, with_commas(position_), input_->reason());
  }
  position_ += got;
  ReadingRow::note(path_, position_, file_bytes_, compressed());
  return got;
}

void ByteStream::go_to(Index position) {
  if (position == position_) return;
  if (!input_->go_to(position)) {
    throw DataError("cannot go to byte {} of '{}': {}", with_commas(position), path_, input_->reason());
  }
  position_ = position;
}

std::string ByteStream::cut_off() const {
  return input_->cut_off();
}

std::vector<std::string> list_files(const std::string& text, std::span<const std::string> extensions,
                                    const std::string& key) {
  const ArrayPath path = split_array_path(text);
  try {
    std::vector<std::string> files = list(path.file, extensions, key);
    for (std::string& file : files) file += path.inside();
    return files;
  } catch (const fs::filesystem_error& error) {
    throw DataError("{}: cannot open '{}': {}", key, error.path1().string(), error.code().message());
  }
}

bool is_standard_input(const std::string& name) {
  return name == "-";
}

std::vector<std::string> list_input_files(const std::string& text, std::span<const std::string> extensions) {
  if (is_standard_input(text)) return {text};
  return list_files(text, extensions, "--input");
}

}  // namespace lockstep
