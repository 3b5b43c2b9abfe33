#include "lockstep/nn/preset.h"

#include <fmt/format.h>

#include <array>

#include "lockstep/base/catalog.h"

namespace lockstep {
namespace {

PresetEntry mlp() {
  return {.name = "mlp",
          .help = "a perceptron with relu and hidden layers of 256 and 128 (Glorot, Bordes & Bengio 2011)",
          .text = "flatten dense(256) relu dense(128) relu dense({outputs})"};
}

PresetEntry lenet5() {
  return {
      .name = "lenet5",
      .help =
          "LeNet-5 (LeCun et al. 1998, section II.B) for images of 28x28 and more, with all connections in "
          "the second convolution, averages without weights and a dense output",
      .text =
          "conv2d(6, 5, padding=2) tanh avgpool(2) conv2d(16, 5) tanh avgpool(2) flatten dense(120) tanh "
          "dense(84) tanh dense({outputs})"};
}

// Two convolutions and the addition of what went in; the first of a stage halves the image.
std::string resnet_block(Index channels, Index stride) {
  return fmt::format(
      "residual(conv2d({0}, 3, stride={1}, padding=1, bias=false) batch_norm relu conv2d({0}, 3, padding=1, "
      "bias=false) batch_norm) relu ",
      channels, stride);
}

PresetEntry resnet20() {
  std::string text = "conv2d(16, 3, padding=1, bias=false) batch_norm relu ";
  for (const Index channels : {16, 32, 64}) {
    text += resnet_block(channels, channels == 16 ? 1 : 2);
    text += resnet_block(channels, 1);
    text += resnet_block(channels, 1);
  }
  return {.name = "resnet20",
          .help =
              "the residual network of 20 layers for small images (He et al. 2015, section 4.2), whose "
              "shortcuts between stages are projections (option B) instead of padded with zeros (A)",
          .text = text + "global_avgpool dense({outputs})"};
}

PresetEntry wide_deep() {
  return {
      .name = "wide_deep",
      .help =
          "a linear part plus a perceptron with hidden layers of 128 and 64, for tables (Cheng et al. 2016)",
      .text = "flatten wide_deep(dense({outputs}) | dense(128) relu dense(64) relu dense({outputs}))"};
}

// Rows of a table whose numbers are in bins (data.scale): an ensemble of perceptrons that share their
// weights.
std::string ensemble(Index members, Index width) {
  const std::string hidden = fmt::format("tabm_dense({}) relu dropout(0.1) ", width);
  return fmt::format("scale tabm({}) {}{}tabm_heads({{outputs}})", members, hidden, hidden);
}

PresetEntry tabular() {
  return {.name = "tabular",
          .help =
              "for tables: an ensemble of 8 perceptrons with hidden layers of 128 that share their weights "
              "(TabM, Gorishniy et al. 2025); 'trainer init FILE --preset tabular' writes what suits it",
          .text = ensemble(8, 128)};
}

PresetEntry tabular_large() {
  return {
      .name = "tabular_large",
      .help =
          "as tabular, with 16 perceptrons and hidden layers of 256: ten times slower, better on some tables",
      .text = ensemble(16, 256)};
}

}  // namespace

std::span<const PresetEntry> preset_catalog() {
  static const std::array kEntries{mlp(), lenet5(), resnet20(), wide_deep(), tabular(), tabular_large()};
  return kEntries;
}

std::string preset_layers(std::string_view name, Index outputs) {
  return fmt::format(fmt::runtime(find_entry(preset_catalog(), "preset", name).text),
                     fmt::arg("outputs", outputs));
}

std::string model_text(const ModelOptions& options) {
  return options.preset.empty() ? options.layers : preset_layers(options.preset, options.outputs);
}

}  // namespace lockstep
