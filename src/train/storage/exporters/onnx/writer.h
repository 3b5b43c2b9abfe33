// onnx/writer.cpp where the build has the library, else onnx/missing.cpp, which says how to get it.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "graph.h"
#include "lockstep/train/storage/exporter.h"

namespace lockstep {

void write_onnx(const ModelToExport& exported, OutputFile& output);

// A file's account of itself beside its graph, as texts by name.

/// Adds, as JSON, "versions"; the facts of the run; and for a table whose columns are the inputs "columns",
/// "targets", "classes" and "outputs".
void add_metadata(onnx::ModelProto& file, const ModelToExport& exported);

// The answer of a model: what a prediction says of its outputs.

/// The words of the answer of a model of a table.
struct AnswerNames {
  std::vector<std::string> targets;  ///< columns that are predicted
  /// Classes by number: one list if the outputs are those of one target, else for each target no and yes;
  /// empty if the answer is numbers.
  std::vector<std::vector<std::string>> classes;
  std::vector<std::string> outputs;  ///< one for each output: its class, its target, or "TARGET_q0.1"
};

/// Requires a schema.
AnswerNames answer_names(const ModelToExport& exported);

/// Adds "probabilities" or "predictions" of `outputs`, float [N, outputs], if a prediction gives other
/// numbers than these.
void add_predictions(OnnxGraph& graph, const ModelToExport& exported, const std::string& outputs);

/// Adds the answer of a model of a table: "label", the names of classes, with "probabilities" if there are
/// any, of one yes or no those of both; or "predictions", numbers in the units of the table.
void add_answer(OnnxGraph& graph, const ModelToExport& exported, const std::string& outputs);

}  // namespace lockstep
