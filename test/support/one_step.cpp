#include "support/one_step.h"

#include "lockstep/base/random.h"
#include "lockstep/distributed/exchange/reducer.h"
#include "support/thread_ranks.h"
#include "train/loop/gradient_step.h"

namespace lockstep::test {
namespace {

// Half the squared distance of each output from a number that depends on the sample; keeps the outputs. The
// target of a sample is its number.
class RecordingLoss final : public Loss {
 public:
  RecordingLoss(Index samples, Index outputs, const std::vector<Scalar>& given_gradient)
      : outputs_(static_cast<std::size_t>(samples * outputs)), given_(given_gradient) {}

  TargetKind targets() const override { return TargetKind::kValue; }
  double evaluate(const ConstMatrix& outputs, const ConstMatrix& targets, Matrix* gradient) const override {
    double sum = 0;
    for (Index row = 0; row < outputs.rows(); ++row) {
      for (Index column = 0; column < outputs.cols(); ++column) {
        const Index place = static_cast<Index>(targets(row, 0)) * outputs.cols() + column;
        const auto at = static_cast<std::size_t>(place);
        const Scalar aim = static_cast<Scalar>(place % 7) - 3;
        const Scalar error = given_.empty() ? outputs(row, column) - aim : given_[at];
        outputs_[at] = outputs(row, column);
        sum += 0.5 * static_cast<double>(error) * static_cast<double>(error);
        (*gradient)(row, column) = error;
      }
    }
    return sum;
  }

  std::vector<Scalar>& outputs() const { return outputs_; }

 private:
  mutable std::vector<Scalar> outputs_;  // each sample has its own place: threads do not meet
  const std::vector<Scalar>& given_;
};

// Only the exchange: the sum of the gradients.
class SumOnly final : public SynchronousStrategy {
 public:
  SumOnly(Communicator& comm, const Plan& plan, Reduction reduction, std::span<Scalar> weights)
      : options_{.reduction = reduction},
        reducer_(make_reducer({.comm = comm, .plan = plan, .options = options_})),
        weights_(weights) {}
  std::span<Scalar> weights(Index) override { return weights_; }
  std::span<const Scalar> gather_model() override { return weights_; }
  SavedState saved_state() override { return {}; }
  void start() override {}
  void begin_step(std::span<const Index> samples, double) override { reducer_->begin_step(samples); }
  void bucket_ready(const Bucket& bucket, const PartialGrads& partial) override {
    reducer_->bucket_ready(bucket, partial);
  }
  std::size_t progress() override { return reducer_->progress(); }
  void finish_exchange() override { sum_ = reducer_->finish(); }
  StepOutcome update(const UpdateRequest&) override { return {}; }
  std::span<const Scalar> sum() const { return sum_; }

 private:
  DistOptions options_;
  std::unique_ptr<Reducer> reducer_;
  std::span<Scalar> weights_;
  std::span<Scalar> sum_;
};

// Features are not there before they are prepared, and that is done once.
StepBatch make_batch(const OneStep& step, Range hosted) {
  StepBatch batch{.step = 5, .replicas = {}, .rows = step.rows};
  const Index width = step.input.size();
  Index first = std::accumulate(step.rows.begin(), step.rows.begin() + hosted.begin, Index{0});
  for (Index replica = hosted.begin; replica < hosted.end; ++replica) {
    const Index rows = at(step.rows, replica);
    ReplicaBatch mine{.rows = rows,
                      .features = AlignedBuffer<Scalar>(rows * width),
                      .targets = AlignedBuffer<Scalar>(rows)};
    std::vector<Scalar> features;
    for (Index row = 0; row < rows; ++row) {
      const auto given = step.samples.begin() + (first + row) * width;
      const std::vector<Scalar> x =
          step.samples.empty() ? sample(step.input, first + row) : std::vector<Scalar>(given, given + width);
      features.insert(features.end(), x.begin(), x.end());
      mine.targets.data()[row] = static_cast<Scalar>(first + row);
    }
    first += rows;
    std::ranges::fill(mine.features.span(), std::numeric_limits<Scalar>::quiet_NaN());
    mine.prepare = [features = std::move(features), to = mine.features.data(), done = false]() mutable {
      if (std::exchange(done, true)) throw std::logic_error("prepared twice in a step");
      std::ranges::copy(features, to);
    };
    batch.replicas.push_back(std::move(mine));
  }
  return batch;
}

}  // namespace

std::vector<Scalar> sample(const Shape& input, Index i) {
  RandomStream random({.seed = 11, .purpose = Purpose::kSynthetic, .a = static_cast<std::uint64_t>(i)});
  std::vector<Scalar> values(static_cast<std::size_t>(input.size()));
  for (Scalar& value : values) value = Scalar{3} + Scalar{2} * random.normal();
  return values;
}

OneStepResult run_one_step(Communicator& comm, const OneStep& step) {
  const Model model(step.model, step.input);
  const auto replicas = std::ssize(step.rows);
  DistOptions options;
  options.bucket_kib = 0;
  const Plan plan = make_plan(options, model.layout(),
                              {.world = comm.size(), .replicas = replicas, .threads = step.threads});
  const Range hosted = plan.hosted_by(comm.rank());
  const Index samples = std::accumulate(step.rows.begin(), step.rows.end(), Index{0});
  AlignedBuffer<Scalar> weights(model.layout().size);
  initialise({&model.layout(), weights.span()}, 1, 0.1);
  if (step.set_weights) step.set_weights(model.layout(), weights.span());
  ReplicaStates states(comm, plan, model);
  if (hosted.contains(0)) initialise({&model.state_layout(), states.of(0)}, 1, 0.1);
  states.start();
  const RecordingLoss loss(samples, model.output().size(), step.output_gradient);
  SumOnly strategy(comm, plan, step.reduction, weights.span());
  ThreadTeam team(static_cast<int>(step.threads));
  const Index most = *std::ranges::max_element(step.rows);
  const std::unique_ptr<Sampler> sampler =
      make_sampler({.rows = replicas * most, .replicas = replicas, .global_batch = replicas * most});
  const Schedule schedule({}, {}, 1);
  const RunPlan run;
  Observer observer;
  RunControl control(comm, {});
  const TrainingContext training{.comm = comm,
                                 .plan = run,
                                 .model = model,
                                 .loss = loss,
                                 .schedule = schedule,
                                 .strategy = strategy,
                                 .states = states,
                                 .team = team,
                                 .sampler = *sampler,
                                 .validation = nullptr,
                                 .test = nullptr,
                                 .observer = observer,
                                 .control = control,
                                 .settings = {.seed = 3, .accumulate = step.accumulate}};
  GradientStep gradients(
      {.training = training, .comm = comm, .plan = plan, .sums = local_sums({.reduction = step.reduction})});
  const StepBatch batch = make_batch(step, hosted);
  strategy.begin_step(step.rows, static_cast<double>(samples));
  gradients.run(batch, Measured::kNothing);
  strategy.finish_exchange();
  states.update(BatchStatistics::Update::kMove);

  OneStepResult result;
  result.outputs = loss.outputs();
  comm.all_reduce_sum(as_buffer(std::span(result.outputs)));  // a sample is on one rank
  for (const ParamInfo& param : model.layout().params) {
    const std::span<const Scalar> tensor = part(strategy.sum(), param.range);
    result.gradient.insert(result.gradient.end(), tensor.begin(), tensor.end());
    result.gradient_of.emplace(param.name, std::vector(tensor.begin(), tensor.end()));
  }
  result.loss = static_cast<double>(at(strategy.sum(), plan.loss_offset));
  const auto width = static_cast<std::size_t>(model.state_layout().size);
  for (Index replica = 0; replica < replicas; ++replica) {
    std::vector<Scalar> state(width);
    if (hosted.contains(replica)) std::ranges::copy(states.of(replica), state.begin());
    comm.all_reduce_sum(as_buffer(std::span(state)));
    result.states.push_back(state);
  }
  return result;
}

OneStepResult run_one_step_alone(const OneStep& step) {
  OneStepResult result;
  run_thread_ranks(1, [&](Communicator& comm) { result = run_one_step(comm, step); });
  return result;
}

}  // namespace lockstep::test
