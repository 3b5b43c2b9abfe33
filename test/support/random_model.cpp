#include "support/random_model.h"

namespace lockstep::test {
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
