#include "run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <numeric>
#include <utility>

#include "app/setup/run_config.h"
#include "app/setup/startup.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/process.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/comm/watchdog.h"
#include "lockstep/data/loading/streamed_records.h"
#include "lockstep/data/table/sources/feature_columns.h"
#include "lockstep/distributed/divided_layers.h"
#include "lockstep/nn/stages.h"
#include "lockstep/train/rank_peer_group.h"
#include "lockstep/train/storage/staged_model.h"
#include "run_files.h"

namespace lockstep {
namespace {

// The tensors that a rank has taken from train.init.
struct LoadedTensors {
  Index count = 0;
  std::vector<std::string> differences;  // of the file from the whole model
};

// `model`: the whole one, of which `store` may be a stage.
LoadedTensors start_from_file(const TrainOptions& options, const Model& model, const ParamStore& store) {
  ModelFile file(options.init);
  if (!options.init_map.empty()) file.apply_map(options.init_map, model);
  const Layout& whole = model.stored_layout();
  if (!options.init_rename.empty()) file.rename(whole, options.init_rename);
  std::vector<std::string> differences = file.differences(whole);
  error_if<DataError>(
      !differences.empty() && !options.init_partial,
      "train.init '{}' does not fit model.layers:\n  {}\nChange the model, name the tensors with "
      "train.init_rename, or take what fits with --train.init_partial true",
      options.init, first_lines(differences));
  const Index count = file.fill(store);
  return {.count = count, .differences = std::move(differences)};
}

// *Collective.* The first rank, which has loaded the first stage, judges what all stages have loaded.
void report_loaded(Communicator& comm, const TrainOptions& options, const Layout& whole,
                   const LoadedTensors& mine) {
  const std::vector<Index> counts = gather_numbers(comm, mine.count);
  agree_on_first(comm, [&] {
    const Index loaded = std::accumulate(counts.begin(), counts.end(), Index{0});
    error_if<DataError>(loaded == 0, "train.init '{}' has no tensor that fits model.layers:\n  {}",
                        options.init, first_lines(mine.differences));
    log_info("loaded {} of {} tensors from {}", loaded, whole.params.size(), options.init);
    if (!mine.differences.empty()) log_info("not loaded:\n  {}", first_lines(mine.differences));
  });
}

// `gone`: seconds since this program was started.
TimeLeft time_left(const RunOptions& run, double gone) {
  if (!run.time_limit.empty()) {
    return {.seconds = parse_time_limit("run.time_limit", run.time_limit) - gone, .warning = {}};
  }
  const std::optional<std::string> end = environment_text("SLURM_JOB_END_TIME");
  if (!end) return {};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return job_time_left(*end, std::chrono::duration<double>(now).count());
}

// *Collective.* A helper thread if the config wants one. Errors: AgreedError if MPI does not provide for it
// on all ranks.
std::unique_ptr<ProgressThread> make_progress_thread(Communicator& comm, const DistOptions& options) {
  if (!options.progress_thread || comm.size() == 1) return nullptr;
  agree(comm, [&] {
    if (comm.takes_threads()) return;
    throw Error(
        "distribute.progress_thread needs MPI_THREAD_MULTIPLE, which MPI did not provide here: set it to "
        "false, or use an MPI library built with it; where only rank 0 can read the config file, give all "
        "ranks --distribute.progress_thread true as a flag",
        kExitComm);
  });
  return std::make_unique<ProgressThread>(comm);
}

}  // namespace

Run::Run(Communicator& comm, const Experiment& experiment, const RunPlan& plan)
    : comm_(comm),
      experiment_(experiment),
      plan_(plan),
      pipeline_(plan.stages.empty() ? nullptr : std::make_unique<Pipeline>(comm, plan.grid())),
      model_(experiment.model_of(stage())),
      schedule_(experiment.config.schedule, plan.whole_run(), plan.step_batch),
      sampler_(make_sampler(plan.sampling)),
      team_(static_cast<int>(plan.dist.threads)),
      strategy_(make_strategy()),
      states_(workers(), plan.dist, model_),
      progress_(make_progress_thread(comm, experiment.config.distribute)) {
  if (pipeline_ != nullptr) note_stage(stage());
  if (plan.averages()) average_.emplace(workers(), model_, team_, plan.ema);
}

// The workers of a stage make it together: all ranks end together if those of one stage cannot.
// Requires the members before strategy_.
std::unique_ptr<Strategy> Run::make_strategy() {
  const Config& config = experiment_.config;
  return agree(comm_, [&] {
    StrategyContext context{
        .comm = workers(),
        .options = config.distribute,
        .plan = plan_.dist,
        .layout = model_.layout(),
        .optimizer = *experiment_.optimizer,
        .rules = experiment_.update_rules(stage()),
        .team = team_,
        .gradient_arenas = arenas_needed(plan_.dist, workers().rank(), local_sums(config.distribute),
                                         interleaves(model_, plan_.dist)),
        .ranks_per_node = config.debug.ranks_per_node,
        .server_mbit = config.debug.server_mbit,
        .record_to =
            config.distribute.record ? std::filesystem::path(config.run.dir) : std::filesystem::path()};
    context.rules.pipeline = pipeline_.get();
    return strategy_entry(config.distribute.strategy).make(context);
  });
}

void Run::initialise_weights(const CheckpointReader* checkpoint) {
  const Config& config = experiment_.config;
  AlignedBuffer<Scalar> start(model_.stored_layout().size);
  const ParamStore store{.layout = &model_.stored_layout(), .values = start.span()};
  initialise(store, experiment_.seed(), config.model.init_std);
  const bool first = workers().rank() == 0;
  const bool starts_from_file = checkpoint == nullptr && !config.train.init.empty();
  LoadedTensors loaded;
  agree(comm_, [&] {
    if (!first) return;
    if (checkpoint != nullptr) {
      load_training_values(*checkpoint, model_, start.span(), average_ ? &*average_ : nullptr);
    } else if (starts_from_file) {
      loaded = start_from_file(config.train, *experiment_.model, store);
    }
  });
  if (starts_from_file) report_loaded(comm_, config.train, experiment_.model->stored_layout(), loaded);
  // The other ranks, and other replicas, get rank 0's when training starts.
  const ModelValues values = stored_values(model_, start.span());
  if (first) std::ranges::copy(values.weights, strategy_->weights(0).begin());
  if (replicas().contains(0)) std::ranges::copy(values.state, states_.of(0).begin());
}

void Run::load(Index step) {
  RankPeerGroup peers(comm_);
  RankPeerGroup loading(workers());
  // Each stage loads for itself: all ranks end together if one of them cannot.
  const std::optional<Index> classes = agree(comm_, [&] { return load_training_records(loading, step); });
  if (pipeline_ != nullptr) share_record_facts();
  if (masks_ && comm_.rank() == 0) {
    const DatasetInfo& info = experiment_.train->info();
    log_info("'{}': some of the {} targets of a record are {}; a step divides by those that are there",
             info.name, info.target_columns, info.has_lengths ? "those of padding" : "missing");
  }
  if (classes && experiment_.train->info().target_classes == 0) {
    const Index found = std::ranges::max(gather_numbers(comm_, *classes));
    const std::string doubt = doubt_spare_outputs(experiment_.fit(*experiment_.train), found);
    if (comm_.rank() == 0 && !doubt.empty()) log_warning("{}", doubt);
  }
  if (experiment_.weighs_classes(Split::kTrain)) class_weights_ = experiment_.class_weights(peers);
  experiment_.loss->weigh_classes(class_weights_);
  validation_ = load_evaluation(experiment_.validation.get(), Split::kValidation);
  test_ = load_evaluation(experiment_.test.get(), Split::kTest);
  look_at_targets();
}

// Each record that several ranks hold is looked at by the first of them.
TargetSample Run::training_targets() const {
  constexpr Index kMost = 20'000;
  const DatasetInfo& info = experiment_.train->info();
  const RecordPart part = record_part();
  const RecordNeeds needs = records_for(*sampler_, plan_.dist.hosted, workers().rank());
  const bool looks = needs_targets(model_) && part != RecordPart::kNothing;
  std::vector<Index> ids;
  for (Index id = 0; looks && id < info.rows; id += divide_up(info.rows, kMost)) {
    const Range ranks = needs.ranks(id);
    if (!ranks.empty() && ranks.begin == workers().rank()) ids.push_back(id);
  }
  const Index features = part == RecordPart::kAll ? info.features.size() : 0;
  return gather_targets(comm_, *records_, ids, info, weighing(), features);
}

void Run::look_at_targets() {
  if (experiment_.loss->targets() != TargetKind::kValue) return;
  const Evaluation* evaluated = validation_ ? validation_.get() : test_.get();
  TargetSample targets;
  if (!streams()) {
    targets = training_targets();
  } else if (evaluated != nullptr) {
    targets = evaluated->targets();
  }
  agree_on_first(comm_, [&] {
    label_doubt_ =
        doubt_label(experiment_.loss->form(), targets, catalog_names(target_labels(*experiment_.train)));
  });
  label_doubt_ = broadcast_text(comm_, label_doubt_);
  if (comm_.rank() == 0 && !label_doubt_.empty()) log_warning("{}", label_doubt_);
}

// Evaluations measure something else if the classes are weighed in training alone.
std::string Run::doubt_learning(const TrainingResult& result, const StepLosses& losses) {
  const EvalMetrics* kept = result.evaluation();
  const bool evaluated = kept != nullptr && (class_weights_.empty() || experiment_.config.eval.class_weights);
  LearningFacts facts{.evaluation = evaluated ? std::optional(*kept) : std::nullopt,
                      .losses = losses,
                      .steps = result.progress.steps,
                      .label = label_doubt_,
                      .lr = experiment_.config.schedule.lr};
  if (evaluated || !streams()) {
    const Evaluation* evaluation = test_ ? test_.get() : validation_.get();
    const TargetSample targets = evaluated ? evaluation->targets() : training_targets();
    facts.guess = best_guess(*experiment_.loss, experiment_.outputs(), targets);
  }
  return lockstep::doubt_learning(facts);
}

std::optional<Index> Run::load_training_records(PeerGroup& peers, Index step) {
  const RecordSource& train = *experiment_.train;
  if (streams() && record_part() != RecordPart::kNothing) {
    fingerprint_ = sample_files(train, peers);
    peers.agree([&] {
      auto streamed =
          std::make_unique<StreamedRecords>(train, experiment_.target_rule(), plan_.sampling, replicas());
      streamed->expect(step);
      streamed->wait();  // all ranks report together what is wrong with the first records
      records_ = std::move(streamed);
    });
    // Nobody has seen all records.
    masks_ = may_miss_targets(experiment_.target_rule(), train.info());
    return std::nullopt;
  }
  std::atomic<Index> largest_class = -1;
  std::atomic<bool> any_missing = false;
  TargetRule rule = experiment_.target_rule();
  rule.largest_class = &largest_class;
  rule.any_missing = &any_missing;
  RecordNeeds needs = records_for(*sampler_, plan_.dist.hosted, peers.rank());
  needs.part = record_part();
  records_ = load_records(train, rule, needs, peers, &fingerprint_);
  masks_ = may_miss_targets(rule, train.info()) && any_rank(peers, any_missing);
  if (streams()) return std::nullopt;
  return largest_class + 1;
}

// The last stage has at least the targets of all records.
void Run::share_record_facts() {
  Communicator& group = pipeline_->group();
  const int last = group.size() - 1;
  fingerprint_.kind = broadcast_text(group, fingerprint_.kind, last);
  Index numbers[] = {masks_ ? 1 : 0, std::ssize(fingerprint_.parts)};
  group.broadcast(as_buffer(std::span(numbers)), last);
  masks_ = numbers[0] != 0;
  fingerprint_.parts.resize(static_cast<std::size_t>(numbers[1]));
  group.broadcast(as_buffer(std::as_writable_bytes(std::span(fingerprint_.parts))), last);
}

// The part of the training records that this rank keeps. A stream keeps some chunks, as they are read.
RecordPart Run::record_part() const {
  const RecordPart needed =
      needed_part(needs_features(model_), needs_targets(model_) || experiment_.train->info().has_lengths);
  return streams() && needed == RecordPart::kTargets ? RecordPart::kAll : needed;
}

Weighing Run::weighing() const {
  return {
      .of_class = class_weights_, .masks = masks_, .of_positions = experiment_.loss->form().positions > 0};
}

EvaluationContext Run::evaluation_context(Split split) {
  std::span<const Scalar> weights;
  if (experiment_.weighs_classes(split)) weights = class_weights_;
  return {.comm = comm_,
          .model = model_,
          .loss = *experiment_.loss,
          .normaliser = *experiment_.normaliser,
          .team = team_,
          .options = experiment_.config.eval,
          .metrics = *experiment_.metrics,
          .class_weights = weights,
          .pipeline = pipeline_.get()};
}

std::unique_ptr<Evaluation> Run::load_evaluation(const RecordSource* source, Split split) {
  if (source == nullptr) return nullptr;
  return std::make_unique<Evaluation>(evaluation_context(split), *source, split);
}

std::optional<EvaluationDetails> Run::describe_evaluation(std::span<const Scalar> stored) {
  if (!test_ && !validation_) return std::nullopt;
  const Split split = test_ ? Split::kTest : Split::kValidation;
  return lockstep::describe_evaluation(evaluation_context(split), test_ ? *test_ : *validation_,
                                       test_ ? *experiment_.test : *experiment_.validation,
                                       stored_values(model_, stored));
}

AlignedBuffer<Scalar> Run::stored() {
  AlignedBuffer<Scalar> stored(model_.stored_layout().size);
  const ModelValues values = average_ && average_->has_begun()
                                 ? average_->gather_model()
                                 : ModelValues{strategy_->gather_model(), states_.gather()};
  const auto end = std::ranges::copy(values.weights, stored.data()).out;
  std::ranges::copy(values.state, end);
  return stored;
}

void Run::save_model(std::span<Scalar> stored, const ModelFacts& facts,
                     const std::function<std::filesystem::path()>& path) {
  if (workers().rank() > 0) return;
  if (pipeline_ != nullptr) {
    return save_staged_model(path, {*pipeline_, model_, stored_values(model_, stored), facts});
  }
  lockstep::save_model(path(), {.layout = &model_.stored_layout(), .values = stored}, model_.input(), facts);
}

std::optional<ChosenThreshold> Run::choose_threshold(std::span<const Scalar> stored,
                                                     std::vector<EvalMetrics>& evaluations) {
  const ThresholdRule rule = parse_threshold("eval.threshold", experiment_.config.eval.threshold);
  const bool chooses = !rule.measure.empty() && validation_;
  if (!rule.number && !chooses) return std::nullopt;
  std::map<Split, ScoredSamples> samples;
  const auto gather = [&](Split split) {
    Evaluation& evaluation = split == Split::kTest ? *test_ : *validation_;
    samples[split] = gather_yes(comm_, evaluation, stored_values(model_, stored), experiment_.loss->form());
  };
  if (chooses) gather(Split::kValidation);
  for (const EvalMetrics& each : evaluations) {
    if (!samples.contains(each.split)) gather(each.split);
  }
  std::optional<ChosenThreshold> chosen;
  if (rule.number) {
    chosen = {.threshold = *rule.number};
  } else if (comm_.rank() == 0) {
    chosen = lockstep::choose_threshold(rule.measure, samples[Split::kValidation]);
  }
  if (!chosen && comm_.rank() == 0) {
    log_warning(
        "eval.threshold = \"{}\" finds no threshold: the validation set has records of one class only, so "
        "the model says yes where that is more probable than no",
        rule.measure);
  }
  for (EvalMetrics& each : evaluations) {
    const ScoredSamples& answered = samples[each.split];
    if (chosen && !answered.empty()) each.threshold = answers_at(chosen->threshold, answered);
  }
  return chosen;
}

std::unique_ptr<Loader> Run::make_loader(Range steps) {
  const bool spare_core = cores_at_hand() > team_.size();
  const Index ahead = steps_ahead(experiment_.config.data, spare_core, plan_.sampling.stream.has_value());
  return std::make_unique<Loader>(*records_, experiment_.train->info(), *sampler_, *experiment_.normaliser,
                                  LoaderOptions{.replicas = replicas(),
                                                .steps = steps,
                                                .prefetch = ahead,
                                                .team = &team_,
                                                .augmenter = experiment_.augmenter.get(),
                                                .weighing = weighing(),
                                                .part = record_part()});
}

TrainingContext Run::training(Observer& observer, RunControl& control) {
  TrainingSettings settings = training_settings(experiment_.config);
  settings.target_columns = experiment_.train->info().target_columns;
  settings.weighted = experiment_.train->info().weighted || !class_weights_.empty() || masks_;
  return {.comm = comm_,
          .plan = plan_,
          .model = model_,
          .loss = *experiment_.loss,
          .schedule = schedule_,
          .strategy = *strategy_,
          .states = states_,
          .team = team_,
          .sampler = *sampler_,
          .validation = validation_.get(),
          .test = test_.get(),
          .observer = observer,
          .control = control,
          .progress = progress_.get(),
          .settings = settings,
          .loader = [this](Range steps) { return make_loader(steps); },
          .average = average_ ? &*average_ : nullptr,
          .pipeline = pipeline_.get(),
          .continue_sample = experiment_.continue_sample};
}

RunWatch::RunWatch(Communicator& comm, const Experiment& experiment, const ResumeState& resume,
                   const RunRequest& request)
    : left(time_left(experiment.config.run, request.seconds_gone)),
      every(parse_interval("checkpoint.every", experiment.config.checkpoint.every)),
      control(comm, {.stop_file = resume.directory.stop(),
                     .further_stop_files = request.stop_files,
                     .checkpoint_seconds = every.seconds,
                     .seconds_left = left.seconds,
                     .last_checkpoint = [this] { return writer.last_seconds(); }}),
      writer(comm, checkpoint_directory(experiment.config, resume.directory),
             experiment.config.checkpoint.keep, checkpoint_hooks(experiment.config, resume)),
      saving{.writer = writer, .every = every, .wait = experiment.config.checkpoint.wait} {
  const Config& config = experiment.config;
  if (!has_validation(config)) return;
  const Measure measure = experiment.deciding_measure();
  if (keeps_best(config)) saving.best.emplace(measure);
  if (follows_evaluations(config.schedule)) plateau.emplace(measure, config.schedule);
  if (config.train.early_stopping.empty()) return;
  early_stopping.emplace(measure, Patience("train.early_stopping", config.train.early_stopping),
                         config.train.early_stopping_min_delta);
}

}  // namespace lockstep
