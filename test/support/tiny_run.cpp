#include "support/tiny_run.h"

#include "app/setup/catalogs.h"
#include "app/setup/run_config.h"
#include "lockstep/base/catalog.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/loading/augmenter.h"
#include "lockstep/data/loading/load_records.h"
#include "lockstep/data/record_source.h"
#include "lockstep/distributed/divided_layers.h"
#include "lockstep/distributed/pipeline.h"
#include "lockstep/distributed/update.h"
#include "lockstep/nn/stages.h"
#include "lockstep/train/class_weights.h"
#include "lockstep/train/rank_peer_group.h"
#include "lockstep/train/storage/model_file.h"
#include "lockstep/train/storage/staged_model.h"
#include "support/case_files.h"
#include "support/thread_ranks.h"

namespace lockstep::test {
namespace {

// The weight of a sample by its id: "ones"; "some" (0 to 1.5); "few" (most are 0); "none" (all are 0).
Scalar weight_of(const std::string& kind, Index id) {
  if (kind == "ones") return 1;
  if (kind == "some") return static_cast<Scalar>(id * 5 % 7) / 4;
  if (kind == "few") return id % 29 == 0 ? 2.5F : 0.F;
  return 0;
}

class WeightedSource final : public RecordSource {
 public:
  // `plain`: its records are computed from their ids, and have one target.
  WeightedSource(std::unique_ptr<RecordSource> plain, std::string kind)
      : plain_(std::move(plain)), kind_(std::move(kind)), info_(plain_->info()) {
    info_.weighted = true;
  }

  const DatasetInfo& info() const override { return info_; }
  std::span<const Chunk> chunks() const override { return plain_->chunks(); }
  std::unique_ptr<ChunkReader> reader(const TargetRule& rule) const override { return plain_->reader(rule); }
  void unpack(std::span<const Index> ids, std::span<const std::byte* const> records, Matrix& x,
              Matrix& labels) const override {
    std::vector<Scalar> targets(ids.size());
    Matrix column(targets.data(), std::ssize(ids), 1);
    plain_->unpack(ids, records, x, column);
    for (std::size_t row = 0; row < ids.size(); ++row) {
      labels(static_cast<Index>(row), 0) = targets[row];
      labels(static_cast<Index>(row), 1) = weight_of(kind_, ids[row]);
    }
  }

 private:
  std::unique_ptr<RecordSource> plain_;
  std::string kind_;
  DatasetInfo info_;
};

constexpr auto kWriteTime = std::chrono::milliseconds(50);

class Recorder final : public Observer {
 public:
  explicit Recorder(TinyResult& result) : result_(result) {
    constexpr std::size_t kEnough =
        256;  // the memory of a run is what tests count, and not that of its watcher
    result_.evaluations.reserve(kEnough);
  }
  void on_step(const Progress&, double loss) override {
    if (!std::isnan(loss)) result_.losses.push_back(loss);  // NaN: it was left out
  }
  void on_train_metrics(const TrainMetrics&) override {}
  void on_evaluation(const EvalMetrics& metrics) override { result_.evaluations.push_back(metrics); }
  void on_workers(const WorkersReport&, const Progress&) override {}

 private:
  TinyResult& result_;
};

// Training on nothing but zeros is one thing, evaluating another.
std::unique_ptr<RecordSource> open_weighted(std::unique_ptr<RecordSource> plain, const Config& config,
                                            Split split) {
  const std::string& kind = config.data.table.weight;
  if (kind.empty()) return plain;
  const bool swapped = split == Split::kTest ? kind == "none" : kind == "none of the test set";
  return std::make_unique<WeightedSource>(std::move(plain), swapped ? "ones" : kind);
}

// *Collective over the group.* The numbers of all stages, as the model file has them.
AlignedBuffer<Scalar> whole_model(const StagedModel& staged, const Model& whole) {
  AlignedBuffer<std::byte> file(staged.size());
  staged.gather(std::vector<Range>(static_cast<std::size_t>(staged.pipeline().stages()), {0, file.size()}),
                file.data());
  AlignedBuffer<Scalar> stored(whole.stored_layout().size);
  const std::byte* from = file.data() + file.size() - whole.stored_layout().count() * Index{sizeof(Scalar)};
  for (const ParamInfo& param : whole.stored_layout().params) {
    const std::span<Scalar> tensor = part(stored.span(), param.range);
    std::memcpy(tensor.data(), from, tensor.size_bytes());
    from += tensor.size_bytes();
  }
  return stored;
}

}  // namespace

void set_keys(Config& config, const std::string& settings) {
  for (const std::string& setting : split_text(settings, "; ")) {
    if (setting.empty()) continue;
    const std::size_t equals = setting.find('=');
    const Option* option = find_option(known_options(), setting.substr(0, equals));
    if (option == nullptr) throw std::invalid_argument("no setting: " + setting);
    option->assign(config, setting.substr(equals + 1));
  }
}

std::function<void(Config&)> keys(const std::string& settings) {
  return [settings](Config& config) { set_keys(config, settings); };
}

Config tiny_config(const std::string& settings) {
  Config config;
  config.data.synthetic = {
      .rows = 101, .validation_rows = 0, .test_rows = 53, .features = 12, .classes = 3, .noise = 1};
  set_keys(config,
           "data.format=synthetic; model.layers=dense(9) relu dense(7) tanh dense(3); train.momentum=0.9; "
           "train.lr=0.05; train.epochs=3; train.global_batch=20; train.replicas=8; eval.batch=10; "
           "eval.top_k=2; run.log_every=4; distribute.reduction=ordered; distribute.strategy=allreduce; "
           "distribute.calibrate=false; checkpoint.wait=true");
  set_keys(config, settings);
  return config;
}

TinyResult train_tiny(Communicator& comm, const Config& config, const MakeSampler& make) {
  const auto seed = static_cast<std::uint64_t>(config.run.seed);
  const FormatEntry& format = choose_format(config.data);
  const auto train =
      open_weighted(format.open({config.data, Split::kTrain, seed, alone()}), config, Split::kTrain);
  const auto test =
      open_weighted(format.open({config.data, Split::kTest, seed, alone()}), config, Split::kTest);
  const Model whole(config.model, train->info().features);
  std::vector<std::unique_ptr<Model>> stages;
  if (config.distribute.stages > 1) {
    const std::vector<Range> parts = divide_model(whole, config.distribute.stages, config.distribute.cut,
                                                  config.distribute.schedule.chunks);
    for (const std::vector<Range>& chunks : chunks_of_stages(parts, config.distribute.stages))
      stages.push_back(std::make_unique<Model>(config.model, whole, std::span(chunks)));
  }
  const auto loss = find_entry(loss_catalog(), "loss", config.loss.loss).make(config.loss);
  std::vector<Scalar> class_weights;
  if (!config.train.class_weights.empty()) {
    class_weights = match_class_weights(parse_class_weights(config.train.class_weights), train->info(),
                                        whole.output().size());
  }
  const bool weighted = train->info().weighted || !class_weights.empty();
  const auto optimizer =
      find_entry(optimizer_catalog(), "optimizer", config.optimizer.optimizer).make(config.optimizer);
  std::vector<OptimizerMemory> stage_optimizers;
  for (const auto& stage : stages) stage_optimizers.emplace_back(*optimizer, stage->layout());
  RunPlan plan = make_run_plan({.train = config.train,
                                .data = config.data,
                                .distribute = config.distribute,
                                .schedule = config.schedule,
                                .model = whole,
                                .stages = stages,
                                .seed = seed,
                                .rows = train->info().rows,
                                .target_columns = train->info().target_columns,
                                .weighted = weighted,
                                .optimizer = {*optimizer, whole.layout()},
                                .stage_optimizers = stage_optimizers,
                                .world = comm.size()});
  std::optional<Pipeline> pipeline;
  if (!stages.empty()) pipeline.emplace(comm, plan.grid());
  Communicator& workers = pipeline ? pipeline->workers() : comm;
  const Model& model = pipeline ? *at(stages, pipeline->stage()) : whole;
  plan.enter_stage(pipeline ? pipeline->stage() : 0);
  const Schedule schedule(config.schedule, plan.whole_run(), plan.step_batch);
  const auto sampler = make(plan.sampling);
  const Range replicas = plan.dist.hosted_by(workers.rank());
  RankPeerGroup peers(workers);
  RecordNeeds needs = records_for(*sampler, plan.dist.hosted, workers.rank());
  needs.part = needed_part(needs_features(model), needs_targets(model));
  const auto records = load_records(*train, target_rule(*loss, whole.output()), needs, peers);
  const Normaliser normaliser(config.data.mean, config.data.std, model.input());
  ThreadTeam team(static_cast<int>(plan.dist.threads));
  UpdateRules rules = update_rules(model, config.optimizer);
  rules.pipeline = pipeline ? &*pipeline : nullptr;
  const auto strategy =
      strategy_entry(config.distribute.strategy)
          .make({.comm = workers,
                 .options = config.distribute,
                 .plan = plan.dist,
                 .layout = model.layout(),
                 .optimizer = *optimizer,
                 .rules = rules,
                 .team = team,
                 .gradient_arenas = arenas_needed(plan.dist, workers.rank(), local_sums(config.distribute),
                                                  interleaves(model, plan.dist)),
                 .ranks_per_node = config.debug.ranks_per_node,
                 .server_mbit = config.debug.server_mbit,
                 .record_to = config.distribute.record ? std::filesystem::path(config.run.dir)
                                                       : std::filesystem::path()});
  if (workers.rank() == 0) initialise({&model.layout(), strategy->weights(0)}, seed, config.model.init_std);
  ReplicaStates states(workers, plan.dist, model);
  if (replicas.contains(0)) initialise({&model.state_layout(), states.of(0)}, seed, config.model.init_std);
  std::optional<WeightAverage> average;
  if (plan.averages()) average.emplace(workers, model, team, plan.ema);
  std::unique_ptr<CheckpointReader> checkpoint;
  if (config.run.resume != "auto") {
    checkpoint = std::make_unique<CheckpointReader>(config.run.resume);
    AlignedBuffer<Scalar> stored(model.stored_layout().size);
    load_training_values(*checkpoint, model, stored.span(), average ? &*average : nullptr);
    const ModelValues values = stored_values(model, stored.span());
    if (workers.rank() == 0) std::ranges::copy(values.weights, strategy->weights(0).begin());
    if (replicas.contains(0)) std::ranges::copy(values.state, states.of(0).begin());
  }
  const bool spare_core = team.size() == 1;  // so that both ways to prepare samples are tested
  const auto make_loader = [&](Range steps) {
    return std::make_unique<Loader>(*records, train->info(), *sampler, normaliser,
                                    LoaderOptions{.replicas = replicas,
                                                  .steps = steps,
                                                  .prefetch = steps_ahead(config.data, spare_core, false),
                                                  .team = &team,
                                                  .weighing = {.of_class = class_weights},
                                                  .part = needs.part});
  };
  const MetricSet metrics(config.eval.metrics, loss->form(), whole.output().size());
  const EvaluationContext evaluation{.comm = comm,
                                     .model = model,
                                     .loss = *loss,
                                     .normaliser = normaliser,
                                     .team = team,
                                     .options = config.eval,
                                     .metrics = metrics,
                                     .pipeline = pipeline ? &*pipeline : nullptr};
  Evaluation on_test(evaluation, *test, Split::kTest);
  const auto validation = format.open({config.data, Split::kValidation, seed, alone()});
  std::optional<Evaluation> on_validation;
  if (config.data.synthetic.validation_rows > 0)
    on_validation.emplace(evaluation, *validation, Split::kValidation);
  std::unique_ptr<ProgressThread> progress;
  if (config.distribute.progress_thread && comm.takes_threads())
    progress = std::make_unique<ProgressThread>(comm);
  CheckpointHooks slow_disk;
  if (!config.checkpoint.wait) slow_disk.sync = [] { std::this_thread::sleep_for(kWriteTime); };
  CheckpointWriter writer(comm, CheckpointDirectory(config.checkpoint.dir), config.checkpoint.keep,
                          slow_disk);
  Saving saving{.writer = writer,
                .every = parse_interval("checkpoint.every", config.checkpoint.every),
                .wait = config.checkpoint.wait};
  const Measure measure(config.train.early_stopping_metric, config.eval.metrics, true);
  if (config.train.keep == "best") saving.best.emplace(measure);
  std::optional<EarlyStopping> early_stopping;
  if (!config.train.early_stopping.empty()) {
    early_stopping.emplace(measure, Patience("train.early_stopping", config.train.early_stopping),
                           config.train.early_stopping_min_delta);
  }
  std::optional<Plateau> plateau;
  if (follows_evaluations(config.schedule)) plateau.emplace(measure, config.schedule);
  TinyResult result;
  Recorder recorder(result);
  RunControl control(comm, {});
  TrainingSettings settings = training_settings(config);
  settings.target_columns = train->info().target_columns;
  settings.weighted = weighted;
  Trainer trainer({.comm = comm,
                   .plan = plan,
                   .model = model,
                   .loss = *loss,
                   .schedule = schedule,
                   .strategy = *strategy,
                   .states = states,
                   .team = team,
                   .sampler = *sampler,
                   .validation = on_validation ? &*on_validation : nullptr,
                   .test = &on_test,
                   .observer = recorder,
                   .control = control,
                   .progress = progress.get(),
                   .settings = settings,
                   .loader = make_loader,
                   .average = average ? &*average : nullptr,
                   .saving = config.checkpoint.dir.empty() ? nullptr : &saving,
                   .early_stopping = early_stopping ? &*early_stopping : nullptr,
                   .plateau = plateau ? &*plateau : nullptr,
                   .checkpoint = checkpoint.get(),
                   .pipeline = pipeline ? &*pipeline : nullptr});
  result.training = trainer.run();
  result.save_failure = writer.last_failure();
  if (pipeline) {
    const AlignedBuffer<Scalar> stored = whole_model(
        {*pipeline, model, {.weights = strategy->gather_model(), .state = states.gather()}}, whole);
    const ModelValues values = stored_values(whole, stored.span());
    result.weights.assign(values.weights.begin(), values.weights.end());
    result.state.assign(values.state.begin(), values.state.end());
    return result;
  }
  const std::span<const Scalar> weights = strategy->gather_model();
  result.weights.assign(weights.begin(), weights.end());
  if (average && average->has_begun()) {
    const ModelValues values = average->gather_model();
    result.average.assign(values.weights.begin(), values.weights.end());
    result.average.insert(result.average.end(), values.state.begin(), values.state.end());
  }
  const std::span<const Scalar> state = states.gather();
  result.state.assign(state.begin(), state.end());
  return result;
}

TinyResult train_tiny_on(int ranks, const Config& config, const MakeSampler& sampler) {
  TinyResult first;
  run_thread_ranks(ranks, [&](Communicator& comm) {
    TinyResult mine = train_tiny(comm, config, sampler);
    if (comm.rank() == 0) first = std::move(mine);
  });
  return first;
}

TinyResult train_tiny_alone(const Config& config, const MakeSampler& sampler) {
  return train_tiny_on(1, config, sampler);
}

}  // namespace lockstep::test
