// Turns the terms of a model text into ops, with the layouts of their tensors.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "lockstep/base/errors.h"
#include "lockstep/base/terms.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/model.h"

namespace lockstep {

class ModelBuilder {
 public:
  /// Tensors of ops outside `kept` get no memory in the layouts.
  ModelBuilder(const ModelOptions& options, const Shape& input, std::span<const Range> kept);

  /// Shape of what an op gives, or of the model's input.
  const Shape& shape(Index op) const { return op == kModelInput ? input_ : at(ops_, op).out; }
  /// Adds a chain of terms behind `input`, named "path.0", "path.1", ...; gives its last op.
  Index add_chain(std::span<const Term> chain, Index input, const std::string& path);
  /// Adds one layer; `text` is for messages.
  Index add_layer(std::unique_ptr<Layer> layer, std::vector<Index> inputs, const std::string& path,
                  const std::string& text);
  /// Makes a layer from its text and adds it.
  Index add_layer(const std::string& text, Index input, const std::string& path);
  /// An error that names the term at `path`.
  ConfigError error(const std::string& path, const std::string& text, const std::string& problem) const;

  const std::vector<ModelOp>& nodes() const { return ops_; }
  std::vector<ModelOp> take_nodes() { return std::move(ops_); }
  const Layout& weights() const { return weights_; }
  const Layout& state() const { return state_; }
  const Layout& borrowed() const { return borrowed_; }

 private:
  class Declarer;

  Index add_term(const Term& term, Index input, const std::string& path);
  // Fills in lengths_in and lengths_out. Errors: ConfigError if the inputs have lengths of their own.
  void find_lengths(ModelOp& op) const;

  std::string option_;  // option that the text comes from, for messages
  Initialiser initialiser_;
  BatchNormMode batch_norm_;
  Precision precision_;
  Shape input_;
  std::vector<ModelOp> ops_;
  std::vector<Range> kept_;
  Layout weights_;
  Layout state_;
  Layout borrowed_;                                     // of ops outside kept_, for ops in it
  Layout others_;                                       // tensors of ops outside kept_
  std::unordered_map<std::string, ParamInfo> by_name_;  // weights that can be shared
};

/// The last op of an ensemble, from {members, outputs} to {outputs}: the outputs of its members become those
/// of the model, such that its prediction is the mean of theirs. `link`: how outputs become predictions.
std::unique_ptr<Layer> join_members(Link link);

/// The op before all layers: scales the past of each label.
std::unique_ptr<Layer> scale_windows(const WindowScaling& scaling);
/// The op behind them, of their outputs and the model's input: undoes that for each of `members`.
std::unique_ptr<Layer> unscale_windows(const WindowScaling& scaling, Index members);

/// Positions x channels become positions x what the layer makes of a vector of channels, with the same
/// weights at each position (PyTorch: Linear, LayerNorm, BatchNorm1d or Embedding of a sequence). Statistics
/// over the batch are those of the positions that count.
std::unique_ptr<Layer> on_positions(std::unique_ptr<Layer> layer);

}  // namespace lockstep
