#include "support/random_data.h"

#include "lockstep/base/file.h"
#include "lockstep/data/formats/format.h"
#include "support/hdf5_files.h"
#include "support/idx_files.h"
#include "support/numpy_files.h"

namespace lockstep::test {
namespace {

struct Rows {
  std::vector<float> features;
  std::vector<float> labels;  // classes from 0, 0 or 1, or any number
  std::vector<float> lengths;
  std::vector<Index> label_sizes;

  Index count() const { return label_sizes.front(); }
};

// A class for each record, or for each position, which the first channel tells; padding is full of numbers
// that would show in anything that saw them.
Rows draw_sequences(Dice& dice, const DataSpec& spec, Index rows) {
  const Index positions = spec.features.dims[0];
  Rows drawn{.features = {}, .labels = {}, .lengths = {}, .label_sizes = {rows}};
  if (spec.of_positions) drawn.label_sizes.push_back(positions);
  const float padding = dice.chance(0.5) ? std::numeric_limits<float>::quiet_NaN() : 1e30F;
  for (Index row = 0; row < rows; ++row) {
    const Index length = spec.padded ? dice.whole(1, positions) : positions;
    if (spec.padded) drawn.lengths.push_back(static_cast<float>(length));
    Index label = dice.whole(0, spec.outputs() > 1 ? spec.classes - 1 : 1);
    for (Index position = 0; position < positions; ++position) {
      const bool counts = position < length;
      if (spec.of_positions) label = dice.whole(0, spec.classes - 1);
      for (Index channel = 0; channel < spec.features.dims[1]; ++channel) {
        const double value = dice.normal() + (channel == 0 ? 2 * static_cast<double>(label) : 0);
        drawn.features.push_back(counts ? static_cast<float>(value) : padding);
      }
      if (spec.of_positions) drawn.labels.push_back(static_cast<float>(counts ? label : 99));
    }
    const double noise = spec.task == Task::kValues ? 0.1 * dice.normal() : 0;
    if (!spec.of_positions) drawn.labels.push_back(static_cast<float>(static_cast<double>(label) + noise));
  }
  return drawn;
}

// The first feature tells the label, but for noise.
Rows draw_rows(Dice& dice, const DataSpec& spec, Index rows) {
  if (spec.sequence) return draw_sequences(dice, spec, rows);
  Rows drawn{.features = {}, .labels = {}, .lengths = {}, .label_sizes = {rows}};
  for (Index row = 0; row < rows; ++row) {
    const Index label = spec.task == Task::kClasses ? dice.whole(0, spec.classes - 1) : dice.whole(0, 1);
    const double centre = static_cast<double>(label);
    const std::size_t first = drawn.features.size();
    for (Index i = 0; i < spec.features.size(); ++i)
      drawn.features.push_back(static_cast<float>(dice.normal() + (i == 0 ? 2 * centre : 0)));
    const double value = static_cast<double>(drawn.features[first]) + 0.1 * dice.normal();
    drawn.labels.push_back(static_cast<float>(spec.task == Task::kValues ? value : centre));
  }
  return drawn;
}

// Numbers with a category, a gap now and then, weights, and classes as texts.
DataFiles write_csv(Dice& dice, const DataSpec& spec, const std::string& stem, const Rows& rows) {
  const Index width = spec.features.size();
  std::string text;
  for (Index i = 0; i < width; ++i) text += fmt::format("x{},", i);
  text += "kind,share,y\n";
  for (Index row = 0; row < rows.count(); ++row) {
    for (Index i = 0; i < width; ++i) {
      const float value = at(rows.features, row * width + i);
      text += dice.chance(0.02) ? "," : fmt::format("{},", value);
    }
    text += fmt::format("\"{}\",{},", dice.one_of({"red", "green, dark", "blue"}), dice.whole(0, 3));
    const float label = at(rows.labels, row);
    text += spec.task == Task::kClasses ? fmt::format("class{}\n", label) : fmt::format("{}\n", label);
  }
  const std::string path = stem + (spec.packed ? ".csv.gz" : ".csv");
  write_file_atomically(path, spec.packed ? gzipped(text) : text);
  return {.records = path, .labels = "", .lengths = ""};
}

DataFiles write_libsvm(Dice& dice, const DataSpec& spec, const std::string& stem, const Rows& rows) {
  const Index width = spec.features.size();
  std::string text;
  for (Index row = 0; row < rows.count(); ++row) {
    text += fmt::format("{}", at(rows.labels, row));
    for (Index i = 0; i < width; ++i) {
      const bool last = i + 1 == width;  // so that all files have as many columns
      if (last || dice.chance(0.8)) text += fmt::format(" {}:{}", i + 1, at(rows.features, row * width + i));
    }
    text += '\n';
  }
  const std::string path = stem + (spec.packed ? ".libsvm.gz" : ".libsvm");
  write_file_atomically(path, spec.packed ? gzipped(text) : text);
  return {.records = path, .labels = "", .lengths = ""};
}

std::vector<Index> sizes_of(const DataSpec& spec, Index rows) {
  std::vector<Index> sizes{rows};
  sizes.insert(sizes.end(), spec.features.dims.begin(), spec.features.dims.end());
  return sizes;
}

// Bytes, which are read as 0 to 1.
std::vector<double> as_bytes(const std::vector<float>& values) {
  std::vector<double> bytes;
  for (const float value : values)
    bytes.push_back(std::clamp(std::round(128 + 20 * static_cast<double>(value)), 0.0, 255.0));
  return bytes;
}

DataFiles write_idx_files(const DataSpec& spec, const std::string& stem, const Rows& rows) {
  const std::string end = spec.packed ? "-ubyte.gz" : "-ubyte";
  const DataFiles files{
      .records = stem + "-records-idx" + end, .labels = stem + "-labels-idx" + end, .lengths = ""};
  write_idx(files.records, idx_content(IdxType::kU8, sizes_of(spec, rows.count()), as_bytes(rows.features)));
  const IdxType type = spec.task == Task::kValues ? IdxType::kF32 : IdxType::kU8;
  write_idx(files.labels, idx_content(type, {rows.count()}, {rows.labels.begin(), rows.labels.end()}));
  return files;
}

DataFiles write_numpy(Dice& dice, const DataSpec& spec, const std::string& stem, const Rows& rows) {
  const std::string features = npy_content("<f4", sizes_of(spec, rows.count()), bytes_of(rows.features));
  const std::vector<std::int64_t> numbers(rows.labels.begin(), rows.labels.end());
  const bool values = spec.task == Task::kValues;
  const std::string labels = npy_content(values ? "<f4" : "<i8", rows.label_sizes,
                                         values ? bytes_of(rows.labels) : bytes_of(numbers));
  std::vector<std::pair<std::string, std::string>> arrays{{"x", features}, {"y", labels}};
  if (spec.padded) {
    const std::vector<std::int32_t> lengths(rows.lengths.begin(), rows.lengths.end());
    arrays.emplace_back("lengths", npy_content("<i4", {rows.count()}, bytes_of(lengths)));
  }
  if (dice.chance(0.5)) {
    write_npz(stem + ".npz", arrays, spec.packed);
    return {.records = stem + ".npz:x",
            .labels = stem + ".npz:y",
            .lengths = spec.padded ? stem + ".npz:lengths" : ""};
  }
  const std::string end = spec.packed ? ".npy.gz" : ".npy";
  for (const auto& [name, content] : arrays)
    write_file_atomically(fmt::format("{}-{}{}", stem, name, end), spec.packed ? gzipped(content) : content);
  return {.records = stem + "-x" + end,
          .labels = stem + "-y" + end,
          .lengths = spec.padded ? stem + "-lengths" + end : ""};
}

DataFiles write_hdf5([[maybe_unused]] Dice& dice, [[maybe_unused]] const DataSpec& spec,
                     const std::string& stem, [[maybe_unused]] const Rows& rows) {
#if LOCKSTEP_HAS_HDF5
  Hdf5File file(stem + ".h5");
  const Hdf5Chunks chunks{.rows = spec.packed ? dice.whole(1, rows.count()) : 0, .deflate = spec.packed};
  file.add("x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, sizes_of(spec, rows.count()), rows.features.data(), chunks);
  file.add("labels/y", spec.task == Task::kValues ? H5T_IEEE_F32LE : H5T_STD_I16LE, H5T_NATIVE_FLOAT,
           rows.label_sizes, rows.labels.data(), chunks);
  if (spec.padded)
    file.add("lengths", H5T_STD_I32LE, H5T_NATIVE_FLOAT, {rows.count()}, rows.lengths.data(), chunks);
#endif
  return {.records = stem + ".h5:x",
          .labels = stem + ".h5:/labels/y",
          .lengths = spec.padded ? stem + ".h5:lengths" : ""};
}

DataFiles write_raw(const DataSpec& spec, const std::string& stem, const Rows& rows) {
  std::string bytes;
  const auto width = static_cast<std::size_t>(spec.features.size());
  for (std::size_t row = 0; row < rows.labels.size(); ++row) {
    bytes += bytes_of(std::vector<float>{rows.labels[row]});
    const auto first = rows.features.begin() + static_cast<std::ptrdiff_t>(row * width);
    bytes += bytes_of(std::vector<float>(first, first + static_cast<std::ptrdiff_t>(width)));
  }
  write_file_atomically(stem + ".bin", bytes);
  return {.records = stem + ".bin", .labels = "", .lengths = ""};
}

}  // namespace

std::vector<std::string> file_formats() {
  std::vector<std::string> names{"csv", "libsvm", "idx", "numpy", "raw"};
#if LOCKSTEP_HAS_HDF5
  names.push_back("hdf5");
#endif
  return names;
}

DataFiles write_random_data(Dice& dice, const DataSpec& spec, const std::string& stem, Index rows) {
  const Rows drawn = draw_rows(dice, spec, rows);
  if (spec.format == "csv") return write_csv(dice, spec, stem, drawn);
  if (spec.format == "libsvm") return write_libsvm(dice, spec, stem, drawn);
  if (spec.format == "idx") return write_idx_files(spec, stem, drawn);
  if (spec.format == "numpy") return write_numpy(dice, spec, stem, drawn);
  if (spec.format == "hdf5") return write_hdf5(dice, spec, stem, drawn);
  return write_raw(spec, stem, drawn);
}

std::string raw_layout(const DataSpec& spec) {
  return fmt::format("label:f32 features:f32[{}]", fmt::join(spec.features.dims, ","));
}

namespace {

std::string activation(Dice& dice) {
  return dice.one_of({"relu", "tanh", "gelu", "leaky_relu", "silu", "sigmoid"});
}

std::string normalisation(Dice& dice, bool modes) {
  if (dice.chance(0.5)) return "";
  if (dice.chance(0.3)) return "layer_norm ";
  if (!modes || dice.chance(0.8)) return "batch_norm ";
  return "batch_norm(mode=" + dice.one_of({"local", "averaged", "sync", "group(2)"}) + ") ";
}

std::string hidden(Dice& dice) {
  const Index units = dice.whole(2, 20);
  switch (dice.whole(0, 6)) {
    case 0:
      return fmt::format("residual(dense({}) relu dense({}))", units, units);
    case 1:
      return fmt::format("concat(dense({}) | dense(3) tanh)", units);
    case 2:
      return fmt::format("wide_deep(dense({}) | dense(4) relu dense({}))", units, units);
    default:
      return fmt::format("dense({})", units);
  }
}

std::string convolution(Dice& dice) {
  const Index channels = dice.whole(2, 6);
  switch (dice.whole(0, 3)) {
    case 0:
      return fmt::format("conv2d({}, 3, padding=same, bias=false)", channels);
    case 1:
      return fmt::format("residual(conv2d({}, 3, padding=1) batch_norm relu conv2d({}, 3, padding=1))",
                         channels, channels);
    case 2:
      return fmt::format("conv2d({}, 3, stride=2, padding=1)", channels);
    default:
      return fmt::format("conv2d({}, 2)", channels);
  }
}

// A small recurrent layer.
std::string recurrence(Dice& dice) {
  const std::string words = dice.one_of({"", "", ", bidirectional=true", ", layers=2"});
  return fmt::format("{}({}{}) ", dice.one_of({"lstm", "gru"}), dice.whole(2, 5), words);
}

// From a sequence to one, where each position has a class, or to a row.
std::string over_time(Dice& dice, const DataSpec& data, bool modes) {
  std::string text;
  if (dice.chance(0.7)) {
    std::vector<std::string> paddings{"causal", "same"};
    if (!data.of_positions) paddings.insert(paddings.end(), {"valid", "1"});
    text += fmt::format("conv1d({}, 2, padding={}) ", dice.whole(2, 6), dice.one_of(paddings));
    text += normalisation(dice, modes) + activation(dice) + " ";
  }
  if (dice.chance(0.4)) text += recurrence(dice);
  if (dice.chance(0.3)) {
    const Index stride = data.of_positions ? 1 : 2;
    text += fmt::format("residual(conv1d(4, 3, stride={}, padding=same)) ", stride);
  }
  if (data.of_positions) return text;
  if (dice.chance(0.3)) text += dice.one_of({"maxpool1d(2, padding=same) ", "avgpool1d(2, padding=same) "});
  std::vector<std::string> ends{"last ", "mean_over_time ", "max_over_time "};
  if (!data.padded) ends.emplace_back("flatten ");
  return text + dice.one_of(ends);
}

// A row as a sequence, or "" where it is not several positions of equally many numbers.
std::string row_over_time(Dice& dice, const DataSpec& data, bool modes) {
  // A table has as many features as its columns are encoded in.
  const Index size = data.format == "csv" ? 1 : data.features.size();
  Index positions = dice.whole(2, 6);
  while (size % positions != 0) --positions;
  return positions < 2 ? "" : fmt::format("as_sequence({}) ", positions) + over_time(dice, data, modes);
}

}  // namespace

std::string draw_layers(Dice& dice, const DataSpec& data, bool modes) {
  std::string text;
  if (data.features.dims.size() == 3) {
    for (Index i = dice.whole(1, 2); i-- > 0;)
      text += convolution(dice) + " " + normalisation(dice, modes) + activation(dice) + " ";
    text += dice.one_of({"flatten ", "global_avgpool ", "maxpool(2, padding=same) flatten "});
  } else if (data.sequence) {
    text += over_time(dice, data, modes);
  } else if (dice.chance(0.3)) {
    text += row_over_time(dice, data, modes);
  } else if (dice.chance(0.2)) {
    text += "batch_norm ";
  }
  for (Index i = dice.whole(0, 2); i-- > 0;) {
    text += hidden(dice) + " " + normalisation(dice, modes) + activation(dice) + " ";
    if (dice.chance(0.25)) text += "dropout(0.2) ";
  }
  return text + fmt::format("dense({})", data.outputs());
}

}  // namespace lockstep::test
