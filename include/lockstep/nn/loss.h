// A loss: how far a batch of outputs is from its targets, and the gradient of that. Always sums over samples;
// the division by the number of samples, or by the sum of their weights, happens once per step, after the
// exchange.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/math/matrix.h"
#include "lockstep/math/sample_weights.h"
#include "lockstep/nn/options.h"

namespace lockstep {

/// The kind of targets that a loss takes.
enum class TargetKind {
  kClass,   ///< one column: a whole number, 0 <= class < outputs
  kBinary,  ///< one column per output, each in [0, 1]
  kValue,   ///< one column per output, any finite number
};

class Loss {
 public:
  virtual ~Loss() = default;
  virtual TargetKind targets() const = 0;

  /// The sum over the n rows of the loss of each row (for a loss over several outputs: their mean).
  /// outputs: n x outputs; targets: n x (1 or outputs), see TargetKind; if `gradient` is given it becomes the
  /// derivative of that sum by the outputs (n x outputs). Not finite when the outputs are not.
  virtual double evaluate(const ConstMatrix& outputs, const ConstMatrix& targets, Matrix* gradient) const = 0;
};

/// Loss::evaluate with the loss of each row, and its gradient, multiplied by the weight of the row.
double evaluate_weighted(const Loss& loss, const ConstMatrix& outputs, const ConstMatrix& targets,
                         const SampleWeights& weights, Matrix* gradient);

struct LossEntry {
  std::string name;
  std::string help;                  ///< one sentence, with its formula or source
  std::vector<std::string> options;  ///< config keys that it reads, "train.label_smoothing"
  std::function<std::unique_ptr<Loss>(const LossOptions&)> make;
};

/// Every loss there is. To add one: src/README.md.
std::span<const LossEntry> loss_catalog();

}  // namespace lockstep
