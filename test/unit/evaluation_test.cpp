// What an evaluation gives, against a count by hand.
#include "lockstep/train/evaluation/evaluation.h"

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/catalog.h"
#include "support/thread_ranks.h"

namespace lockstep::evaluation_test {

struct Sample {
  std::vector<Scalar> outputs;  // of the model, whose weights are the identity
  Scalar label, weight;
};

const std::vector<Sample> kSamples = {{{3, 1, 2}, 0, 1},    {{3, 1, 2}, 2, 2},  {{3, 1, 2}, 1, 4},
                                      {{-1, 5, 0}, 1, 8},   {{0, 1, 9}, 0, 16}, {{0, 1, 9}, 1, 32.5},
                                      {{7, 0, -7}, 0, 0.25}};

class GivenSamples final : public RecordSource {
 public:
  explicit GivenSamples(bool weighted) {
    info_.rows = std::ssize(kSamples);
    info_.features = {{3}};
    info_.target_columns = 1;
    info_.weighted = weighted;
  }
  const DatasetInfo& info() const override { return info_; }
  std::span<const Chunk> chunks() const override { return chunks_; }
  std::unique_ptr<ChunkReader> reader(const TargetRule&) const override { return nullptr; }
  void unpack(std::span<const Index> ids, std::span<const std::byte* const>, Matrix& x,
              Matrix& labels) const override {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const Sample& sample = at(kSamples, ids[i]);
      const auto row = static_cast<Index>(i);
      for (Index column = 0; column < 3; ++column) x(row, column) = at(sample.outputs, column);
      labels(row, 0) = sample.label;
      if (info_.weighted) labels(row, 1) = sample.weight;
    }
  }

 private:
  DatasetInfo info_;
  std::vector<Chunk> chunks_ = {{{0, std::ssize(kSamples)}}};
};

// `work` gets the evaluation and the weights of the model.
void with_evaluation(Communicator& comm, int threads, bool weighted,
                     const std::function<void(Evaluation&, const ModelValues&)>& work) {
  const Model model({.layers = "dense(3)"}, {{3}});
  AlignedBuffer<Scalar> weights(model.layout().size);
  const std::span<Scalar> matrix = part(weights.span(), model.layout().params.front().range);
  for (std::size_t i = 0; i < matrix.size(); i += 3 + 1) matrix[i] = 1;
  const auto loss = find_entry(loss_catalog(), "loss", "softmax_cross_entropy").make({});
  const Normaliser normaliser({0}, {1}, {{3}});
  ThreadTeam team(threads);
  const EvalOptions options{.batch = 2, .top_k = 2, .metrics = {"recall"}};
  const MetricSet metrics(options.metrics, TargetKind::kClass, 3);
  const GivenSamples samples(weighted);
  Evaluation evaluation({.comm = comm,
                         .model = model,
                         .loss = *loss,
                         .normaliser = normaliser,
                         .team = team,
                         .options = options,
                         .metrics = metrics},
                        samples, Split::kTest);
  work(evaluation, {.weights = weights.span(), .state = {}});
}

EvalMetrics evaluate(Communicator& comm, int threads, bool weighted, Scalar temperature = 1) {
  EvalMetrics metrics;
  with_evaluation(comm, threads, weighted, [&](Evaluation& evaluation, const ModelValues& values) {
    evaluation.set_temperature(temperature);
    metrics = evaluation.run(values);
  });
  return metrics;
}

// Weighted mean over the samples.
double mean(bool weighted, const std::function<double(const Sample&)>& value) {
  double sum = 0, weights = 0;
  for (const Sample& sample : kSamples) {
    const double weight = weighted ? sample.weight : 1;
    sum += weight * value(sample);
    weights += weight;
  }
  return sum / weights;
}

// From 0 for the highest.
Index place_of_label(const Sample& sample) {
  const Scalar output = sample.outputs[static_cast<std::size_t>(sample.label)];
  return std::ranges::count_if(sample.outputs, [&](Scalar other) { return other > output; });
}

double cross_entropy_at(const Sample& sample, double temperature) {
  double sum = 0;
  for (const Scalar output : sample.outputs) sum += std::exp(double{output} / temperature);
  return std::log(sum) - double{sample.outputs[static_cast<std::size_t>(sample.label)]} / temperature;
}

double cross_entropy(const Sample& sample) {
  return cross_entropy_at(sample, 1);
}

TEST(Evaluation, DividesTheOutputsByTheTemperature) {
  run_thread_ranks(2, [&](Communicator& comm) {
    const EvalMetrics metrics = evaluate(comm, 1, true, 4);
    EXPECT_NEAR(metrics.loss, mean(true, [](const Sample& sample) { return cross_entropy_at(sample, 4); }),
                1e-6);
    EXPECT_EQ(metrics.accuracy, evaluate(comm, 1, true).accuracy);
  });
}

TEST(Evaluation, CalibratesAsWithTheTemperatureThatItFinds) {
  for (const int ranks : {1, 3}) {
    run_thread_ranks(ranks, [&](Communicator& comm) {
      with_evaluation(comm, 2, false, [&](Evaluation& evaluation, const ModelValues& values) {
        const Calibration found = evaluation.calibrate(values, {}).value();
        EXPECT_TRUE(found.found);
        EXPECT_GT(found.temperature, 1) << "the model is too sure";
        EXPECT_NEAR(found.loss_before, evaluation.run(values).loss, 1e-6);
        for (const Scalar other : {0.9F, 1.1F}) {
          evaluation.set_temperature(found.temperature * other);
          EXPECT_GT(evaluation.run(values).loss, found.loss_after);
        }
        evaluation.set_temperature(found.temperature);
        EXPECT_NEAR(evaluation.run(values).loss, found.loss_after, 1e-6);
        EXPECT_FALSE(evaluation.calibrate(values, [] { return true; })) << "interrupted";
      });
      // By weight the model is worse than chance.
      with_evaluation(comm, 2, true, [&](Evaluation& evaluation, const ModelValues& values) {
        const Calibration none = evaluation.calibrate(values, {}).value();
        EXPECT_FALSE(none.found);
        EXPECT_NEAR(none.loss_before, mean(true, cross_entropy), 1e-6);
      });
    });
  }
}

// The class that is predicted has a probability of 0.665 in three samples, and of more than 14/15 in four.
TEST(Evaluation, CountsPredictionsByTheirProbability) {
  run_thread_ranks(2, [&](Communicator& comm) {
    const EvalMetrics metrics = evaluate(comm, 1, true);
    ASSERT_EQ(metrics.reliability.size(), 2U);
    EXPECT_EQ(metrics.reliability[0].count, 3);
    EXPECT_NEAR(metrics.reliability[0].from, 9.0 / 15, 1e-12);
    EXPECT_NEAR(metrics.reliability[0].observed, 1.0 / 7, 1e-12) << "by weight";
    EXPECT_NEAR(metrics.reliability[0].predicted, 0.66524096, 1e-6);
    EXPECT_EQ(metrics.reliability[1].count, 4);
    EXPECT_EQ(metrics.reliability[1].to, 1);
    EXPECT_NEAR(metrics.reliability[1].observed, 8.25 / 56.75, 1e-12);
  });
}

TEST(Evaluation, GivesWeightedMeansAndCountsOfSamples) {
  for (const bool weighted : {false, true})
    for (const int ranks : {1, 3})
      for (const int threads : {1, 2}) {
        SCOPED_TRACE(testing::Message() << (weighted ? "weighted, " : "") << ranks << " ranks");
        run_thread_ranks(ranks, [&](Communicator& comm) {
          const EvalMetrics metrics = evaluate(comm, threads, weighted);
          EXPECT_EQ(metrics.samples, 7);
          EXPECT_EQ(metrics.classes, 3);
          EXPECT_NEAR(metrics.loss, mean(weighted, cross_entropy), 1e-6);
          const auto among_first = [](Index k) {
            return [k](const Sample& sample) { return place_of_label(sample) < k ? 1.0 : 0.0; };
          };
          EXPECT_NEAR(metrics.accuracy.value(), mean(weighted, among_first(1)), 1e-12);
          EXPECT_NEAR(metrics.top_k_accuracy.value(), mean(weighted, among_first(2)), 1e-12);
          EXPECT_EQ(metrics.confusion, (std::vector<Index>{2, 0, 1, 1, 1, 1, 1, 0, 0})) << "unweighted";
        });
      }
}

}  // namespace lockstep::evaluation_test
