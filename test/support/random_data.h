// Random choices that can be drawn again, from a seed and the number of the case; little random data sets, in
// files of any format that the program reads, and texts of models for them.
#pragma once

#include "lockstep/base/types.h"
#include "lockstep/math/shape.h"
#include "support/common.h"

namespace lockstep::test {

class Dice {
 public:
  Dice(std::uint64_t seed, Index number) {
    const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
    std::seed_seq words{low(seed), low(seed >> 32), low(static_cast<std::uint64_t>(number))};
    random_.seed(words);
  }

  Index whole(Index least, Index most) { return std::uniform_int_distribution<Index>(least, most)(random_); }
  double real(double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random_);
  }
  double normal() { return std::normal_distribution<double>()(random_); }
  bool chance(double probability) { return real(0, 1) < probability; }
  std::string one_of(const std::vector<std::string>& texts) {
    return at(texts, whole(0, std::ssize(texts) - 1));
  }

 private:
  std::mt19937_64 random_;
};

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

/// Layers from such records to what is learned of them. `modes`: batch norm may have modes of its own.
std::string draw_layers(Dice& dice, const DataSpec& data, bool modes);

}  // namespace lockstep::test
