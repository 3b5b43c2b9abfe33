// Texts of random small models.
#pragma once

#include <string>

#include "lockstep/math/shape.h"
#include "support/dice.h"

namespace lockstep::test {

/// Layers from such records to so many outputs. `modes`: batch norm may have modes of its own.
std::string draw_layers(Dice& dice, const Shape& features, Index outputs, bool modes);

}  // namespace lockstep::test
