// The plans of a run for several numbers of ranks, for people.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/nn/model.h"
#include "lockstep/train/plan/run_plan.h"
#include "lockstep/train/storage/run_record.h"

namespace lockstep {

/// The plans side by side, one column for each, as text with one plain sentence at the end for what people
/// most often get wrong.
std::string plan_table(std::span<const RunPlan> plans);

/// A plan for programs: numbers, the rows of that table, the lines that follow it, and the layers.
PlanRecord plan_record(const RunPlan& plan, const Model& model);

/// The plan in a few lines: how long the run is, how large the model, and those plain sentences.
std::string plan_summary(const RunPlan& plan);

// The layers of a model as a table for people.

/// One line for each layer: number and text, shape of the output, parameters, floating-point operations of
/// one sample in the forward pass, bytes that one sample leaves behind for the backward pass; and their
/// totals.
std::string model_table(const Model& model);
/// The cells of that table, its head first.
std::vector<std::vector<std::string>> model_rows(const Model& model);

}  // namespace lockstep
