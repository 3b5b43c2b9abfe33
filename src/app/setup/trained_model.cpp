#include "trained_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "experiment.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/table/values/number.h"
#include "lockstep/nn/stages.h"
#include "lockstep/train/evaluation/threshold.h"
#include "lockstep/train/storage/checkpoint/directory.h"
#include "lockstep/train/storage/model_file.h"
#include "lockstep/train/storage/run_directory.h"
#include "run_config.h"
#include "startup.h"

namespace lockstep {

FinishedRun open_finished_run(Communicator& comm, const CommandLine& line) {
  FinishedRun run;
  agree(comm, [&] { run.directory = open_run_directory(line.text("model")); });
  const std::string file = config_of_run(line, run.directory);
  run.config = load_run_config_together(comm, line, read_config_together(comm, file));
  agree(comm, [&] { refuse_missing_precision(run.config); });
  refuse_differences(comm, run.config);
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

std::unique_ptr<Model> make_stage(const Config& config, const Model& whole, Index stage) {
  const std::vector<std::vector<Range>> stages =
      chunks_of_stages(parts_of_model(whole, config.distribute), config.distribute.stages);
  return std::make_unique<Model>(config.model, whole, std::span(at(stages, stage)));
}

AlignedBuffer<Scalar> load_stored(const RunDirectory& directory, const Model& model) {
  AlignedBuffer<Scalar> stored(model.stored_layout().size);
  load_model(directory.model(), model.whole().stored_layout(),
             {.layout = &model.stored_layout(), .values = stored.span()});
  return stored;
}

Scalar load_temperature(const RunDirectory& directory, const Config& config, const OutputForm& form) {
  if (!has_probabilities(form)) return 1;
  const std::optional<Scalar> temperature = ModelFile(directory.model()).temperature();
  if (!temperature && config.train.calibrate != kNoCalibration) {
    log_info(
        "'{}' has no temperature, so its probabilities are not calibrated: that is done at the end of a run",
        directory.model().string());
  }
  return temperature.value_or(1);
}

TrainedModel load_trained_model(const RunDirectory& directory, const Config& config) {
  return load_trained_model(directory, config, StageGrid(1, 1, config.distribute.placement), 0);
}

TrainedModel load_trained_model(const RunDirectory& directory, const Config& config, const StageGrid& grid,
                                Index rank) {
  TrainedModel trained;
  trained.loss = make_loss(config);
  trained.model =
      std::make_unique<Model>(config.model, ModelFile(directory.model()).input(), trained.loss->form().link);
  trained.loss =
      over_positions(std::move(trained.loss), trained.model->output(), is_there(directory.schema()));
  const OutputForm form = trained.loss->form();
  if (grid.stages() > 1) trained.stage = make_stage(config, *trained.model, grid.stage_of(rank));
  trained.stored = load_stored(directory, trained.run());
  trained.temperature = load_temperature(directory, config, form);
  return trained;
}

std::optional<double> threshold_of(const RunDirectory& directory, const Config& config, Index rank) {
  const ThresholdRule rule = parse_threshold("eval.threshold", config.eval.threshold);
  if (rule.measure.empty()) return rule.number;
  const ModelFile file(directory.model());
  const std::optional<double> kept = parse_number(file.fact(kThresholdFact).value_or(""));
  const std::string measure = file.fact(kThresholdMeasureFact).value_or("");
  if (!kept || measure.empty()) {
    if (rank == 0) {
      log_warning(
          "'{}' has no threshold: the end of a run chooses it. The model says yes where that is more "
          "probable than no; --eval.threshold 0.3 sets another one",
          directory.root.string());
    }
    return std::nullopt;
  }
  if (measure == rule.measure) return kept;
  throw ConfigError(
      "eval.threshold = \"{}\", but the threshold of '{}', {}, was chosen by \"{}\" when it was trained: "
      "give a number, or leave that out",
      rule.measure, directory.root.string(), *kept, measure);
}

std::string find_model(const std::string& text) {
  const std::size_t sign = text.rfind('@');
  if (sign == std::string::npos || is_there(text)) return text;
  const RunDirectory run{text.substr(0, sign)};
  const std::string name = text.substr(sign + 1);
  std::filesystem::path directory = run.checkpoints();
  if (!is_there(directory)) directory = run.noted_checkpoints().value_or(directory);
  const CheckpointDirectory checkpoints(directory);
  std::vector<Index> steps = checkpoints.steps();
  std::optional<Index> wanted = step_of(name);
  if (name == "best") wanted = checkpoints.best();
  if (name == "last" && !steps.empty()) wanted = steps.front();
  if (wanted && std::ranges::find(steps, *wanted) != steps.end())
    return checkpoints.finished(*wanted).string();
  std::vector<std::string> known;
  if (checkpoints.best()) known.emplace_back("best");
  if (!steps.empty()) known.emplace_back("last");
  std::ranges::reverse(steps);
  for (const Index step : steps) known.push_back(fmt::format("step-{}", step));
  throw ConfigError("{}: the run '{}' has no checkpoint {}; {}", in_quotes(text), run.root.string(),
                    in_quotes(name),
                    known.empty() ? fmt::format("there is none in '{}'", checkpoints.root().string())
                                  : fmt::format("those that it has: {}", fmt::join(known, ", ")));
}

}  // namespace lockstep
