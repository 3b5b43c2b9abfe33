// Each metric against scikit-learn, what is undefined, and the choice of metrics by the targets.
#include "lockstep/train/evaluation/metrics.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/train/evaluation/metric.h"
#include "support/error_text.h"
#include "support/thread_ranks.h"
#include "support/torch_references.h"

namespace lockstep::metrics_test {

struct Set {
  OutputForm kind = TargetKind::kClass;
  Index rows = 0;
  std::vector<Scalar> outputs, targets, weights = {};
  std::vector<Scalar> present = {};  // how many targets a row has; empty: all

  SampleWeights weights_of(Range range) const {
    SampleWeights of{.values = {}, .present = {}, .targets = columns()};
    if (!weights.empty()) of.values = part(std::span<const Scalar>(weights), range);
    if (!present.empty()) of.present = part(std::span<const Scalar>(present), range);
    return of;
  }
  Index columns() const { return std::ssize(outputs) / rows; }
};

ConstMatrix rows_of(const std::vector<Scalar>& values, Index rows, Range range) {
  const Index columns = std::ssize(values) / rows;
  return {values.data() + range.begin * columns, range.size(), columns};
}

// The metric over the set in blocks of `block` rows.
std::optional<double> measure(const std::string& name, const Set& set, Index block,
                              const std::vector<LabelScale>& scales = {}) {
  const MetricSet metrics(std::span(&name, 1), set.kind, set.columns(), scales);
  const MetricNeeds& needs = metrics.needs();
  std::vector<double> sums(static_cast<std::size_t>(needs.sums));
  std::vector<Scores> scores(static_cast<std::size_t>(needs.rankings));
  std::vector<ScoredSamples> samples(static_cast<std::size_t>(needs.samples));
  for (Index begin = 0; begin < set.rows; begin += block) {
    const Range range{begin, std::min(begin + block, set.rows)};
    std::vector<double> of_block(sums.size());
    metrics.collect({.outputs = rows_of(set.outputs, set.rows, range),
                     .targets = rows_of(set.targets, set.rows, range),
                     .weights = set.weights_of(range)},
                    {.sums = of_block, .scores = scores, .samples = samples});
    std::ranges::transform(sums, of_block, sums.begin(), std::plus<>());
  }
  std::vector<RankedPairs> rankings;
  run_thread_ranks(1, [&](Communicator& comm) {
    for (Scores& each : scores)
      rankings.push_back(set.weights.empty() ? rank_pairs(comm, each) : rank_weighted_pairs(comm, each));
    for (ScoredSamples& each : samples) each = gather_samples(comm, each);
  });
  return metrics
      .values({.weight = set.weights_of({0, set.rows}).sum(set.rows),
               .sums = sums,
               .rankings = rankings,
               .samples = samples})
      .front()
      .value;
}

nlohmann::json references() {
  return test::torch_references("metrics", "sklearn_references.json");
}

OutputForm read_form(const nlohmann::json& reference) {
  const std::string kind = reference.at("targets_are");
  if (kind == "classes") return TargetKind::kClass;
  if (kind == "binary") return TargetKind::kBinary;
  OutputForm form(TargetKind::kValue, reference.contains("power") ? Link::kLog : Link::kIdentity);
  form.power = reference.value("power", form.power);
  form.quantiles = reference.value("quantiles", form.quantiles);
  form.direction = kind == "directions";
  return form;
}

Set read_set(const nlohmann::json& reference) {
  return {.kind = read_form(reference),
          .rows = reference.at("rows"),
          .outputs = reference.at("outputs").get<std::vector<Scalar>>(),
          .targets = reference.at("targets").get<std::vector<Scalar>>(),
          .weights = reference.value("weights", std::vector<Scalar>())};
}

void expect_values(const nlohmann::json& reference, const Set& set, Index some, double tolerance) {
  for (const auto& [name, expected] : reference.at("values").items()) {
    SCOPED_TRACE(name + " of " + reference.at("targets_are").get<std::string>());
    for (const Index block : {Index{1}, some, set.rows}) {
      const std::optional<double> value = measure(name, set, block);
      ASSERT_TRUE(value);
      EXPECT_NEAR(*value, expected.get<double>(), tolerance) << "blocks of " << block;
    }
  }
}

TEST(Metrics, EqualScikitLearnInBlocksOfAnySize) {
  for (const nlohmann::json& reference : references())
    expect_values(reference, read_set(reference), 10, 1e-12);
}

// NaN is no JSON: a missing target is null there.
Set read_gaps(const nlohmann::json& reference) {
  nlohmann::json filled = reference;
  for (nlohmann::json& target : filled["targets"]) target = target.is_null() ? nlohmann::json(0) : target;
  Set set = read_set(filled);
  for (Index row = 0; row < set.rows; ++row) {
    Scalar present = 0;
    for (Index i = row * set.columns(); i < (row + 1) * set.columns(); ++i) {
      const bool missing = reference.at("targets").at(static_cast<std::size_t>(i)).is_null();
      if (missing) at(set.targets, i) = std::numeric_limits<Scalar>::quiet_NaN();
      present += missing ? 0 : 1;
    }
    set.present.push_back(present);
  }
  return set;
}

TEST(Metrics, CountTheTargetsThatAreThereAsScikitLearnDoesOfThemAlone) {
  for (const nlohmann::json& reference : test::torch_references("metrics", "target_references.json")) {
    const Set set = read_gaps(reference);
    expect_values(reference, set, 5, 1e-7);
    const SampleWeights weights = set.weights_of({0, set.rows});
    const double right = count_correct(set.kind.targets, rows_of(set.outputs, set.rows, {0, set.rows}),
                                       rows_of(set.targets, set.rows, {0, set.rows}), weights);
    EXPECT_NEAR(right / weights.sum(set.rows), reference.at("accuracy").get<double>(), 1e-7);
  }
}

TEST(Metrics, OfAnOutputWithoutAnyTargetAreUndefinedOrLeaveItOut) {
  const Scalar none = std::numeric_limits<Scalar>::quiet_NaN();
  const Set set{.kind = TargetKind::kBinary,
                .rows = 3,
                .outputs = {1, 5, -1, 5, 2, 5},
                .targets = {1, none, 0, none, 1, none},
                .present = {1, 1, 1}};
  EXPECT_EQ(measure("auc", set, 3), 1);
  EXPECT_EQ(measure("recall", set, 3), 1);
  Set numbers = set;
  numbers.kind = TargetKind::kValue;
  EXPECT_EQ(measure("r2", numbers, 3), std::nullopt);
  EXPECT_EQ(measure("mean_absolute_error", numbers, 3), (0.0 + 1 + 1) / 3);
}

TEST(Metrics, OfSoftLabelsAreThoseOfTheLargestProbabilityAndLogLossIsOfAll) {
  const Set soft{
      .kind = TargetKind::kClass, .rows = 2, .outputs = {0, 1, 2, 0}, .targets = {0.25F, 0.75F, 0.5F, 0.5F}};
  Set hard = soft;
  hard.targets = {1, 0};
  for (const char* name : {"auc", "precision", "recall"})
    EXPECT_EQ(measure(name, soft, 2), measure(name, hard, 2)) << name;
  const double expected = (std::log1p(std::exp(1.0)) - 0.75 + std::log1p(std::exp(2.0)) - 1) / 2;
  EXPECT_NEAR(*measure("log_loss", soft, 2), expected, 1e-12);
  const ConstMatrix outputs = rows_of(soft.outputs, 2, {0, 2});
  EXPECT_EQ(count_correct(TargetKind::kClass, outputs, rows_of(soft.targets, 2, {0, 2}), {}), 2);
  EXPECT_EQ(count_in_top_k(outputs, rows_of(soft.targets, 2, {0, 2}), {}, 1), 2);
}

TEST(Metrics, AccuracyByWeightsEqualsScikitLearn) {
  Index found = 0;
  for (const nlohmann::json& reference : references()) {
    if (!reference.contains("accuracy")) continue;
    const Set set = read_set(reference);
    const SampleWeights weights{set.weights};
    const ConstMatrix outputs = rows_of(set.outputs, set.rows, {0, set.rows});
    const ConstMatrix targets = rows_of(set.targets, set.rows, {0, set.rows});
    const double right = count_correct(set.kind.targets, outputs, targets, weights);
    EXPECT_NEAR(right / weights.sum(set.rows), reference.at("accuracy").get<double>(), 1e-12);
    if (set.kind.targets == TargetKind::kClass) {
      EXPECT_EQ(count_in_top_k(outputs, targets, weights, 1), right);
      EXPECT_EQ(count_in_top_k(outputs, targets, weights, set.columns()), weights.sum(set.rows));
    }
    ++found;
  }
  EXPECT_GE(found, 3);
}

TEST(Metrics, WeightsOfOneChangeNoBitAndWholeOnesRepeatARow) {
  for (const nlohmann::json& reference : references()) {
    Set set = read_set(reference), repeated = set;
    set.weights = {};
    Set ones = set;
    ones.weights.assign(static_cast<std::size_t>(set.rows), 1);
    repeated.weights.clear();
    for (Index row = 0; row < set.rows; ++row) repeated.weights.push_back(static_cast<Scalar>(row % 3));
    Set long_one{.kind = set.kind, .rows = 0, .outputs = {}, .targets = {}};
    for (Index row = 0; row < set.rows; ++row)
      for (Index i = 0; i < row % 3; ++i) {
        const auto append = [&](std::vector<Scalar>& to, const std::vector<Scalar>& from) {
          const Index columns = std::ssize(from) / set.rows;
          to.insert(to.end(), from.begin() + row * columns, from.begin() + (row + 1) * columns);
        };
        append(long_one.outputs, set.outputs);
        append(long_one.targets, set.targets);
        ++long_one.rows;
      }
    for (const auto& [name, ignored] : reference.at("values").items()) {
      EXPECT_EQ(measure(name, ones, 10), measure(name, set, 10)) << name;
      EXPECT_NEAR(*measure(name, repeated, 10), *measure(name, long_one, 10), 1e-12) << name;
    }
  }
}

TEST(Metrics, EveryOneHasAReference) {
  for (const MetricEntry& entry : metric_catalog()) {
    const nlohmann::json all = references();
    EXPECT_TRUE(std::ranges::any_of(all, [&](const nlohmann::json& reference) {
      return reference.at("values").contains(entry.name);
    })) << entry.name;
  }
}

TEST(Metrics, AreUndefinedWhereThereIsNothingToMeasure) {
  const Set all_negative{
      .kind = TargetKind::kBinary, .rows = 3, .outputs = {-1, -2, -3}, .targets = {0, 0, 0}};
  EXPECT_FALSE(measure("auc", all_negative, 3));
  EXPECT_FALSE(measure("precision", all_negative, 3));
  EXPECT_FALSE(measure("recall", all_negative, 3));
  const Set none_guessed{
      .kind = TargetKind::kBinary, .rows = 3, .outputs = {-1, -2, -3}, .targets = {0, 1, 0}};
  EXPECT_EQ(measure("auc", none_guessed, 3), 0.5);
  EXPECT_EQ(measure("precision", none_guessed, 3), 0);
  EXPECT_EQ(measure("recall", none_guessed, 3), 0);
  const Scalar tenth = 0.1F;
  const Set constant{
      .kind = TargetKind::kValue, .rows = 3, .outputs = {1, 2, 3}, .targets = {tenth, tenth, tenth}};
  EXPECT_FALSE(measure("r2", constant, 1));
  EXPECT_TRUE(measure("mean_absolute_error", constant, 1));
}

TEST(Metrics, AnOutputThatIsNotANumberUpsetsNothing) {
  const Scalar nan = std::numeric_limits<Scalar>::quiet_NaN();
  Set set{.kind = TargetKind::kBinary, .rows = 4, .outputs = {nan, 1, nan, 2}, .targets = {1, 1, 0, 0}};
  EXPECT_EQ(measure("auc", set, 4), 1.5 / 4);
  set.targets = {1, 0, 0, 0};
  EXPECT_EQ(measure("auc", set, 4), 0.5 / 3) << "below all numbers";
  EXPECT_EQ(measure("average_precision", set, 4), 0.25);
  EXPECT_TRUE(std::isnan(*measure("ece", set, 4)));
  set.kind = TargetKind::kValue;
  EXPECT_TRUE(measure("spearman", set, 4));
}

TEST(Metrics, OfOneClassAloneAreAsScikitLearnHasThem) {
  const Set all_negative{
      .kind = TargetKind::kBinary, .rows = 3, .outputs = {-1, 2, -3}, .targets = {0, 0, 0}};
  EXPECT_FALSE(measure("average_precision", all_negative, 3)) << "nothing to find";
  EXPECT_EQ(measure("f1", all_negative, 3), 0);
  EXPECT_EQ(measure("mcc", all_negative, 3), 0);
  EXPECT_EQ(measure("balanced_accuracy", all_negative, 3), 2.0 / 3) << "of the class that is there";
  Set all_positive = all_negative;
  all_positive.targets = {1, 1, 1};
  EXPECT_EQ(measure("average_precision", all_positive, 3), 1);
  const Set one_class{
      .kind = TargetKind::kClass, .rows = 2, .outputs = {2, 1, 0, 2, 1, 0}, .targets = {0, 0}};
  EXPECT_EQ(measure("mcc", one_class, 2), 0);
  EXPECT_EQ(measure("balanced_accuracy", one_class, 2), 1);
  Set constant{.kind = TargetKind::kValue, .rows = 3, .outputs = {1, 2, 3}, .targets = {5, 5, 5}};
  EXPECT_FALSE(measure("spearman", constant, 3));
  std::swap(constant.outputs, constant.targets);
  EXPECT_FALSE(measure("spearman", constant, 3)) << "a constant prediction";
}

// Scores of a hinge loss are compared as they are: the other classes of a record do not count.
TEST(Metrics, ScoresWithoutProbabilitiesAreRankedAsTheyAre) {
  Set set{.kind = TargetKind::kClass, .rows = 2, .outputs = {1, 0, 0, 2, 9, 0}, .targets = {0, 1}};
  EXPECT_EQ(measure("auc", set, 2), 1);
  set.kind = OutputForm(TargetKind::kClass, Link::kIdentity);
  EXPECT_EQ(measure("auc", set, 2), 0.5) << "of class 0 the output of the other record is higher";
}

// Three targets of the first output, one of the second: each output counts alike.
TEST(Metrics, OfProbabilitiesAreTheMeanOverTheOutputs) {
  const Scalar none = std::numeric_limits<Scalar>::quiet_NaN();
  const Set set{.kind = TargetKind::kBinary,
                .rows = 3,
                .outputs = {0, 100, 0, 0, 0, 0},
                .targets = {1, 0, 1, none, 0, none},
                .present = {2, 1, 1}};
  for (const Index block : {1, 3}) {
    EXPECT_EQ(measure("brier", set, block), (0.25 + 1) / 2);
    EXPECT_NEAR(*measure("ece", set, block), (1.0 / 6 + 1) / 2, 1e-12);
  }
}

// A model that says no more than it knows has no calibration error, also where targets are probabilities.
TEST(Metrics, CalibrationIsOfProbabilitiesAgainstTheShareThatIsSo) {
  const Set half{.kind = TargetKind::kBinary, .rows = 4, .outputs = {0, 0, 0, 0}, .targets = {0, 1, 1, 0}};
  EXPECT_EQ(measure("ece", half, 4), 0);
  EXPECT_EQ(measure("brier", half, 4), 0.25);
  Set sure = half;
  sure.outputs = {100, 100, 100, 100};
  EXPECT_NEAR(*measure("ece", sure, 4), 0.5, 1e-12);
  const Set soft{
      .kind = TargetKind::kClass, .rows = 1, .outputs = {0, 0, 0, 0}, .targets = {0.25, 0.25, 0.25, 0.25}};
  EXPECT_NEAR(*measure("ece", soft, 1), 0, 1e-12);
  EXPECT_NEAR(*measure("brier", soft, 1), 0, 1e-12);
}

std::vector<std::string> chosen(const std::vector<std::string>& names, const OutputForm& targets,
                                Index outputs) {
  const MetricSet metrics(names, targets, outputs);
  const std::vector<double> sums(static_cast<std::size_t>(metrics.needs().sums));
  const std::vector<RankedPairs> rankings(static_cast<std::size_t>(metrics.needs().rankings));
  std::vector<std::string> result;
  for (const MetricValue& value : metrics.values({.weight = 1, .sums = sums, .rankings = rankings}))
    result.push_back(value.name);
  return result;
}

// Labels of seconds since 1970 and of prices, whose logarithm is learned: by hand from the labels.
TEST(Metrics, AreInTheUnitsOfTheLabels) {
  const std::vector<LabelScale> scales{{.shift = 1.7e9, .range = 50},
                                       {.shift = 5, .range = 0.5, .logarithm = true}};
  const Set set{.kind = TargetKind::kValue,
                .rows = 3,
                .outputs = {0.5F, 0, 1, 1, -1, 2},
                .targets = {0, 0.5F, 1.5F, 1, -2, 1.5F},
                .weights = {1, 2, 1}};
  double absolute = 0, share = 0, ratios = 0, roots = 0;
  for (std::size_t target = 0; target < 2; ++target) {
    const auto label = [&](Scalar x) {
      return target == 0 ? 1.7e9 + 50 * double{x} : std::expm1(5 + 0.5 * double{x});
    };
    double mean = 0;
    for (std::size_t row = 0; row < 3; ++row)
      mean += double{set.weights[row]} * (label(set.targets[2 * row + target]) - label(0)) / 4;
    double squares = 0, spread = 0;
    for (std::size_t row = 0; row < 3; ++row) {
      const double truth = label(set.targets[2 * row + target]);
      const double error = label(set.outputs[2 * row + target]) - truth;
      absolute += double{set.weights[row]} * std::abs(error) / 8;
      share += double{set.weights[row]} * std::abs(error) / truth / 8;
      squares += double{set.weights[row]} * error * error / 4;
      spread += double{set.weights[row]} * std::pow(truth - label(0) - mean, 2) / 4;
    }
    ratios += (1 - squares / spread) / 2;
    roots += std::sqrt(squares) / 2;
  }
  for (const Index block : {1, 3}) {
    EXPECT_NEAR(measure("mean_absolute_error", set, block, scales).value(), absolute, 1e-6);
    EXPECT_NEAR(measure("mean_absolute_percentage_error", set, block, scales).value(), share, 1e-9);
    EXPECT_NEAR(measure("root_mean_squared_error", set, block, scales).value(), roots, 1e-6);
    EXPECT_NEAR(measure("r2", set, block, scales).value(), ratios, 1e-9);
    EXPECT_EQ(measure("spearman", set, block, scales), measure("spearman", set, block));
  }
}

// Of 4 targets, two are 0: one as it is, one whose scaled number is the nearest to 0 that a Scalar can hold.
TEST(Metrics, SharesLeaveOutTargetsThatAreZero) {
  const LabelScale scale{.shift = 3.7, .range = 1.3};
  const auto scaled = [&](double label) { return static_cast<Scalar>((label - scale.shift) / scale.range); };
  ASSERT_NE(scale.undo(double{scaled(0)}), 0) << "or the test says little";
  for (const bool is_scaled : {false, true}) {
    Set set{.kind = TargetKind::kValue,
            .rows = 4,
            .outputs = {5, 7, 1, 3},
            .targets = {4, 0, 2, 0},
            .weights = {1, 9, 3, 9}};
    if (is_scaled) {
      for (std::vector<Scalar>* numbers : {&set.outputs, &set.targets})
        for (Scalar& each : *numbers) each = scaled(double{each});
    }
    const std::vector<LabelScale> scales(is_scaled ? 1 : 0, scale);
    EXPECT_NEAR(measure("mean_absolute_percentage_error", set, 2, scales).value(), (0.25 + 3 * 0.5) / 4,
                1e-6);
    set.targets.assign(4, is_scaled ? scaled(0) : 0);
    EXPECT_EQ(measure("mean_absolute_percentage_error", set, 2, scales), std::nullopt);
    set.targets.assign(4, is_scaled ? scaled(1e-4) : 1e-4F);
    EXPECT_GT(measure("mean_absolute_percentage_error", set, 2, scales).value(), 9e3) << "small, but not 0";
  }
}

TEST(Metrics, OfDirectionsAreThoseOfTheScaledLabels) {
  Set set{.kind = TargetKind::kValue, .rows = 1, .outputs = {1, 2}, .targets = {2, 1}};
  set.kind.direction = true;
  EXPECT_EQ(measure("cosine_similarity", set, 1, {{.shift = 9, .range = 4}, {}}),
            measure("cosine_similarity", set, 1));
}

TEST(MetricSet, ChoosesWhatSuitsTheTargets) {
  const std::vector<std::string> classification{"auc", "log_loss", "precision", "recall"};
  EXPECT_EQ(chosen({}, TargetKind::kBinary, 1), classification);
  EXPECT_EQ(chosen({}, TargetKind::kBinary, 3), classification);
  EXPECT_EQ(chosen({}, TargetKind::kClass, 2), classification);
  EXPECT_TRUE(chosen({}, TargetKind::kClass, 10).empty());
  EXPECT_EQ(chosen({}, TargetKind::kValue, 1),
            (std::vector<std::string>{"mean_absolute_error", "mean_squared_error", "r2"}));
  EXPECT_EQ(chosen({"recall", "auc"}, TargetKind::kClass, 10), (std::vector<std::string>{"recall", "auc"}));
}

OutputForm form_of(const std::string& loss) {
  return find_entry(loss_catalog(), "loss", loss).make({})->form();
}

// What is measured by default is what is defined for the predictions of the loss.
TEST(MetricSet, ChoosesWhatSuitsTheLoss) {
  using Names = std::vector<std::string>;
  const Names values{"mean_absolute_error", "mean_squared_error", "r2"};
  const auto values_and = [&](const Names& more) {
    Names all = values;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  EXPECT_EQ(chosen({}, form_of("mean_absolute_error"), 1), values);
  EXPECT_EQ(chosen({}, form_of("poisson"), 1), values_and({"poisson_deviance"}));
  EXPECT_EQ(chosen({}, form_of("tweedie"), 1), values_and({"poisson_deviance", "tweedie_deviance"}));
  EXPECT_EQ(chosen({}, form_of("gamma"), 1), values_and({"poisson_deviance", "gamma_deviance"}));
  EXPECT_EQ(chosen({}, form_of("quantile"), 1), values_and({"pinball"})) << "one level";
  OutputForm levels = form_of("quantile");
  levels.quantiles = {0.1, 0.9};
  EXPECT_EQ(chosen({}, levels, 2), Names{"pinball"});
  EXPECT_EQ(chosen({}, form_of("cosine_distance"), 3), Names{"cosine_similarity"});
  EXPECT_EQ(chosen({}, form_of("binary_hinge"), 1), (Names{"auc", "precision", "recall"}));
  EXPECT_EQ(chosen({}, form_of("multiclass_hinge"), 2), (Names{"auc", "precision", "recall"}));
  EXPECT_EQ(chosen({}, form_of("binary_focal"), 1), (Names{"auc", "log_loss", "precision", "recall"}));
}

TEST(MetricSet, RefusesWhatIsNotDefinedOrTwiceThere) {
  const auto refusal = [](const std::vector<std::string>& names) {
    return test::error_text<ConfigError>([&] { MetricSet(names, TargetKind::kValue, 1); });
  };
  EXPECT_EQ(refusal({"r2", "auc"}),
            "eval.metrics: 'auc' is not defined for this train.loss and its targets; those that are: "
            "mean_absolute_error, mean_squared_error, r2, root_mean_squared_error, "
            "mean_absolute_percentage_error, spearman");
  EXPECT_EQ(refusal({"r2", "r2"}), "eval.metrics: 'r2' is named twice; name it once");
}

TEST(MetricValue, IsToldInFiveDigitsOrAsUndefined) {
  EXPECT_EQ(to_string({"auc", 0.7643219}, ""), "auc 0.76432");
  EXPECT_EQ(to_string({"r2", 0.5, 3}, ""), "r2 0.5 (without 3 targets of 0)");
  EXPECT_EQ(to_string({"auc", std::nullopt}, "yes"), "auc undefined") << "it is about both classes";
  EXPECT_EQ(to_string({"f1", 0.5}, "fraud"), "f1 of 'fraud' 0.5");
  EXPECT_EQ(to_string({"recall", std::nullopt}, "1"), "recall of '1' undefined");
  EXPECT_EQ(name_with_class("loss", "fraud"), "loss");
  EXPECT_EQ(name_with_class("average_precision", ""), "average_precision");
}

}  // namespace lockstep::metrics_test
