// Little random data sets in files of any format that the program reads.
#pragma once

#include "lockstep/math/shape.h"
#include "support/dice.h"

namespace lockstep::test {

enum class Task { kClasses, kBinary, kValues };

struct DataSpec {
  std::string format;  ///< a name of the format catalog, but synthetic and cifar
  Task task = Task::kClasses;
  Index classes = 3;
  Shape features;       ///< tables and libsvm: a vector; of sequences positions x channels
  bool packed = false;  ///< gzip, or deflate, where the format has it
  bool sequence = false;
  bool padded = false;        ///< sequences of different lengths, whose padding nothing may see
  bool of_positions = false;  ///< each position of a sequence has a class of its own

  Index outputs() const { return task == Task::kClasses ? classes : 1; }
};

/// What the config says of the files of one set.
struct DataFiles {
  std::string records;
  std::string labels;   ///< "" where they are in the same file
  std::string lengths;  ///< "" where all positions count
};

/// Formats that a build reads and that these files can have.
std::vector<std::string> file_formats();

/// Writes `rows` records, whose labels depend on them. `stem`: the start of the files' paths.
DataFiles write_random_data(Dice& dice, const DataSpec& spec, const std::string& stem, Index rows);

/// Layout of such a file of format raw.
std::string raw_layout(const DataSpec& spec);

}  // namespace lockstep::test
