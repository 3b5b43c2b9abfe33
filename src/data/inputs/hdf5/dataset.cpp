// Reads through the HDF5 C library, 1.10 or later. One thread at a time: builds of the library differ in what
// they allow.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hdf5.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <mutex>
#include <string_view>
#include <utility>

#include "data/inputs/byte_inputs.h"
#include "data/inputs/hdf5_dataset.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr Index kMaxElementBytes = 8;  // size of a number, in the file and in memory

// While it lives the library keeps its errors to itself.
class LibraryLock {
 public:
  LibraryLock() : lock_(mutex_) { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

 private:
  static inline std::mutex mutex_;
  std::lock_guard<std::mutex> lock_;
};

// The innermost of the library's last errors.
std::string last_error() {
  std::string text;
  const auto take = [](unsigned position, const H5E_error2_t* error, void* to) -> herr_t {
    if (position == 0 && error->desc != nullptr) *static_cast<std::string*>(to) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take, &text);
  return text.empty() ? "no reason given" : text;
}

class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  hid_t id() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

Handle open_file(const std::string& path) {
  check_regular_file(path);
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
#if H5_VERSION_GE(1, 10, 7)
  H5Pset_file_locking(access.id(), false, true);  // many parallel file systems have no locks
#endif
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose);
  if (!file.valid()) throw DataError("cannot read '{}' as HDF5: {}", path, last_error());
  return file;
}

std::vector<std::string> datasets_in(hid_t file) {
  std::vector<std::string> names;
  const auto take = [](hid_t, const char* name, const auto* info, void* to) -> herr_t {
    if (info->type == H5O_TYPE_DATASET) static_cast<std::vector<std::string>*>(to)->emplace_back(name);
    return 0;
  };
  H5Ovisit1(file, H5_INDEX_NAME, H5_ITER_INC, take, &names);
  return names;
}

struct NumberType {
  std::string_view element;
  hid_t memory;
};

// Numbers of other sizes, as 16-bit floats, become the next larger ones.
NumberType number_type(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  const std::size_t bytes = H5Tget_size(type);
  const bool is_float = kind == H5T_FLOAT;
  if (kind == H5T_ENUM && bytes == 1 && H5Tget_nmembers(type) == 2) return {"bool", type};  // as of h5py
  if (!is_float && kind != H5T_INTEGER) return {"", H5I_INVALID_HID};
  const char letter = is_float ? 'f' : H5Tget_sign(type) == H5T_SGN_NONE ? 'u' : 'i';
  const std::size_t size = std::max(std::bit_ceil(bytes), std::size_t{is_float ? 4U : 1U});
  const std::array<NumberType, 10> known{{{"u8", H5T_STD_U8LE},
                                          {"u16", H5T_STD_U16LE},
                                          {"u32", H5T_STD_U32LE},
                                          {"u64", H5T_STD_U64LE},
                                          {"i8", H5T_STD_I8LE},
                                          {"i16", H5T_STD_I16LE},
                                          {"i32", H5T_STD_I32LE},
                                          {"i64", H5T_STD_I64LE},
                                          {"f32", H5T_IEEE_F32LE},
                                          {"f64", H5T_IEEE_F64LE}}};
  const auto* const found =
      std::ranges::find(known, fmt::format("{}{}", letter, 8 * size), &NumberType::element);
  return found == known.end() ? NumberType{"", H5I_INVALID_HID} : *found;
}

std::vector<Index> sizes_of(hid_t space) {
  std::array<hsize_t, H5S_MAX_RANK> sizes{};
  const int rank = H5Sget_simple_extent_dims(space, sizes.data(), nullptr);
  std::vector<Index> result;
  for (int i = 0; i < rank; ++i) {
    constexpr auto kMax = static_cast<hsize_t>(std::numeric_limits<Index>::max());
    result.push_back(static_cast<Index>(std::min(at(sizes, i), kMax)));
  }
  return result;
}

// Whether any product of the sizes can be computed, also where one of them is 0.
bool countable(std::span<const Index> sizes, Index element_bytes) {
  bool overflows = false;
  for (const Index size : sizes) {
    overflows |= __builtin_mul_overflow(element_bytes, std::max<Index>(size, 1), &element_bytes);
  }
  return !overflows;
}

[[noreturn]] void refuse_other_file(const std::string& name, const std::string& why) {
  throw DataError(
      "'{}' keeps its numbers in another file ({}), expected them in its own; copy the data set into one "
      "file (h5py: file.create_dataset(\"x\", data=old[:]))",
      name, why);
}

// Keeps the library from opening the file that an external link leads to, and notes its name.
herr_t note_external_link(const char*, const char*, const char* file, const char*, unsigned*, hid_t,
                          void* to) {
  *static_cast<std::string*>(to) = file;
  return -1;
}

Handle open_dataset(hid_t file, const ArrayPath& path, const std::string& name) {
  const Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  std::string linked;
  H5Pset_elink_cb(access.id(), note_external_link, &linked);
  Handle dataset(H5Dopen2(file, path.array.c_str(), access.id()), H5Dclose);
  if (!linked.empty()) refuse_other_file(name, fmt::format("an external link: '{}'", linked));
  if (!dataset.valid()) {
    const std::vector<std::string> names = datasets_in(file);
    throw DataError("'{}' has no data set '{}', it has {}", path.file, path.array,
                    names.empty() ? "none" : listed(names));
  }
  return dataset;
}

// The library would open whatever the file names, a change there would not be noticed, and what is missing
// there would be read as zeros.
void refuse_other_storage(const std::string& name, hid_t dataset) {
  const Handle properties(H5Dget_create_plist(dataset), H5Pclose);
  if (H5Pget_layout(properties.id()) == H5D_VIRTUAL) refuse_other_file(name, "a virtual data set");
  if (H5Pget_external_count(properties.id()) > 0) {
    std::array<char, 256> file{};
    H5Pget_external(properties.id(), 0, file.size() - 1, file.data(), nullptr, nullptr);
    refuse_other_file(name, fmt::format("external storage: '{}'", file.data()));
  }
}

// Refuses a data set that states much more than it stores: HDF5 reads what was never written as zeros.
void check_stored(const std::string& name, hid_t dataset, std::span<const Index> sizes, Index element_bytes) {
  const Handle properties(H5Dget_create_plist(dataset), H5Pclose);
  const bool filtered = H5Pget_nfilters(properties.id()) > 0;
  const auto stored = static_cast<Index>(H5Dget_storage_size(dataset));
  Index most = 0;
  const bool limited = !__builtin_mul_overflow(stored, filtered ? kMaxUnpacked : 1, &most);
  if (limited && countable(sizes, kMaxElementBytes)) {
    Index wanted = element_bytes;
    for (const Index size : sizes) wanted *= size;
    if (wanted <= most) return;
  }
  throw DataError(
      "'{}' is damaged or was never filled: it states {} numbers of {} bytes, but {} bytes are stored", name,
      excerpt(fmt::format("{}", fmt::join(sizes, "x"))), element_bytes, with_commas(stored));
}

}  // namespace

struct Hdf5Dataset::Library {
  Handle file;
  Handle dataset;
  Handle type;  // type of the numbers in the file
  hid_t memory = H5I_INVALID_HID;
};

Hdf5Dataset::Hdf5Dataset(const ArrayPath& path) {
  const LibraryLock lock;
  auto library = std::make_unique<Library>();  // closed under the lock if the constructor fails
  const std::string name = path.file + ":" + path.array;
  Library& here = *library;
  here.file = open_file(path.file);
  here.dataset = open_dataset(here.file.id(), path, name);
  refuse_other_storage(name, here.dataset.id());
  here.type = Handle(H5Dget_type(here.dataset.id()), H5Tclose);
  const NumberType type = number_type(here.type.id());
  error_if<DataError>(
      type.element.empty(),
      "'{}' does not hold numbers, expected integers or floats of at most 8 bytes, or booleans", name);
  here.memory = type.memory;
  element_ = find_element(type.element, ByteOrder::kLittle);
  const Handle space(H5Dget_space(here.dataset.id()), H5Sclose);
  sizes_ = sizes_of(space.id());
  error_if<DataError>(sizes_.empty(), "'{}' holds a single number or none, expected an array", name);
  check_stored(name, here.dataset.id(), sizes_, static_cast<Index>(H5Tget_size(here.type.id())));
  row_bytes_ = element_->bytes;
  for (std::size_t i = 1; i < sizes_.size(); ++i) row_bytes_ *= sizes_[i];
  library_ = std::move(library);
}

Hdf5Dataset::~Hdf5Dataset() {
  const LibraryLock lock;
  library_.reset();
}

bool Hdf5Dataset::read(Range rows, std::byte* to) {
  const LibraryLock lock;
  std::array<hsize_t, H5S_MAX_RANK> start{};
  std::array<hsize_t, H5S_MAX_RANK> count{};
  for (std::size_t i = 0; i < sizes_.size(); ++i) count[i] = static_cast<hsize_t>(sizes_[i]);
  start[0] = static_cast<hsize_t>(rows.begin);
  count[0] = static_cast<hsize_t>(rows.size());
  const Handle in_file(H5Dget_space(library_->dataset.id()), H5Sclose);
  const Handle in_memory(H5Screate_simple(static_cast<int>(sizes_.size()), count.data(), nullptr), H5Sclose);
  const bool done =
      H5Sselect_hyperslab(in_file.id(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr) >= 0 &&
      H5Dread(library_->dataset.id(), library_->memory, in_memory.id(), in_file.id(), H5P_DEFAULT, to) >= 0;
  if (!done) reason_ = last_error();
  return done;
}

std::vector<std::string> Hdf5Dataset::names(const std::string& file) {
  const LibraryLock lock;
  return datasets_in(open_file(file).id());
}

}  // namespace lockstep
