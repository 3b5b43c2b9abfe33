// The layers of a model as a table for people.
#pragma once

#include <string>
#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep {

/// One line for each layer: number and text, shape of the output, parameters, floating-point operations of
/// one sample in the forward pass, bytes that one sample leaves behind for the backward pass; and their
/// totals.
std::string model_table(const Model& model);
/// The cells of that table, its head first.
std::vector<std::vector<std::string>> model_rows(const Model& model);

}  // namespace lockstep
