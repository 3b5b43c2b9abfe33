// What an HDF5 file may hold as the features of a data set, whole or cut off: the bytes say which data set
// the library is to write, in which type, shape and storage. (What becomes of files that it would never write
// is up to the library, which does the parsing.)
#include <fuzzer/FuzzedDataProvider.h>

#include <array>
#include <filesystem>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/data/formats/format.h"
#include "read_all.h"
#include "scratch_file.h"
#include "support/hdf5_files.h"

namespace {

using lockstep::Index;

constexpr Index kMaxWritten = 4096;  // elements
constexpr std::size_t kMaxElementBytes = 16;

// Of a type that the caller closes: numbers of all sizes and orders, and what is no number.
hid_t make_type(FuzzedDataProvider& input) {
  const std::array<hid_t, 14> types{H5T_STD_I8LE,    H5T_STD_U8LE,   H5T_STD_I16BE, H5T_STD_U16LE,
                                    H5T_STD_I32LE,   H5T_STD_U32BE,  H5T_STD_I64LE, H5T_STD_U64BE,
                                    H5T_IEEE_F32LE,  H5T_IEEE_F64BE, H5T_C_S1,      H5T_STD_B8LE,
                                    H5T_STD_REF_OBJ, H5T_UNIX_D32LE};
  const hid_t type = H5Tcopy(input.PickValueInArray(types));
  switch (input.ConsumeIntegralInRange(0, 4)) {
    case 0:
      H5Tset_size(type, input.ConsumeIntegralInRange<std::size_t>(1, kMaxElementBytes));
      return type;
    case 1: {
      const hid_t members = H5Tenum_create(H5T_NATIVE_INT8);
      for (signed char value = 0; value < input.ConsumeIntegralInRange(0, 4); ++value)
        H5Tenum_insert(members, std::string(1, static_cast<char>('a' + value)).c_str(), &value);
      H5Tclose(type);
      return members;
    }
    case 2: {
      const hsize_t two = 2;
      const hid_t array = H5Tarray_create2(type, 1, &two);
      H5Tclose(type);
      return array;
    }
    default:
      return type;
  }
}

std::vector<Index> make_sizes(FuzzedDataProvider& input) {
  std::vector<Index> sizes(input.ConsumeIntegralInRange<std::size_t>(0, 4));
  for (Index& size : sizes) {
    size = input.ConsumeBool() ? input.ConsumeIntegralInRange<Index>(0, 8)
                               : input.ConsumeIntegralInRange<Index>(0, Index{1} << 62);
  }
  return sizes;
}

void write_file(FuzzedDataProvider& input, const std::string& path) {
  const hid_t type = make_type(input);
  const std::vector<Index> sizes = make_sizes(input);
  lockstep::test::Hdf5Chunks chunks;
  if (!sizes.empty())
    chunks = {.rows = input.ConsumeIntegralInRange<Index>(0, 8), .deflate = input.ConsumeBool()};
  Index elements = 1;
  for (const Index size : sizes) elements = size > kMaxWritten ? kMaxWritten + 1 : elements * size;
  const bool written = input.ConsumeBool() && elements <= kMaxWritten;
  const Index cut = input.ConsumeBool() ? input.ConsumeIntegralInRange<Index>(0, 1 << 16) : -1;
  std::vector<std::uint8_t> data = input.ConsumeRemainingBytes<std::uint8_t>();
  data.resize(static_cast<std::size_t>(written ? elements : 0) * 2 * kMaxElementBytes);
  lockstep::test::Hdf5File(path).add("x", type, type, sizes, written ? data.data() : nullptr, chunks);
  H5Tclose(type);
  std::error_code ignored;
  if (cut >= 0 && cut < lockstep::file_bytes(path))
    std::filesystem::resize_file(path, static_cast<std::uintmax_t>(cut), ignored);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  FuzzedDataProvider input(data, size);
  const std::string path = fuzz::scratch_file({}, ".h5");
  write_file(input, path);
  DataOptions options;
  options.format = "hdf5";
  options.train = path + ":x";
  try {
    fuzz::read_all(
        *choose_format(options).open({.options = options, .peers = alone(), .input = options.train}));
  } catch (const Error&) {
    // What a user is told is a fine end.
  }
  return 0;
}
