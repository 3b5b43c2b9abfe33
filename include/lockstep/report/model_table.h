// What a model consists of, layer by layer, for people.
#pragma once

#include <string>

#include "lockstep/nn/model.h"

namespace lockstep {

/// One line for each layer: number and text, shape of the output, parameters, floating-point operations of
/// one sample going forward, bytes that one sample leaves behind for the way back; and their totals.
std::string model_table(const Model& model);

}  // namespace lockstep
