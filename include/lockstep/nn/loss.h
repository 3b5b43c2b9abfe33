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
#include "lockstep/math/shape.h"
#include "lockstep/nn/options.h"

namespace lockstep {

/// The kind of targets that a loss takes.
enum class TargetKind {
  kClass,   ///< one column: a whole number, 0 <= class < outputs
  kBinary,  ///< one column per output, each in [0, 1]
  kValue,   ///< one column per OutputForm::outputs_per_target() outputs, a finite number
};

/// How an output of a model becomes a prediction; named by the inverse, as statistics does.
enum class Link {
  kIdentity,  ///< the output is the prediction
  kLog,       ///< e^output, the mean of a target that is never negative
  kLogit,     ///< sigmoid(output), the probability of yes
  kSoftmax,   ///< softmax of the row, the probabilities of its classes
};

/// The meaning that a loss gives the outputs of a model: all that checks of targets, metrics, predictions and
/// exports have to know of the loss.
struct OutputForm {
  /// The usual form for such targets: probabilities of classes and of yes, values as they are.
  OutputForm(TargetKind kind);  // NOLINT(google-explicit-constructor): a kind alone is a form
  OutputForm(TargetKind kind, Link link_of_outputs, double power_of_mean = 0)
      : targets(kind), link(link_of_outputs), power(power_of_mean) {}

  TargetKind targets;
  Link link;
  /// The power of the mean that the variance of values grows with: 1 as for counts (Poisson), 2 as for
  /// amounts (gamma), between them Tweedie's, 0 any. From 1 on targets are 0 or more, from 2 on above 0.
  double power = 0;
  /// Levels for each of which a target, a value, has an output; empty: it has one output.
  std::vector<double> quantiles = {};
  /// Whether only the direction of a row of values means something, not its length.
  bool direction = false;
  /// Above 0: the outputs are those of so many positions, each with targets of its own (over_positions()).
  Index positions = 0;

  Index outputs_per_target() const { return quantiles.empty() ? 1 : std::ssize(quantiles); }
  /// The outputs of a position, where a model has that many.
  Index outputs_of_position(Index outputs) const { return positions > 0 ? outputs / positions : outputs; }
};

class Loss {
 public:
  virtual ~Loss() = default;
  virtual TargetKind targets() const = 0;
  virtual OutputForm form() const { return {targets()}; }
  /// Whether NaN among several targets of a row is a missing one: it adds 0 to the mean over the outputs.
  virtual bool takes_missing_targets() const { return false; }
  /// kClass: whether a row of targets may be the probabilities of all classes instead of a class number.
  virtual bool takes_probabilities() const { return false; }

  /// The sum over the n rows of the loss of each row (for a loss over several outputs: their mean).
  /// outputs: n x outputs; targets: n x (1 or outputs), see TargetKind and OutputForm; if `gradient` is given
  /// it becomes the derivative of that sum by the outputs (n x outputs). Not finite when the outputs are not.
  virtual double evaluate(const ConstMatrix& outputs, const ConstMatrix& targets, Matrix* gradient) const = 0;
  /// The loss of a position, for one over_positions(); else this.
  virtual const Loss& of_position() const { return *this; }
  /// Gives each position the weight of its class, for one over_positions(). They outlive the loss.
  virtual void weigh_classes(std::span<const Scalar> /*of_class*/) {}
  /// Empty: all count alike.
  virtual std::span<const Scalar> class_weights() const { return {}; }
};

/// A loss for a model that gives a sequence: its mean over the positions of a row, with outputs
/// n x (positions x outputs of each) and targets n x (positions x targets of each). A position whose targets
/// are all missing adds 0. Else `loss` as it is, also where targets of numbers or of yes and no are `named`:
/// columns of a table have names and scales of their own, and are no positions.
std::unique_ptr<Loss> over_positions(std::unique_ptr<Loss> loss, const Shape& output, bool named = false);

/// Loss::evaluate with the loss of each row, and its gradient, multiplied by the weight of the row.
double evaluate_weighted(const Loss& loss, const ConstMatrix& outputs, const ConstMatrix& targets,
                         const SampleWeights& weights, Matrix* gradient);

/// As evaluate_weighted, but the mean of the losses of the members of an ensemble. outputs and gradient: n x
/// (members * outputs), those of a sample's members side by side.
double evaluate_members(const Loss& loss, Index members, const ConstMatrix& outputs,
                        const ConstMatrix& targets, const SampleWeights& weights, Matrix& gradient);

struct LossEntry {
  std::string name;
  std::string help;                  ///< one sentence, with its formula or source
  std::vector<std::string> options;  ///< config keys that it reads, "train.label_smoothing"
  std::function<std::unique_ptr<Loss>(const LossOptions&)> make;
};

/// Every loss there is. To add one: src/README.md.
std::span<const LossEntry> loss_catalog();

}  // namespace lockstep
