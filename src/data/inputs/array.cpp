// Arrays in the zip archives that numpy.savez and savez_compressed write.
#include <zip.h>

#include <algorithm>
#include <vector>

#include "byte_inputs.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// Bytes that are read to skip them: what is read without a gap is compared with the check sum of the archive.
constexpr Index kNear = Index{1} << 20;

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseArray {
  void operator()(zip_file_t* array) const { zip_fclose(array); }
};

std::unique_ptr<zip_t, CloseArchive> open_archive(const std::string& path) {
  int code = 0;
  std::unique_ptr<zip_t, CloseArchive> archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  throw DataError("cannot open the archive '{}': {}", path, reason);
}

std::vector<std::string> arrays_in(zip_t* archive) {
  std::vector<std::string> names;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive, 0); ++i) {
    std::string name = zip_get_name(archive, static_cast<zip_uint64_t>(i), 0);
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    names.push_back(std::move(name));
  }
  return names;
}

class ArrayInput final : public ByteStream::Input {
 public:
  explicit ArrayInput(const ArrayPath& path) : archive_(open_archive(path.file)) {
    const std::string name = path.array + ".npy";
    zip_stat_init(&stat_);
    if (zip_stat(archive_.get(), name.c_str(), 0, &stat_) != 0) {
      throw DataError("'{}' has no array '{}', it has {}", path.file, path.array,
                      listed(arrays_in(archive_.get())));
    }
    check_size(path, file_bytes(path.file));
    if (!reopen()) {
      throw DataError("cannot read the array '{}' of '{}': {}", path.array, path.file, reason());
    }
  }

  bool compressed() const override { return stat_.comp_method != ZIP_CM_STORE; }
  Index max_bytes() const override { return static_cast<Index>(stat_.size); }

  Index read_some(std::byte* bytes, Index count) override {
    return zip_fread(array_.get(), bytes, static_cast<zip_uint64_t>(count));
  }

  bool go_to(Index position) override {
    const bool near = position >= position_ && position - position_ <= kNear;
    if (!compressed() && !near && zip_fseek(array_.get(), position, SEEK_SET) == 0) {
      position_ = position;
      return true;
    }
    if (position < position_ && !reopen()) return false;
    return pass_over(position - position_);
  }

  std::string reason() const override {
    return array_ ? zip_file_strerror(array_.get()) : zip_strerror(archive_.get());
  }

 private:
  // Refuses an archive that states a size its bytes cannot unpack to.
  void check_size(const ArrayPath& path, Index bytes) const {
    const auto size = static_cast<Index>(stat_.size);
    const Index most = compressed() ? bytes * kMaxUnpacked : bytes;
    if (size >= 0 && size <= most) return;
    throw DataError("'{}' is damaged: it states {} bytes for the array '{}', but has only {}", path.file,
                    with_commas(size), path.array, with_commas(bytes));
  }

  bool reopen() {
    array_.reset(zip_fopen_index(archive_.get(), stat_.index, 0));
    position_ = 0;
    return array_ != nullptr;
  }

  std::unique_ptr<zip_t, CloseArchive> archive_;
  zip_stat_t stat_{};
  std::unique_ptr<zip_file_t, CloseArray> array_;
};

}  // namespace

std::vector<std::string> names_in_archive(const std::string& path) {
  return arrays_in(open_archive(path).get());
}

std::unique_ptr<ByteStream::Input> open_array(const ArrayPath& path) {
  return std::make_unique<ArrayInput>(path);
}

}  // namespace lockstep
