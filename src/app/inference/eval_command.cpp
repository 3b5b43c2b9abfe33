#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "app/commands.h"
#include "app/setup/outputs.h"
#include "app/setup/startup.h"
#include "app/setup/trained_model.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/terminal.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/report/tables/tables.h"
#include "lockstep/train/evaluation/evaluation.h"
#include "lockstep/train/evaluation/prediction.h"
#include "lockstep/train/evaluation/threshold.h"
#include "lockstep/train/rank_peer_group.h"

namespace lockstep {
namespace {

// `where`: "" or " at 0.3".
void print_confusion(std::span<const Index> counts, Index classes, const std::string& where) {
  print_out("confusion matrix{} (row: true class, column: predicted class)\n", where);
  for (Index row = 0; row < classes; ++row) {
    for (Index column = 0; column < classes; ++column) print_out("{:>7}", at(counts, row * classes + column));
    print_out("\n");
  }
}

void print_metrics(const EvalMetrics& metrics) {
  const std::optional<ThresholdAnswers>& answers = metrics.threshold;
  if (answers) {
    print_out("{}: {}\n", to_string(metrics.split), answers->describe(metrics.positive()));
    print_confusion(answers->confusion, 2, fmt::format(" at {:.5g}", answers->threshold));
    print_out("\nat 0.5\n");
  }
  print_out("{}: {}, {}", to_string(metrics.split), metrics.counted(), describe_loss(metrics));
  if (metrics.accuracy) print_out(", accuracy {:.5g}", *metrics.accuracy);
  if (metrics.top_k_accuracy) print_out(", top-{} accuracy {:.5g}", metrics.top_k, *metrics.top_k_accuracy);
  for (const MetricValue& other : metrics.others) print_out(", {}", to_string(other, metrics.positive()));
  print_out("\n");
  if (metrics.crossed > 0) print_out("{}\n", describe_crossed(metrics.crossed, metrics.positions > 0));
  if (!metrics.confusion.empty() && metrics.classes <= kMaxClassesShown)
    print_confusion(metrics.confusion, metrics.classes, answers ? " at 0.5" : "");
  print_out("{}", evaluation_tables(metrics));
  if (metrics.forecast.naive.empty()) return;
  print_out("{}\n{}\n", metrics.forecast.describe_naive(metrics.split, metrics.of_scaled_label),
            metrics.forecast.describe_model(metrics.split));
}

// The evaluation as an object of --json: nothing in it is about a training.
nlohmann::ordered_json metrics_json(const EvalMetrics& metrics) {
  nlohmann::ordered_json json = json_with_tables(metrics);
  for (const char* of_training : {"kind", "split", "step", "epoch", "samples_seen"}) json.erase(of_training);
  if (metrics.crossed > 0) json["crossed"] = metrics.crossed;
  return json;
}

// *Collective.* Evaluates the sets that there are, and prints or writes what that gives.
void evaluate_sets(const EvaluationContext& context, const TrainedModel& trained,
                   std::optional<double> threshold, const CommandLine& line) {
  Communicator& comm = context.comm;
  const ModelValues values = trained.values();
  nlohmann::ordered_json json;
  for (const auto& [source, split] : {std::pair(trained.validation.get(), Split::kValidation),
                                      std::pair(trained.test.get(), Split::kTest)}) {
    if (source == nullptr) continue;
    Evaluation evaluation(context, *source, split);
    evaluation.set_temperature(trained.temperature());
    EvalMetrics metrics = evaluation.run(values);
    if (threshold) {
      const ScoredSamples samples = gather_yes(comm, evaluation, values, context.loss.form());
      if (!samples.empty()) metrics.threshold = answers_at(*threshold, samples);
    }
    const bool prints = comm.rank() == 0 && !writes_to_standard_output(line);
    if (prints) print_metrics(metrics);
    json[to_string(split)] = metrics_json(metrics);
    if (!std::isfinite(metrics.loss)) {
      throw AgreedError("the model gives a loss that is not finite: it comes from a run that went wrong",
                        kExitTraining);
    }
  }
  agree_on_first(comm, [&] {
    if (!line.has("json")) return;
    // Names of classes are texts of the user's files.
    constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
    write_output(line.text("json"), json.dump(2, ' ', false, kReplace) + "\n");
  });
}

}  // namespace

int eval_command(Communicator& comm, const CommandLine& line) {
  FinishedRun run = open_finished_run(comm, line);
  std::set<Split> splits = named_splits(run.config);
  if (splits.empty()) splits = {Split::kValidation, Split::kTest};  // those of the run
  std::optional<TrainedModel> trained;
  std::optional<double> threshold;
  agree(comm, [&] {
    trained.emplace(std::move(run), comm.size(), comm.rank());
    threshold = trained->threshold();
  });
  RankPeerGroup peers(comm);
  open_evaluated(*trained, splits, trained->schema(), peers);
  const std::vector<const RecordSource*> sources = trained->sources();
  agree(comm, [&] {
    error_if(!trained->test && !trained->validation,
             "there is nothing to evaluate on: give data.test (and data.test_labels)");
  });
  refuse_different_data(comm, sources);
  log_notes(sources);
  std::vector<Scalar> class_weights;
  if (trained->weighs_classes(Split::kTest)) class_weights = trained->class_weights(peers);
  ModelRunner runner(comm, *trained);
  evaluate_sets(runner.evaluation(class_weights), *trained, threshold, line);
  return 0;
}

}  // namespace lockstep
