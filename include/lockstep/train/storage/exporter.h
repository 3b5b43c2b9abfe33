// Trained models in the files of other programs.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/output_file.h"
#include "lockstep/data/loading/augmenter.h"
#include "lockstep/data/table/values/schema.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/params.h"

namespace lockstep {

/// All that makes predictions out of records. Borrowed.
struct ModelToExport {
  const Model& model;
  ParamStore store;              ///< its weights and running moments, as in its stored_layout()
  const Normaliser& normaliser;  ///< applied to records before the model
  OutputForm form;               ///< form of its outputs
  std::span<const LabelScale> label_scales = {};  ///< one for each target; empty: none
  Scalar temperature = 1;                         ///< what the outputs are divided by
  std::optional<double> threshold = {};  ///< probability from which on one yes or no is yes; none: one half
  bool lengths = false;                  ///< records are sequences that say how many positions count
  bool tokens = false;                   ///< records are numbers of tokens, which the file takes as such
  const TableSchema* schema = nullptr;   ///< schema of the table whose columns are records; null: none
  std::vector<std::pair<std::string, std::string>> facts = {};  ///< facts of the run, by name, as JSON
};

struct ExporterEntry {
  std::string name;          ///< "npz"
  std::string help;          ///< one sentence: what the file holds, and who reads it
  std::string feature = {};  ///< the feature of the build that it needs, see build_info(); "" for none
  bool encodes = false;  ///< its file makes features of the columns of a table, so that none else needs to
  /// Writes to a file that the caller commits; the same weights give the same bytes.
  /// Errors: DataError; ConfigError naming the layer if the format has no words for it.
  std::function<void(const ModelToExport&, OutputFile&)> write;
};

/// Every exporter there is. To add one: src/README.md.
std::span<const ExporterEntry> exporter_catalog();

}  // namespace lockstep
