#include "trained_model.h"

#include <utility>

#include "catalogs.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/table/sources/feature_columns.h"
#include "lockstep/data/table/values/number.h"
#include "lockstep/data/text/vocabulary.h"
#include "lockstep/nn/stages.h"
#include "lockstep/train/evaluation/threshold.h"
#include "outputs.h"
#include "run_config.h"
#include "startup.h"

namespace lockstep {
namespace {

// The stages of a model that so many ranks evaluate, or predict with: distribute.stages, if they are a
// multiple of that; else one, so that each rank takes the whole model. Rank 0 says so where there are
// several.
StageGrid inference_grid(const Config& config, Index ranks, Index rank) {
  const Index stages = config.distribute.stages;
  const StageGrid whole(ranks, 1, config.distribute.placement);
  if (stages <= 1 || ranks == 1) return whole;
  if (ranks % stages != 0) {
    if (rank == 0) {
      log_info("each rank takes the whole model: {} ranks are no multiple of distribute.stages = {}", ranks,
               stages);
    }
    return whole;
  }
  error_if(
      config.train.threads > 1,
      "train.threads = {} with distribute.stages = {}: a stage takes one block of records after the other; "
      "set train.threads = 1 and start more ranks, or start a number of ranks that is no multiple of the "
      "stages, and each takes the whole model",
      config.train.threads, stages);
  const StageGrid grid(ranks, stages, config.distribute.placement);
  if (rank == 0) log_info("{} of {} stages, one on each rank", plural(grid.groups(), "group"), stages);
  return grid;
}

// Another config may be that of another run.
void check_finished_run(const CommandLine& line, const RunDirectory& run, const Config& config) {
  if (line.has("config")) {
    const ConfigText own = read_config_file(run.config().string());
    const std::string key = other_kind(load_config({}, own, known_options()), config);
    error_if(!key.empty(),
             "'{}' is the directory of a run with another config than '{}' ({}): leave --config out, or name "
             "the run of that config",
             run.root.string(), line.text("config"), key);
  }
  check_outputs(line, files_read(line, config));
}

// Errors: DataError naming the file if that is no schema.
void check_schema(const std::string& schema, const std::string& file) {
  try {
    const bool is_known = schema.empty() || read_vocabulary(schema) || !read_target_labels(schema).empty();
    error_if<DataError>(!is_known, "its format is not known");
  } catch (const std::exception& error) {
    throw DataError("'{}' is no schema that this version wrote: {}", file, error.what());
  }
}

}  // namespace

FinishedRun open_finished_run(const CommandLine& line) {
  const RunDirectory directory = open_run_directory(line.text("model"));
  Config config = load_run_config(line, read_config_file(config_of_run(line, directory)));
  check_finished_run(line, directory, config);
  return {.directory = directory,
          .config = std::move(config),
          .schema = is_there(directory.schema()) ? read_file(directory.schema()) : ""};
}

FinishedRun open_finished_run(Communicator& comm, const CommandLine& line) {
  FinishedRun run;
  run.directory = agree(comm, [&] { return open_run_directory(line.text("model")); });
  const std::string file = config_of_run(line, run.directory);
  const ConfigText text = read_config_together(comm, file);
  run.config = agree(comm, [&] { return load_run_config(line, text); });
  agree(comm, [&] { refuse_missing_precision(run.config); });
  refuse_differences(comm, run.config);
  agree_on_first(comm, [&] { check_finished_run(line, run.directory, run.config); });
  run.schema = read_together(comm, run.directory.schema());
  return run;
}

std::set<Split> named_splits(const Config& config) {
  std::set<Split> named;
  for (const Split split : {Split::kValidation, Split::kTest}) {
    for (const std::string& key : config.flagged) {
      const std::string name = to_string(split);
      if (key.starts_with("data." + name) || key.starts_with("data.synthetic_" + name)) named.insert(split);
    }
  }
  return named;
}

TrainedModel::TrainedModel(FinishedRun finished, Index ranks, Index rank)
    : directory_(std::move(finished.directory)),
      schema_(std::move(finished.schema)),
      rank_(rank),
      grid_(inference_grid(finished.config, ranks, rank)),
      file_(directory_.model()) {
  config = std::move(finished.config);
  check_schema(schema_, directory_.schema().string());
  build_model(*this, file_.input(), !schema_.empty());
  if (grid_.stages() > 1) {
    const auto chunks = chunks_of_stages(parts_of_model(*model, config.distribute), grid_.stages());
    stage_ = std::make_unique<Model>(config.model, *model, std::span(at(chunks, grid_.stage_of(rank))));
  }
  stored_ = AlignedBuffer<Scalar>(run().stored_layout().size);
  file_.load(model->stored_layout(), store());
  if (!has_probabilities(loss->form())) return;
  const std::optional<Scalar> temperature = file_.temperature();
  if (!temperature && config.train.calibrate != kNoCalibration) {
    log_info(
        "'{}' has no temperature, so its probabilities are not calibrated: that is done at the end of a run",
        directory_.model().string());
  }
  temperature_ = temperature.value_or(1);
}

std::optional<double> TrainedModel::threshold() const {
  const ThresholdRule rule = parse_threshold("eval.threshold", config.eval.threshold);
  if (rule.measure.empty()) return rule.number;
  const std::optional<double> kept = parse_number(file_.fact(kThresholdFact).value_or(""));
  const std::string measure = file_.fact(kThresholdMeasureFact).value_or("");
  if (!kept || measure.empty()) {
    if (rank_ == 0) {
      log_warning(
          "'{}' has no threshold: the end of a run chooses it. The model says yes where that is more "
          "probable than no; --eval.threshold 0.3 sets another one",
          directory_.root.string());
    }
    return std::nullopt;
  }
  if (measure == rule.measure) return kept;
  throw ConfigError(
      "eval.threshold = \"{}\", but the threshold of '{}', {}, was chosen by \"{}\" when it was trained: "
      "give a number, or leave that out",
      rule.measure, directory_.root.string(), *kept, measure);
}

ModelRunner::ModelRunner(Communicator& comm, const TrainedModel& trained)
    : comm_(comm), trained_(trained), team_(static_cast<int>(trained.config.train.threads)) {
  if (trained.grid().stages() > 1) pipeline_.emplace(comm, trained.grid());
}

EvaluationContext ModelRunner::evaluation(std::span<const Scalar> class_weights) {
  return {.comm = comm_,
          .model = trained_.run(),
          .loss = *trained_.loss,
          .normaliser = *trained_.normaliser,
          .team = team_,
          .options = trained_.config.eval,
          .metrics = *trained_.metrics,
          .class_weights = class_weights,
          .pipeline = pipeline_ ? &*pipeline_ : nullptr};
}

PredictionContext ModelRunner::prediction() {
  return {.comm = comm_,
          .model = trained_.run(),
          .form = trained_.loss->form(),
          .normaliser = *trained_.normaliser,
          .team = team_,
          .batch = trained_.config.eval.batch,
          .temperature = trained_.temperature(),
          .pipeline = pipeline_ ? &*pipeline_ : nullptr};
}

}  // namespace lockstep
