// Texts of random small models.
#pragma once

#include "support/dice.h"
#include "support/random_data.h"

namespace lockstep::test {

/// Layers from such records to what is learned of them. `modes`: batch norm may have modes of its own.
std::string draw_layers(Dice& dice, const DataSpec& data, bool modes);

}  // namespace lockstep::test
