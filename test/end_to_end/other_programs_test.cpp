// Models that leave Lockstep compute in other programs what `trainer predict` says. Needs those programs;
// skips where one is missing.
#include "lockstep/base/catalog.h"
#include "lockstep/base/terms.h"
#include "lockstep/nn/composite.h"
#include "lockstep/nn/layer.h"
#include "support/idx_files.h"
#include "support/numpy_files.h"
#include "support/seed.h"
#include "support/trainer_runs.h"

namespace lockstep::test::other_programs_test {
namespace {

constexpr Index kRows = 70;
constexpr const char* kMissing = " is not in " LOCKSTEP_PYTHON ": see scripts/peers/python";

// A model to train. Its records are random, whole numbers below `below` if that is given.
struct Trained {
  std::string name;
  Shape input;
  std::string layers;
  std::string loss = "softmax_cross_entropy";
  Index target_columns = 1;
  std::string flags = "";
  Index below = 0;
};

void PrintTo(const Trained& trained, std::ostream* out) {
  *out << trained.name;
}

// The model of run_torch.py.
const Trained kImages{
    "images",
    {{8, 8, 3}},
    "conv2d(8, 3, padding=1) batch_norm relu maxpool(2) "
    "residual(conv2d(16, 3, stride=2, padding=1) batch_norm relu conv2d(16, 3, padding=1) batch_norm) "
    "relu flatten dense(4)"};
constexpr const char* kEntropy = "softmax_cross_entropy";

// Together they have every layer; a test below sees to that.
const std::vector<Trained> kAll{
    {"dense", {{4, 3}}, "dense(8, shared=2) relu dense(4)", kEntropy, 1, "--data.mean 0.4 --data.std 0.3"},
    kImages,
    {"windows",
     {{9, 7, 2}},
     "conv2d(6, 3, stride=2, padding=same) elu(0.7) avgpool(3, stride=2, padding=same) layer_norm "
     "concat(conv2d(4, 3, dilation=2, padding=2) silu | conv2d(6, 3, groups=depthwise, padding=1) | "
     "maxpool(3, stride=1, padding=1)) global_avgpool dropout(0.3) dense(2)",
     "binary_cross_entropy",
     2},
    {"bare_images",
     {{9, 7}},
     "batch_norm conv2d(4, 5, padding=2, bias=false) relu maxpool(2) flatten layer_norm dense(3)",
     "huber",
     3},
    {"counts", {{7}}, "dense(8) tanh dense(2)", "poisson", 2},
    {"categories",
     {{7}},
     "wide_deep(dense(1) | concat(slice(0, 3) | slice(3, 4) embedding(8, 5)) dense(6) gelu "
     "dense(6) gelu dense(6, tie=0.deep.3) dropout(0.2) dense(1))",
     "mean_squared_error",
     1,
     "",
     8},
    {"activations",
     {{5}},
     "concat(dense(5) tanh | dense(4) softplus batch_norm | layer_norm | dense(3) sigmoid) dense(6) "
     "leaky_relu(0.2) dense(4)",
     kEntropy,
     1,
     "--data.mean 0.1,0.2,0.3,0.4,0.5 --data.std 0.5,1,2,1,0.5"},
    {"ensemble",
     {{6}},
     "concat(slice(0, 4) periodic(3) | slice(4, 2)) scale tabm(5) tabm_dense(8) relu tabm_heads(4)"},
    {"sequences",
     {{12, 3}},
     "as_sequence(12) residual(conv1d(6, 3, padding=causal, dilation=2) relu) batch_norm "
     "concat(maxpool1d(3, 2, padding=same) | conv1d(4, 2, stride=2, groups=2) dense(3) tanh "
     "| avgpool1d(2)) layer_norm concat(last | mean_over_time | max_over_time) dense(4)"},
    {"attention",
     {{6, 4}},
     "as_sequence(6) dense(8) positions(learned) attention(4, kv_heads=2, causal=true, rotary=true) "
     "rms_norm dense(12) attend(2, window=3) positions(sinusoidal) dense(12) swiglu dense(4) "
     "transformer(1, 2, mlp=gelu(tanh)) mean_over_time dense(4)"},
    {"many_dimensions", {{2, 3, 2, 2}}, "concat(batch_norm | layer_norm) tanh dense(4)"}};

std::vector<float> floats_in(const std::string& bytes) {
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

void expect_close(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  ASSERT_FALSE(found.empty());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-5F * std::max(1.0F, std::abs(expected[i]))) << "number " << i;
}

void run_or_fail(const std::string& command) {
  succeeded(run_command(command));
}

std::string script(const std::string& name) {
  return LOCKSTEP_TEST_DATA "/end_to_end/" + name;
}

bool python_has(const std::string& module) {
  return run_command(fmt::format("{} -c 'import {}'", LOCKSTEP_PYTHON, module)).exit_code == 0;
}

// A trained model with its predictions.
class OtherPrograms : public testing::TestWithParam<Trained> {
 protected:
  void train(const Trained& trained) {
    SCOPED_TRACE(trained.name);
    write_data(trained);
    write_file_atomically(file("run.toml"),
                          fmt::format("[data]\ntrain = \"{}\"\ntrain_labels = \"{}\"\n"
                                      "[model]\nlayers = \"{}\"\n"
                                      "[train]\nloss = \"{}\"\noptimizer = \"adam\"\nlr = 0.02\nepochs = "
                                      "3\nglobal_batch = 10\nreplicas = 2\n",
                                      records_, file("labels.idx"), trained.layers, trained.loss));
    ASSERT_NO_FATAL_FAILURE(run_or_fail(fmt::format("{} --config {} --run.dir {} {}", trainer_path(),
                                                    file("run.toml"), run_, trained.flags)));
    ASSERT_NO_FATAL_FAILURE(
        run_or_fail(fmt::format("{} predict --model {} --input {} --output {}", trainer_path(), run_,
                                records_, file("predictions.npy"))));
  }

  std::vector<float> predicted() const { return floats_in_npy(read_file(file("predictions.npy"))); }

  std::string exported(const std::string& format) const {
    const std::string path = file("model." + format);
    run_or_fail(
        fmt::format("{} export --model {} --format {} --output {}", trainer_path(), run_, format, path));
    return path;
  }

  std::string file(const std::string& name) const { return directory_ / name; }
  std::string dims(const Shape& input) const {
    return fmt::format("{},{}", kRows, fmt::join(input.dims, ","));
  }

 private:
  // The records as IDX for the trainer, and as bare numbers for others.
  void write_data(const Trained& trained) const {
    std::mt19937_64 random(seed());
    std::uniform_real_distribution<float> uniform(0,
                                                  trained.below > 0 ? static_cast<float>(trained.below) : 1);
    std::vector<float> records(static_cast<std::size_t>(kRows * trained.input.size()));
    for (float& value : records) value = trained.below > 0 ? std::floor(uniform(random)) : uniform(random);
    write_idx(file("records.f32"),
              {reinterpret_cast<const char*>(records.data()), records.size() * sizeof(float)});
    std::vector<Index> sizes{kRows};
    sizes.insert(sizes.end(), trained.input.dims.begin(), trained.input.dims.end());
    write_idx(records_, idx_content(IdxType::kF32, sizes, {records.begin(), records.end()}));

    std::vector<double> labels(static_cast<std::size_t>(kRows * trained.target_columns));
    for (double& label : labels) label = static_cast<double>(random() % 2);
    write_idx(file("labels.idx"), idx_content(IdxType::kU8, {kRows, trained.target_columns}, labels));
  }

  TemporaryDirectory directory_;
  std::string records_ = directory_ / "records.idx";
  std::string run_ = directory_ / "run";
};

class OnnxChecker : public OtherPrograms {};

TEST_P(OnnxChecker, FindsNoFault) {
  if (!python_has("onnx")) GTEST_SKIP() << "onnx" << kMissing;
  ASSERT_NO_FATAL_FAILURE(train(GetParam()));
  run_or_fail(fmt::format("{} {} {}", LOCKSTEP_PYTHON, script("check_onnx.py"), exported("onnx")));
}

class OnnxRuntime : public OtherPrograms {};

TEST_P(OnnxRuntime, GivesThePredictions) {
  if (!python_has("onnxruntime")) GTEST_SKIP() << "onnxruntime" << kMissing;
  const Trained& trained = GetParam();
  ASSERT_NO_FATAL_FAILURE(train(trained));
  run_or_fail(fmt::format("{} {} {} {} {} {}", LOCKSTEP_PYTHON, script("run_onnx.py"), exported("onnx"),
                          file("records.f32"), dims(trained.input), file("result")));
  std::string result = file("result.outputs");
  for (const char* name : {"result.probabilities", "result.predictions"}) {
    if (std::filesystem::exists(file(name))) result = file(name);
  }
  expect_close(floats_in(read_file(result)), predicted());
}

TEST(OnnxRuntimeModels, HaveEveryLayerAndComposite) {
  std::set<std::string> used;
  const std::function<void(const std::vector<Term>&)> collect = [&](const std::vector<Term>& terms) {
    for (const Term& term : terms) {
      used.insert(term.name);
      for (const std::vector<Term>& chain : term.chains) collect(chain);
    }
  };
  for (const Trained& trained : kAll) collect(parse_layers(trained.layers));
  for (const std::string& name : catalog_names(layer_catalog())) EXPECT_TRUE(used.contains(name)) << name;
  for (const std::string& name : catalog_names(composite_catalog())) EXPECT_TRUE(used.contains(name)) << name;
}

class PyTorch : public OtherPrograms {};

TEST_P(PyTorch, LoadsTheWeightsAndGivesThePredictions) {
  if (!python_has("torch")) GTEST_SKIP() << "torch" << kMissing;
  const Trained& trained = GetParam();
  ASSERT_NO_FATAL_FAILURE(train(trained));
  run_or_fail(fmt::format("{} {} {} {} {} {}", LOCKSTEP_PYTHON, script("run_torch.py"),
                          exported("safetensors"), file("records.f32"), dims(trained.input), file("result")));
  expect_close(floats_in(read_file(file("result"))), predicted());
}

std::string name_of(const testing::TestParamInfo<Trained>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(All, OnnxChecker, testing::ValuesIn(kAll), name_of);
INSTANTIATE_TEST_SUITE_P(All, OnnxRuntime, testing::ValuesIn(kAll), name_of);
INSTANTIATE_TEST_SUITE_P(All, PyTorch, testing::Values(kImages), name_of);

}  // namespace
}  // namespace lockstep::test::other_programs_test
