// The layers of a model as a table for people.
#pragma once

#include <string>

#include "lockstep/nn/model.h"

namespace lockstep {

/// One line for each layer: number and text, shape of the output, parameters, floating-point operations of
/// one sample in the forward pass, bytes that one sample leaves behind for the backward pass; and their
/// totals.
std::string model_table(const Model& model);

}  // namespace lockstep
