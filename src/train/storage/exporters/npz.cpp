// A zip file with an array file for each tensor, not compressed, as numpy.savez writes it: "0.weight.npy".
#include <zip.h>

#include <array>
#include <deque>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/train/storage/exporter.h"
#include "train/storage/npy_header.h"

namespace lockstep {
namespace {

// The first of January 1980 in the form of DOS, so that the same weights give the same bytes.
constexpr zip_uint16_t kTime = 0;
constexpr zip_uint16_t kDate = (1 << 5) | 1;

// A zip file that grows in memory.
class ZipArchive : NoCopy {
 public:
  ZipArchive() {
    zip_error_t error;
    zip_error_init(&error);
    memory_ = zip_source_buffer_create(nullptr, 0, 0, &error);
    if (memory_ != nullptr) archive_ = zip_open_from_source(memory_, ZIP_TRUNCATE, &error);
    if (archive_ == nullptr) fail(error);
    zip_source_keep(memory_);
  }
  ~ZipArchive() {
    if (archive_ != nullptr) zip_discard(archive_);
    zip_source_free(memory_);
  }

  // Borrows `values` until take().
  void add(const std::string& name, std::string header, std::span<const Scalar> values) {
    headers_.push_back(std::move(header));
    const auto bytes = std::as_bytes(values);
    std::array<zip_buffer_fragment_t, 2> parts{};
    parts[0].data = reinterpret_cast<zip_uint8_t*>(headers_.back().data());
    parts[0].length = headers_.back().size();
    // Only read: the field has no const because libzip can be told to free it.
    parts[1].data = const_cast<zip_uint8_t*>(reinterpret_cast<const zip_uint8_t*>(bytes.data()));
    parts[1].length = bytes.size();
    zip_source_t* source = zip_source_buffer_fragment(archive_, parts.data(), parts.size(), 0);
    const zip_int64_t entry = source == nullptr ? -1 : zip_file_add(archive_, name.c_str(), source, 0);
    if (entry < 0) fail(*zip_get_error(archive_));
    const auto index = static_cast<zip_uint64_t>(entry);
    if (zip_set_file_compression(archive_, index, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(archive_, index, kTime, kDate, 0) != 0) {
      fail(*zip_get_error(archive_));
    }
  }

  // The whole file.
  std::string take() {
    if (zip_close(archive_) != 0) fail(*zip_get_error(archive_));
    archive_ = nullptr;
    zip_stat_t stat;
    zip_stat_init(&stat);
    if (zip_source_stat(memory_, &stat) != 0 || zip_source_open(memory_) != 0) {
      fail(*zip_source_error(memory_));
    }
    std::string bytes(stat.size, '\0');
    const zip_int64_t read = zip_source_read(memory_, bytes.data(), bytes.size());
    zip_source_close(memory_);
    if (read != static_cast<zip_int64_t>(bytes.size())) fail(*zip_source_error(memory_));
    return bytes;
  }

 private:
  [[noreturn]] static void fail(zip_error_t error) {
    throw DataError("cannot make a zip file: {}", zip_error_strerror(&error));
  }

  zip_source_t* memory_ = nullptr;
  zip_t* archive_ = nullptr;
  std::deque<std::string> headers_;  // never move: libzip reads them in take()
};

}  // namespace

void write_npz(const ModelToExport& exported, OutputFile& file) {
  ZipArchive archive;
  for (const ParamInfo& param : exported.store.layout->params) {
    archive.add(param.name + ".npy", npy_header(param.shape), part(exported.store.values, param.range));
  }
  file.write(archive.take());
}

}  // namespace lockstep
