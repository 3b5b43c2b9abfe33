// An experiment: the config turned into concrete objects, all shapes checked against each other, before any
// record is read.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lockstep/config/config.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/loading/augmenter.h"
#include "lockstep/distributed/update.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/model.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/train/evaluation/early_stopping.h"
#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/plan/run_plan.h"

namespace lockstep {

struct Experiment {
  Config config;                             ///< nobody else keeps it, or changes it
  std::unique_ptr<RecordSource> train;       ///< null only for a finished model
  std::unique_ptr<RecordSource> validation;  ///< may be null
  std::unique_ptr<RecordSource> test;        ///< may be null
  std::unique_ptr<Model> model;
  std::vector<std::unique_ptr<Model>> stages;  ///< that the model is divided into; empty: it is not
  std::unique_ptr<Loss> loss;
  std::unique_ptr<MetricSet> metrics;    ///< null until data are opened
  std::unique_ptr<Optimizer> optimizer;  ///< null for a finished model
  std::unique_ptr<Normaliser> normaliser;
  HoldOut held = {};                     ///< the records of data.train that are the validation set
  std::unique_ptr<Augmenter> augmenter;  ///< changes the training samples; may be null
  std::shared_ptr<const std::vector<Scalar>> lengths;  ///< of the training samples, for buckets; else null
  /// The weights of the classes as the config states them; empty: none, or they are to be balanced.
  std::vector<Scalar> stated_class_weights;
  /// *Local.* Continues report.sample with these values of the model, always by the same draws; null: nothing
  /// is continued. Errors: DataError if the model gives what is no finite number.
  std::function<std::string(const ModelValues&)> continue_sample;

  /// The data sets that there are, three at most.
  std::vector<const RecordSource*> sources() const;
  /// The stages that distribute.stages, cut and schedule make of the model; none if it stays whole or they
  /// are not chosen yet. Errors: ConfigError.
  std::vector<std::unique_ptr<Model>> divided(const DistOptions& distribute) const;
  /// So many stages, which have these parts of the model (chunks_of_stages()).
  std::vector<std::unique_ptr<Model>> stages_of(std::span<const Range> parts, Index count) const;
  /// On so many ranks; `node_sizes`: those of each node, in order, empty: all are on one.
  RunPlan plan(Index world, const std::vector<Index>& node_sizes) const {
    return plan(config, world, node_sizes);
  }
  /// The plan of another config for the same data and model. distribute.stages = "auto" counts as the stages
  /// that this experiment has.
  RunPlan plan(const Config& other, Index world, const std::vector<Index>& node_sizes) const;
  /// The class that is yes; "" where there are not two.
  std::string positive_class() const;
  /// The request for that plan, with these stages. It refers to `other` and to them, which outlive it.
  RunPlanRequest plan_request(const Config& other, std::span<const std::unique_ptr<Model>> parts, Index world,
                              const std::vector<Index>& node_sizes) const;
  std::uint64_t seed() const { return static_cast<std::uint64_t>(config.run.seed); }
  /// The model of a rank that runs this stage: all of it, where it is not divided.
  const Model& model_of(Index stage) const { return stages.empty() ? *model : *at(stages, stage); }
  /// For the tensors of this stage.
  UpdateRules update_rules(Index stage = 0) const;
  TargetRule target_rule() const;
  /// See label_scales(); those of the data that the model is trained on.
  std::vector<LabelScale> scales() const;
  /// The characters of each token; none where the data are no texts.
  std::vector<double> characters() const;
  /// The measure of train.early_stopping_metric. Errors: ConfigError if it is none of this model.
  Measure deciding_measure() const;
  /// Outputs of the model, or of each position that has a class.
  Index outputs() const { return loss->form().outputs_of_position(model->output().size()); }
  /// Classes that train.class_weights is about.
  Index classes() const;
  /// Whether the samples of a set of this split, whose source says that, are weighed by their classes.
  bool weighs_classes(Split split) const;
  /// *Collective.* The weight of each class, those to be balanced counted in the training set; empty: none.
  /// Errors, as PeerGroup::agree throws them: DataError.
  std::vector<Scalar> class_weights(PeerGroup& peers) const;
  /// Whether model and loss suit the targets of one of sources().
  FitQuestion fit(const RecordSource& source) const;
};

/// *Collective.* Opens the data and builds the model. `schema`: of the data that the model was trained on;
/// "": it is learnt. Errors, as PeerGroup::agree throws them: ConfigError, DataError.
Experiment make_experiment(Config config, PeerGroup& peers, const std::string& schema = "");

/// Builds model and loss by the config, for records of this shape. `named`: see over_positions(). Errors:
/// ConfigError.
void build_model(Experiment& experiment, const Shape& input, bool named);

/// *Collective.* Opens the sets of `splits` alone for a model that is built and was trained on data with that
/// schema (and the training data only where part of it is held back for one of them). Errors as those of
/// make_experiment().
void open_evaluated(Experiment& experiment, const std::set<Split>& splits, const std::string& schema,
                    PeerGroup& peers);

/// The parts of the model by distribute.stages, cut and schedule (divide_model()). Errors: ConfigError.
std::vector<Range> parts_of_model(const Model& model, const DistOptions& distribute);

}  // namespace lockstep
