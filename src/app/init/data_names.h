// The files beside a data file that belong to it, found by their names: the labels of its records, and its
// validation and test sets. "x_train.npy" has its labels in "y_train.npy" and its test set in "x_test.npy".
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// Whether an array or file of that name is there ("data.h5:x": that the file has the array). Errors: as of
/// list_arrays.
bool data_exists(const std::string& path);

/// The labels of the records in `path`, which is a file or an array of one; nothing if none are found.
std::optional<std::string> find_labels(const std::string& path);

/// The data in which one of `words`, such as "test", stands where `path` has "train"; nothing if there is
/// none.
std::optional<std::string> find_beside(const std::string& path, const std::vector<std::string>& words);

inline const std::vector<std::string> kTestWords{"test", "testing", "t10k"};
inline const std::vector<std::string> kValidationWords{"validation", "valid", "val", "dev"};

}  // namespace lockstep
