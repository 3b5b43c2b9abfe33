// A model in stages gives what it gives as a whole, bit for bit, wherever it is cut.
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/random.h"
#include "lockstep/nn/stages.h"
#include "lockstep/nn/workspace.h"
#include "support/error_text.h"

namespace lockstep::test::model_stages_test {

constexpr Index kSamples = 5;
constexpr const char* kImages =
    "conv2d(6, 3, padding=same) batch_norm relu maxpool(2) residual(conv2d(6, 3, padding=same) relu "
    "conv2d(6, 3, padding=same)) dropout(0.3) concat(conv2d(2, 1) | conv2d(3, 3, padding=same) relu) flatten "
    "dense(7) tanh dense(4)";

// A model, or a stage of it, with memory of its own.
struct Part {
  explicit Part(std::unique_ptr<Model> made)
      : model(std::move(made)),
        workspace(*model, kSamples, ActivationRetention::kForTraining),
        weights(model->layout().size),
        state(model->state_layout().size),
        borrowed(model->borrowed().size),
        gradient(model->layout().size) {
    initialise({&model->layout(), weights.span()}, 3, 1.0);
    initialise({&model->state_layout(), state.span()}, 3, 1.0);
    std::ranges::fill(gradient.span(), Scalar{-1});  // to be overwritten
  }

  void begin(const AlignedBuffer<Scalar>& x, const Shape& input) {
    workspace.begin(
        {.values = {.weights = weights.span(), .state = state.span(), .borrowed = borrowed.span()},
         .x = ConstMatrix(x.data(), kSamples, input.size()),
         .batch = {.training = true, .seed = 7, .step = 3, .replica = 2}});
  }
  Range ops() const { return {0, std::ssize(model->ops())}; }
  std::unique_ptr<Model> model;
  Workspace workspace;
  AlignedBuffer<Scalar> weights, state, borrowed, gradient;
  std::map<Index, AlignedBuffer<Scalar>> tied;  // gradients by borrowed weights, by op of the whole model
};

const ParamInfo& named(const Layout& layout, const std::string& name) {
  return *std::ranges::find(layout.params, name, &ParamInfo::name);
}

class Stages {
 public:
  Stages(const ModelOptions& options, const Model& whole, const std::vector<Range>& division) {
    for (const Range ops : division)
      parts_.push_back(std::make_unique<Part>(std::make_unique<Model>(options, whole, ops)));
  }

  void forward(const AlignedBuffer<Scalar>& x, const Shape& input) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      Part& part = *parts_[i];
      for (const ParamInfo& param : part.model->borrowed().params) {
        const Part& owner = *parts_[place_of(param.layer)];
        std::ranges::copy(
            lockstep::part(owner.weights.span(), named(owner.model->layout(), param.name).range),
            lockstep::part(part.borrowed.span(), param.range).begin());
      }
      part.begin(x, input);
      for (Index op = 0; op < part.model->received().end; ++op) {
        const Index sent = at(parts_[i - 1]->model->sent(), op);
        std::ranges::copy(parts_[i - 1]->workspace.output(sent).values(), part.workspace.output(op).data());
      }
      part.workspace.forward(part.ops());
    }
  }
  void backward(Write write) {
    for (std::size_t i = parts_.size(); i-- > 0;) {
      Part& part = *parts_[i];
      for (Index j = 0; j < std::ssize(part.model->sent()); ++j)
        std::ranges::copy(parts_[i + 1]->workspace.gradient(j).values(),
                          part.workspace.gradient(at(part.model->sent(), j)).data());
      part.workspace.begin_backward(part.gradient.span(), write);
      exchange_tied(i);
      part.workspace.backward(part.ops(), part.gradient.span(), write, {});
    }
  }
  const std::vector<std::unique_ptr<Part>>& parts() const { return parts_; }

 private:
  std::size_t place_of(Index op) const {
    const auto has = [&](const auto& part) { return part->model->stage().contains(op); };
    return static_cast<std::size_t>(std::ranges::find_if(parts_, has) - parts_.begin());
  }
  // Makes room for what a part gives to others, and adds what others gave to it.
  void exchange_tied(std::size_t number) {
    Part& part = *parts_[number];
    for (const ModelTie& tie : model_ties(part.model->whole())) {
      if (place_of(tie.op) == place_of(tie.owner)) continue;
      AlignedBuffer<Scalar>& tied = parts_[place_of(tie.op)]->tied[tie.op];
      if (place_of(tie.op) == number) {
        tied = AlignedBuffer<Scalar>(tie.size);
        std::ranges::fill(tied.span(), Scalar{-1});  // to be overwritten
        part.workspace.set_tied_gradient(tie.op - part.model->stage().begin + part.model->received().end,
                                         tied.span());
      } else if (place_of(tie.owner) == number) {
        add(lockstep::part(part.gradient.span(), named(part.model->layout(), tie.name).range), tied.span());
      }
    }
  }
  std::vector<std::unique_ptr<Part>> parts_;
};

AlignedBuffer<Scalar> random_input(Index size) {
  AlignedBuffer<Scalar> x(size);
  RandomStream random({.seed = 5});
  for (Scalar& value : x.span()) value = static_cast<Scalar>(random.normal());
  return x;
}

void set_output_gradient(Part& last) {
  Matrix dy = last.workspace.output_gradient();
  for (Index i = 0; i < dy.size(); ++i) dy.data()[i] = static_cast<Scalar>(i % 5) - Scalar{1.75F};
}

void expect_equal_bits(std::span<const Scalar> found, std::span<const Scalar> expected) {
  EXPECT_TRUE(std::ranges::equal(found, expected));
}

void expect_bits_of_whole(const std::string& layers, const Shape& input, const std::vector<Range>& division,
                          const WindowScaling& scaling = {}) {
  SCOPED_TRACE(fmt::format("{}, cut before op {}", layers, division[1].begin));
  const ModelOptions options{.layers = layers, .init = "he", .window_scaling = scaling};
  Part whole(std::make_unique<Model>(options, input));
  const AlignedBuffer<Scalar> x = random_input(kSamples * input.size());
  whole.begin(x, input);
  whole.workspace.forward(whole.ops());
  Stages stages(options, *whole.model, division);
  stages.forward(x, input);
  Part& last = *stages.parts().back();
  const ConstMatrix expected = whole.workspace.outputs(), found = last.workspace.outputs();
  EXPECT_TRUE(std::ranges::equal(found.values(), expected.values()));
  for (const Write write : {Write::kReplace, Write::kAdd}) {
    set_output_gradient(whole);
    set_output_gradient(last);
    whole.workspace.backward(whole.gradient.span(), write, {});
    stages.backward(write);
  }
  for (const auto& part : stages.parts()) {
    const Range own = part->model->weights_in_whole();
    for (const ParamInfo& param : part->model->layout().params) {
      const Range in_whole{param.range.begin + own.begin, param.range.end + own.begin};
      const auto named = std::ranges::find(whole.model->layout().params, param.name, &ParamInfo::name);
      ASSERT_EQ(named->range, in_whole) << param.name;
      expect_equal_bits(lockstep::part(std::span<const Scalar>(part->weights.span()), param.range),
                        lockstep::part(std::span<const Scalar>(whole.weights.span()), in_whole));
      EXPECT_TRUE(
          std::ranges::equal(lockstep::part(std::span<const Scalar>(part->gradient.span()), param.range),
                             lockstep::part(std::span<const Scalar>(whole.gradient.span()), in_whole)))
          << param.name;
    }
  }
}

// Cuts through blocks, before and behind statistics, and between a layer and one that works in place.
TEST(ModelStages, HaveTheBitsOfTheWholeWhereverItIsCut) {
  const Shape image{{12, 12, 2}};
  const Index ops = std::ssize(Model({.layers = kImages, .init = "he"}, image).ops());
  for (Index cut = 1; cut < ops; ++cut) expect_bits_of_whole(kImages, image, {{0, cut}, {cut, ops}});
  expect_bits_of_whole(kImages, image, {{0, 5}, {5, 8}, {8, 10}, {10, ops}});
}

// Samples so large that a pass takes them a few at a time: blocks are those of the whole.
TEST(ModelStages, TakeSamplesInTheBlocksOfTheWhole) {
  const std::string layers =
      "conv2d(8, 3, padding=same) relu batch_norm relu conv2d(4, 3) relu flatten dense(3)";
  const Shape image{{96, 96}};
  const Index ops = std::ssize(Model({.layers = layers, .init = "he"}, image).ops());
  for (Index cut = 1; cut < ops; ++cut) expect_bits_of_whole(layers, image, {{0, cut}, {cut, ops}});
}

// The op behind the layers takes the model's input, too.
TEST(ModelStages, ScaleWindowsWhereverTheyAreCut) {
  constexpr Index kOps = 9;
  const std::string layers = "concat(dense(2, shared=2) tanh | slice(2, 5)) dense(4, shared=3) relu dense(6)";
  for (Index cut = 1; cut < kOps; ++cut)
    expect_bits_of_whole(layers, {{14}}, {{0, cut}, {cut, kOps}}, {WindowScaling::Kind::kStandard, 3, 4});
}

// One layer or several share the weight of an earlier one, in one stage or several.
TEST(ModelStages, ShareWeightsWhereverTheyAreCut) {
  for (const std::string layers : {"dense(9) tanh dense(7) relu dense(10) dense(9, tie=0)",
                                   "dense(10) relu dense(10, tie=0) tanh dense(7) tanh dense(10) dense(10, "
                                   "tie=0, bias=false) relu dense(3)",
                                   "dense(8) dense(10) tanh dense(8, tie=0) batch_norm dense(10, tie=1) relu "
                                   "dense(8, tie=0) dense(2)"}) {
    const Shape input{{10}};
    const Index ops = std::ssize(Model({.layers = layers, .init = "he"}, input).ops());
    for (Index cut = 1; cut < ops; ++cut) {
      expect_bits_of_whole(layers, input, {{0, cut}, {cut, ops}});
      if (cut + 2 < ops) expect_bits_of_whole(layers, input, {{0, cut}, {cut, cut + 2}, {cut + 2, ops}});
    }
  }
}

TEST(ModelStages, ReplaceTheGradientOfASharedWeight) {
  const Shape input{{10}};
  Part part(std::make_unique<Model>(ModelOptions{.layers = "dense(10) tanh dense(10, tie=0)"}, input));
  const AlignedBuffer<Scalar> x = random_input(kSamples * input.size());
  part.begin(x, input);
  part.workspace.forward(part.ops());
  std::vector<std::vector<Scalar>> gradients;
  for (int i = 0; i < 2; ++i) {
    set_output_gradient(part);
    part.workspace.backward(part.gradient.span(), Write::kReplace, {});
    gradients.emplace_back(part.gradient.span().begin(), part.gradient.span().end());
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

// Borrowed weights have an arena of their own, in which each stands once.
TEST(ModelStages, BorrowWeightsOfOtherStages) {
  const ModelOptions options{.layers =
                                 "embedding(10, 4) dense(4) tanh dense(4) dense(10, tie=0) dense(4) "
                                 "dense(10, tie=0) dense(10) dense(10, tie=7)"};
  const Model whole(options, Shape{{1}}), last(options, whole, {4, 9});
  ASSERT_EQ(last.borrowed().params.size(), 1U);
  EXPECT_EQ(last.borrowed().params[0].name, "0.weight");
  EXPECT_EQ(last.borrowed().params[0].range, (Range{0, 40}));
  EXPECT_EQ(last.borrowed().params[0].layer, 0);
  EXPECT_TRUE(last.op(last.received().end).tie->borrowed);
  EXPECT_FALSE(last.op(last.received().end + 4).tie->borrowed) << "its owner is here";
  for (const ParamInfo& param : last.layout().params) EXPECT_NE(param.name, "0.weight");
  EXPECT_EQ(Model(options, whole, {0, 4}).borrowed().size, 0);
  // Chunks of one rank share one arena of weights.
  const std::vector<Range> chunks{{0, 2}, {4, 5}};
  EXPECT_EQ(Model(options, whole, std::span(chunks)).borrowed().size, 0);
}

TEST(ModelStages, KeepTheGlobalNumbersOfTheirOps) {
  const ModelOptions options{.layers = kImages, .init = "he"};
  const Model whole(options, Shape{{12, 12, 2}}), stage(options, whole, {6, 11});
  ASSERT_GT(stage.received().end, 1) << "the input of the residual block crosses, too";
  for (Index op = stage.received().end; op < std::ssize(stage.ops()); ++op)
    EXPECT_EQ(stage.op(op).title, whole.op(stage.number_in_whole(op)).title);
  for (const ParamInfo& param : stage.layout().params)
    EXPECT_TRUE(param.name.starts_with(stage.op(param.layer).path)) << param.name;
}

// The arenas of a rank hold the tensors of its chunks one after the other.
TEST(ModelStages, JoinChunksInOneLayout) {
  const ModelOptions options{.layers = kImages, .init = "he"};
  const Model whole(options, Shape{{12, 12, 2}});
  const std::vector<Range> ops{{0, 3}, {6, 9}, {12, std::ssize(whole.ops())}};
  const Model joined(options, whole, std::span(ops));
  ASSERT_EQ(joined.chunks(), 3);
  Index weights = 0, state = 0;
  std::vector<ParamInfo> tensors;
  for (Index i = 0; i < 3; ++i) {
    const Model alone(options, whole, at(ops, i));
    const Model& chunk = joined.chunk(i);
    EXPECT_EQ(chunk.weights(), (Range{weights, weights + alone.layout().size}));
    EXPECT_EQ(chunk.state(), (Range{state, state + alone.state_layout().size}));
    EXPECT_EQ(std::tuple(chunk.weights_in_whole(), chunk.state_in_whole(), chunk.received()),
              std::tuple(alone.weights_in_whole(), alone.state_in_whole(), alone.received()));
    EXPECT_TRUE(std::ranges::equal(chunk.sent(), alone.sent()));
    const Index first = joined.first_op_of_chunk(i);
    for (Index op = 0; op < std::ssize(chunk.ops()); ++op) {
      EXPECT_EQ(joined.op(first + op).title, alone.op(op).title);
      EXPECT_EQ(chunk.op(op).inputs, alone.op(op).inputs);
      EXPECT_EQ(joined.number_in_whole(first + op), alone.number_in_whole(op));
      EXPECT_EQ(chunk.op(op).params.size(), alone.op(op).params.size());
    }
    EXPECT_EQ(i == 0 ? 0 : at(joined.layout().chunk_offsets(), i - 1), weights);
    for (const ParamInfo& param : alone.layout().params) tensors.push_back(param);
    weights += alone.layout().size;
    state += alone.state_layout().size;
  }
  EXPECT_EQ(joined.layout().size, weights);
  EXPECT_EQ(joined.state_layout().size, state);
  ASSERT_EQ(joined.layout().params.size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const ParamInfo& param = joined.layout().params[i];
    EXPECT_EQ(param.name, tensors[i].name);
    EXPECT_TRUE(param.name.starts_with(joined.op(param.layer).path)) << param.name;
  }
}

TEST(ModelStages, DealTheirPartsOutInTurn) {
  const std::vector<Range> parts{{0, 2}, {2, 4}, {4, 6}, {6, 9}};
  const auto dealt = chunks_of_stages(parts, 2);
  ASSERT_EQ(dealt.size(), 2U);
  EXPECT_EQ(dealt[0], (std::vector<Range>{{0, 2}, {4, 6}}));
  EXPECT_EQ(dealt[1], (std::vector<Range>{{2, 4}, {6, 9}}));
}

// The matrix of the outputs stands in the third of four parts: behind it is a layer with vectors alone.
TEST(ModelStages, KnowWhichChunkHasTheOutputLayer) {
  const ModelOptions options{.layers = "dense(16) relu dense(16) relu dense(5) batch_norm"};
  const Model whole(options, Shape{{10}});
  const auto parts = divide_model(whole, 2, std::vector<std::string>{"2", "4", "5"}, 2);
  const auto chunks = chunks_of_stages(parts, 2);
  EXPECT_TRUE(Model(options, whole, std::span(chunks[0])).layout().has_output);
  EXPECT_FALSE(Model(options, whole, std::span(chunks[1])).layout().has_output);
  EXPECT_TRUE(Model(options, whole, parts[2]).layout().has_output);
  EXPECT_FALSE(Model(options, whole, parts[3]).layout().has_output);
}

std::vector<Range> divide(const std::string& layers, Index stages, const std::vector<std::string>& cut) {
  return divide_model(Model({.layers = layers, .init = "he"}, Shape{{10}}), stages, cut);
}

TEST(ModelStages, AreCutBeforeNamedLayers) {
  const std::string layers = "dense(8) relu residual(dense(8) tanh dense(8)) dense(3)";
  EXPECT_EQ(divide(layers, 2, {"2.body.2"}), (std::vector<Range>{{0, 4}, {4, 7}})) << "dense, in the block";
  EXPECT_EQ(divide(layers, 3, {"3", "2"}).front(), (Range{0, 2}));
  expect_parts(error_text<ConfigError>([&] { divide(layers, 2, {"9"}); }), {"'9', which is no layer"});
  expect_parts(error_text<ConfigError>([&] { divide(layers, 3, {"2"}); }), {"makes 2 stages"});
  EXPECT_NE(error_text<ConfigError>([&] {
              divide(layers, 3, {"1", "2"});
            }).find("without a layer that has"),
            std::string::npos);
}

TEST(ModelStages, AreAboutEvenAndSendLittle) {
  EXPECT_EQ(divide("dense(100) relu dense(100) relu dense(100) relu dense(100) relu dense(2)", 2, {kAutoCut}),
            (std::vector<Range>{{0, 4}, {4, 9}}));
  // Behind the narrow layer is as good a balance as before it, for a tenth of the bytes.
  const std::vector<Range> narrow =
      divide("dense(64) relu dense(6) relu dense(64) relu dense(6)", 2, {kAutoCut});
  EXPECT_TRUE(narrow[1].begin == 3 || narrow[1].begin == 4) << narrow[1].begin;
}

// Memory as the weights alone: 400 of the first layer, then 36 and 21 twice.
TEST(ModelStages, AreCutWhereTheyFitAndElseWhereTheLargestIsLeast) {
  const Model model(ModelOptions{.layers = "dense(40) dense(6) dense(6) dense(6) dense(6)"}, Shape{{9}});
  const auto weights_of = [&](Range ops) {
    Index weights = 0;
    for (Index i = ops.begin; i < ops.end; ++i) weights += model.op(i).params.size();
    return weights;
  };
  const auto within = [&](Index limit) {
    return divide_within(
        model, 2, {.limit = limit, .bytes = [&](Range ops, Index /*part*/) { return weights_of(ops); }});
  };
  const std::vector<Range> even = divide_model(model, 2, std::vector<std::string>{kAutoCut});
  const std::vector<Range> alone{{0, 1}, {1, 5}};
  ASSERT_FALSE(even == alone) << "else nothing has to be moved";
  EXPECT_EQ(within(weights_of({0, 5})), even);
  EXPECT_EQ(within(std::max(weights_of({0, 1}), weights_of({1, 5}))), alone);
  EXPECT_EQ(within(1), alone) << "none fits";
  const std::vector<Range> late = divide_within(
      model, 2, {.limit = 1, .bytes = [](Range ops, Index part) { return part == 0 ? 0 : ops.size(); }});
  EXPECT_EQ(late, (std::vector<Range>{{0, 4}, {4, 5}})) << "by the number of the part";
}

TEST(ModelStages, NeedALayerWithWeightsEach) {
  EXPECT_NE(error_text<ConfigError>([] {
              divide("dense(8) relu dense(3)", 3, {kAutoCut});
            }).find("the model has 2 layers with weights"),
            std::string::npos);
}

// A weight that two stages share is sent: a cut elsewhere is cheaper, if there is one.
TEST(ModelStages, AreCutBetweenLayersThatShareAWeightOnlyIfNeeded) {
  const std::string tied = "dense(10) relu dense(10, tie=0)";
  EXPECT_EQ(divide(tied, 2, {"2"}).back(), (Range{2, 3}));
  EXPECT_EQ(divide(tied, 2, {kAutoCut}).size(), 2U);
  EXPECT_EQ(divide("dense(10) relu dense(10) dense(9)", 2, {kAutoCut}).back(), (Range{2, 4}));
  EXPECT_EQ(divide("dense(10) relu dense(10, tie=0) dense(9)", 2, {kAutoCut}).back(), (Range{3, 4}));
}

}  // namespace lockstep::test::model_stages_test
