#include "support/random_model.h"

#include <fmt/format.h>

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

// A row as a sequence, or "" where it is not several positions of equally many numbers.
std::string over_time(Dice& dice, Index size, bool modes) {
  Index positions = dice.whole(2, 6);
  while (size % positions != 0) --positions;
  if (positions < 2) return "";
  const std::string padding = dice.one_of({"causal", "same", "1"});
  std::string text =
      fmt::format("as_sequence({}) conv1d({}, 2, padding={}) ", positions, dice.whole(2, 6), padding);
  text += normalisation(dice, modes) + activation(dice) + " ";
  if (dice.chance(0.3)) text += "residual(conv1d(4, 3, stride=2, padding=same)) ";
  if (dice.chance(0.3)) text += "maxpool1d(2, padding=same) ";
  return text + dice.one_of({"last ", "mean_over_time ", "max_over_time ", "flatten "});
}

}  // namespace

std::string draw_layers(Dice& dice, const Shape& features, Index outputs, bool modes) {
  std::string text;
  if (features.dims.size() == 3) {
    for (Index i = dice.whole(1, 2); i-- > 0;) {
      text += convolution(dice) + " " + normalisation(dice, modes) + activation(dice) + " ";
    }
    text += dice.one_of({"flatten ", "global_avgpool ", "maxpool(2, padding=same) flatten "});
  } else if (dice.chance(0.3)) {
    text += over_time(dice, features.size(), modes);
  } else if (dice.chance(0.2)) {
    text += "batch_norm ";
  }
  for (Index i = dice.whole(0, 2); i-- > 0;) {
    text += hidden(dice) + " " + normalisation(dice, modes) + activation(dice) + " ";
    if (dice.chance(0.25)) text += "dropout(0.2) ";
  }
  return text + fmt::format("dense({})", outputs);
}

}  // namespace lockstep::test
