// Writes HDF5 files; for builds with the library.
#pragma once

#include "lockstep/base/types.h"

#if LOCKSTEP_HAS_HDF5
#include <hdf5.h>

#include <string>
#include <vector>

namespace lockstep::test {

/// How the rows of a data set are stored.
struct Hdf5Chunks {
  Index rows = 0;  ///< in a chunk; 0: all in one piece
  bool deflate = false;
  std::string external = {};    ///< file that holds the numbers instead
  std::string virtual_of = {};  ///< file whose data set "x" of the same sizes is shown
};

class Hdf5File {
 public:
  explicit Hdf5File(const std::string& path)
      : file_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {}
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;
  ~Hdf5File() { H5Fclose(file_); }

  /// `data`: of the type `memory`; null leaves it unwritten. Groups in the name are made.
  void add(const std::string& name, hid_t type, hid_t memory, const std::vector<Index>& sizes,
           const void* data, const Hdf5Chunks& chunks = {}) {
    const std::vector<hsize_t> dims(sizes.begin(), sizes.end());
    const hid_t space = H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
    const hid_t links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    const hid_t storage = H5Pcreate(H5P_DATASET_CREATE);
    if (chunks.rows > 0) {
      std::vector<hsize_t> chunk = dims;
      chunk[0] = static_cast<hsize_t>(chunks.rows);
      H5Pset_chunk(storage, static_cast<int>(chunk.size()), chunk.data());
    }
    if (chunks.deflate) H5Pset_deflate(storage, 6);
    if (!chunks.external.empty()) H5Pset_external(storage, chunks.external.c_str(), 0, H5F_UNLIMITED);
    if (!chunks.virtual_of.empty()) H5Pset_virtual(storage, space, chunks.virtual_of.c_str(), "x", space);
    const hid_t dataset = H5Dcreate2(file_, name.c_str(), type, space, links, storage, H5P_DEFAULT);
    if (data != nullptr) H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    H5Dclose(dataset);
    H5Pclose(storage);
    H5Pclose(links);
    H5Sclose(space);
  }

  void link(const std::string& name, const std::string& file, const std::string& dataset) {
    H5Lcreate_external(file.c_str(), dataset.c_str(), file_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
  }

 private:
  hid_t file_;
};

}  // namespace lockstep::test
#endif
