// Writes numpy's array files, good ones and bad ones, and reads the numbers of one.
#pragma once

#include <zip.h>

#include "lockstep/base/types.h"
#include "support/common.h"

namespace lockstep::test {

/// The bytes of numbers, little endian.
template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// The start of an array file with this dictionary.
inline std::string npy_start(std::string dictionary, char version = 1) {
  dictionary += '\n';
  std::string start = std::string("\x93NUMPY") + version + '\0';
  const std::size_t length = dictionary.size();
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) start += static_cast<char>(length >> 8 * i & 0xff);
  return start + dictionary;
}

/// An array file: `type` as numpy writes it, "<f4".
inline std::string npy_content(const std::string& type, const std::vector<Index>& sizes,
                               const std::string& bytes, char version = 1) {
  return npy_start(fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}", type,
                               fmt::join(sizes, ", ")),
                   version) +
         bytes;
}

/// The numbers of an array file of float32, format 1.0.
inline std::vector<float> floats_in_npy(const std::string& file) {
  const auto header = static_cast<std::size_t>(static_cast<unsigned char>(file[8]) +
                                               256 * static_cast<unsigned char>(file[9]));
  std::vector<float> numbers((file.size() - 10 - header) / sizeof(float));
  std::memcpy(numbers.data(), file.data() + 10 + header, numbers.size() * sizeof(float));
  return numbers;
}

/// An archive of arrays (name and content), as numpy.savez or savez_compressed writes it.
inline void write_npz(const std::string& path, const std::vector<std::pair<std::string, std::string>>& arrays,
                      bool compressed) {
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  for (const auto& [name, content] : arrays) {
    zip_source_t* source = zip_source_buffer(archive, content.data(), content.size(), 0);
    const zip_int64_t place = zip_file_add(archive, (name + ".npy").c_str(), source, 0);
    zip_set_file_compression(archive, static_cast<zip_uint64_t>(place),
                             compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
  }
  zip_close(archive);
}

}  // namespace lockstep::test
