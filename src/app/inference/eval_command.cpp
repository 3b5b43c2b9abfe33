#include <cmath>
#include <memory>
#include <optional>

#include "app/commands.h"
#include "app/setup/experiment.h"
#include "app/setup/outputs.h"
#include "app/setup/startup.h"
#include "app/setup/trained_model.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/terminal.h"
#include "lockstep/base/text.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/comm/agree.h"
#include "lockstep/distributed/pipeline.h"
#include "lockstep/report/tables/evaluation_tables.h"
#include "lockstep/train/evaluation/evaluation.h"
#include "lockstep/train/evaluation/prediction.h"
#include "lockstep/train/evaluation/threshold.h"
#include "lockstep/train/rank_peer_group.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {
namespace {

void print_confusion(const EvalMetrics& metrics) {
  print_out("confusion matrix (row: true class, column: predicted class)\n");
  const auto classes = static_cast<std::size_t>(metrics.classes);
  for (std::size_t row = 0; row < classes; ++row) {
    for (std::size_t column = 0; column < classes; ++column)
      print_out("{:>7}", metrics.confusion[row * classes + column]);
    print_out("\n");
  }
}

void print_metrics(const EvalMetrics& metrics) {
  print_out("{}: {}, {}", to_string(metrics.split), metrics.counted(), describe_loss(metrics));
  if (metrics.accuracy) print_out(", accuracy {:.5g}", *metrics.accuracy);
  if (metrics.top_k_accuracy) print_out(", top-{} accuracy {:.5g}", metrics.top_k, *metrics.top_k_accuracy);
  for (const MetricValue& other : metrics.others) print_out(", {}", to_string(other, metrics.positive()));
  print_out("\n");
  if (metrics.crossed > 0) print_out("{}\n", describe_crossed(metrics.crossed, metrics.positions > 0));
  if (!metrics.confusion.empty() && metrics.classes <= kMaxClassesShown) print_confusion(metrics);
  print_out("{}", evaluation_tables(metrics));
  if (metrics.forecast.naive.empty()) return;
  print_out("{}\n{}\n", metrics.forecast.describe_naive(metrics.split, metrics.of_scaled_label),
            metrics.forecast.describe_model(metrics.split));
}

// *Collective.* With yes from another probability on than a half; 0 on other ranks than the first.
double accuracy_with(double threshold, const EvaluationContext& context, Evaluation& evaluation,
                     const ModelValues& values) {
  const ScoredSamples samples = gather_yes(context.comm, evaluation, values, context.loss.form());
  return context.comm.rank() > 0 ? 0 : accuracy_at(threshold, samples);
}

// The evaluation as an object of --json: nothing in it is about a training.
nlohmann::ordered_json metrics_json(const EvalMetrics& metrics) {
  nlohmann::ordered_json json = json_with_tables(metrics);
  for (const char* of_training : {"kind", "split", "step", "epoch", "samples_seen"}) json.erase(of_training);
  if (metrics.crossed > 0) json["crossed"] = metrics.crossed;
  return json;
}

// *Collective.* Evaluates the sets that there are, and prints or writes what that gives.
void evaluate_sets(const EvaluationContext& context, const Experiment& experiment, const ModelValues& values,
                   std::optional<double> threshold, Scalar temperature, const CommandLine& line) {
  Communicator& comm = context.comm;
  nlohmann::ordered_json json;
  for (const auto& [source, split] : {std::pair(experiment.validation.get(), Split::kValidation),
                                      std::pair(experiment.test.get(), Split::kTest)}) {
    if (source == nullptr) continue;
    Evaluation evaluation(context, *source, split);
    evaluation.set_temperature(temperature);
    const EvalMetrics metrics = evaluation.run(values);
    const bool prints = comm.rank() == 0 && !writes_to_standard_output(line);
    if (prints) print_metrics(metrics);
    json[to_string(split)] = metrics_json(metrics);
    if (threshold) {
      const double accuracy = accuracy_with(*threshold, context, evaluation, values);
      json[to_string(split)]["threshold"] = {{"probability", *threshold},
                                             {"accuracy", json_number(accuracy)}};
      if (prints)
        print_out("{}: with yes ({}) from a probability of {:.5g} on, accuracy {:.5g}\n", to_string(split),
                  in_quotes(metrics.positive()), *threshold, accuracy);
    }
    if (!std::isfinite(metrics.loss)) {
      throw AgreedError("the model gives a loss that is not finite: it comes from a run that went wrong",
                        kExitTraining);
    }
  }
  agree(comm, [&] {
    if (comm.rank() > 0 || !line.has("json")) return;
    // Names of classes are texts of the user's files.
    constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
    write_output(line.text("json"), json.dump(2, ' ', false, kReplace) + "\n");
  });
}

}  // namespace

int eval_command(Communicator& comm, const CommandLine& line) {
  FinishedRun run = open_finished_run(comm, line);
  const RunDirectory& directory = run.directory;
  RankPeerGroup peers(comm);
  agree(comm, [&] {
    if (comm.rank() == 0) check_outputs(line, files_read(line));
  });
  std::set<Split> splits = named_splits(run.config);
  if (splits.empty()) splits = {Split::kValidation, Split::kTest};  // those of the run
  const Experiment experiment = make_evaluation(std::move(run.config), splits, directory,
                                                read_together(comm, directory.schema()), peers);
  std::optional<StageGrid> grid;
  std::unique_ptr<Model> stage;  // null: this rank takes the whole model
  AlignedBuffer<Scalar> stored;
  std::optional<double> threshold;
  Scalar temperature = 1;
  agree(comm, [&] {
    grid = inference_grid(experiment.config, comm.size(), comm.rank());
    if (grid->stages() > 1) {
      stage = make_stage(experiment.config, *experiment.model, grid->stage_of(comm.rank()));
    }
    stored = load_stored(directory, stage ? *stage : *experiment.model);
    threshold = threshold_of(directory, experiment.config, comm.rank());
    temperature = load_temperature(directory, experiment.config, experiment.loss->form());
    error_if(!experiment.test && !experiment.validation,
             "there is nothing to evaluate on: give data.test (and data.test_labels)");
  });
  refuse_different_data(comm, experiment.sources());
  log_notes(experiment.sources());

  std::vector<Scalar> class_weights;
  if (experiment.weighs_classes(Split::kTest)) class_weights = experiment.class_weights(peers);
  ThreadTeam team(static_cast<int>(experiment.config.train.threads));
  std::optional<Pipeline> pipeline;
  if (stage) pipeline.emplace(comm, *grid);
  const Model& model = stage ? *stage : *experiment.model;
  evaluate_sets({.comm = comm,
                 .model = model,
                 .loss = *experiment.loss,
                 .normaliser = *experiment.normaliser,
                 .team = team,
                 .options = experiment.config.eval,
                 .metrics = *experiment.metrics,
                 .class_weights = class_weights,
                 .pipeline = pipeline ? &*pipeline : nullptr},
                experiment, stored_values(model, stored.span()), threshold, temperature, line);
  return 0;
}

}  // namespace lockstep
