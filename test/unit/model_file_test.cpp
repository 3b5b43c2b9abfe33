#include "lockstep/train/storage/model_file.h"

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/workspace.h"
#include "support/error_text.h"
#include "support/seed.h"
#include "support/temporary_directory.h"

namespace lockstep::test::model_file_test {

void load_model(const std::filesystem::path& path, const ParamStore& store) {
  ModelFile(path).load(*store.layout, store);
}

struct Stored {
  explicit Stored(const std::string& layers)
      : model({.layers = layers}, {{6}}), weights(model.layout().size) {
    initialise(store(), 3, 0.1);
  }
  ParamStore store() { return {&model.layout(), weights.span()}; }
  Model model;
  AlignedBuffer<Scalar> weights;
};

std::string file_with(const std::string& header, const std::string& data = "") {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

class ModelFiles : public testing::Test {
 protected:
  std::string error_of_loading(const std::string& bytes,
                               const std::string& layers = "dense(4) relu dense(3)") {
    const auto path = directory_.path() / "damaged.safetensors";
    write_file_atomically(path, bytes);
    Stored stored(layers);
    const std::vector<Scalar> before(stored.weights.data(), stored.weights.data() + stored.weights.size());
    try {
      load_model(path, stored.store());
    } catch (const DataError& error) {
      EXPECT_TRUE(std::equal(before.begin(), before.end(), stored.weights.data())) << "weights were touched";
      expect_parts(error.what(), {"damaged.safetensors"});
      return error.what();
    }
    return "";
  }
  TemporaryDirectory directory_;
};

TEST_F(ModelFiles, RoundTripAndLayout) {
  Stored out("dense(4) relu dense(3)");
  const auto path = directory_.path() / "model.safetensors";
  save_model(path, out.store(), out.model.input());
  EXPECT_EQ(ModelFile(path).input(), (Shape{{6}}));
  Stored in("dense(4) relu dense(3)");
  std::ranges::fill(in.weights.span(), Scalar{0});
  load_model(path, in.store());
  for (const ParamInfo& param : out.model.layout().params)
    EXPECT_TRUE(
        std::ranges::equal(part(out.weights.span(), param.range), part(in.weights.span(), param.range)));
  const std::string bytes = read_file(path);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  EXPECT_EQ((8 + header) % 8, 0U);
  EXPECT_EQ(bytes.size(), 8 + header + 4 * static_cast<std::size_t>(out.model.layout().count()));
}

TEST_F(ModelFiles, KeepFactsBesideTheTensors) {
  Stored out("dense(3)");
  const auto path = directory_.path() / "model.safetensors";
  save_model(path, out.store(), out.model.input(), {{kThresholdFact, "0.25"}, {"note", "\"a\", b"}});
  const ModelFile file(path);
  EXPECT_EQ(file.fact(kThresholdFact), "0.25");
  EXPECT_EQ(file.fact("note"), "\"a\", b");
  EXPECT_EQ(file.fact("other"), std::nullopt);
  EXPECT_EQ(file.input(), (Shape{{6}}));
}

TEST_F(ModelFiles, AreAsLongWithAllFactsAsWithTheClassThatAPlanKnows) {
  const Stored out("dense(3)");
  for (const char* positive :
       {"1", "eight by", "nine byte", "yes \"really\"", "a name that is longer than the room"}) {
    const auto size = [&](ModelFacts facts) {
      facts[kPositiveFact] = positive;
      return model_file_head(out.model.layout(), out.model.input(), facts).size();
    };
    EXPECT_EQ(size({{kThresholdFact, "1.2345678901234567e-05"},
                    {kThresholdMeasureFact, "balanced_accuracy"},
                    {kTemperatureFact, "0.012345678"}}),
              size({}))
        << positive;
  }
}

TEST_F(ModelFiles, HoldTheTemperatureOfACalibratedModel) {
  Stored out("dense(4) relu dense(3)");
  const auto path = directory_.path() / "model.safetensors";
  save_model(path, out.store(), out.model.input());
  EXPECT_FALSE(ModelFile(path).temperature());
  const Scalar temperature = 1.3271854F;
  save_model(path, out.store(), out.model.input(), {{kTemperatureFact, fmt::format("{}", temperature)}});
  EXPECT_EQ(ModelFile(path).temperature(), temperature) << "each bit";
  for (const char* bad : {"-1", "0", "inf", "nan", "1.5x", "warm", ""}) {
    save_model(path, out.store(), out.model.input(), {{kTemperatureFact, bad}});
    const std::string error = error_text<DataError>([&] { ModelFile(path).temperature(); });
    expect_parts(error, {"model.safetensors", "temperature is", "expected a number above 0"});
  }
}

TEST_F(ModelFiles, ListsAllThatDoesNotFit) {
  Stored out("dense(4) relu dense(3)");
  const auto path = directory_.path() / "model.safetensors";
  save_model(path, out.store(), out.model.input());
  const std::string error = error_of_loading(read_file(path), "dense(5) relu dense(3) relu dense(2)");
  expect_parts(error, {"0.weight: the model has 5x6, the file 4x6", "4.weight: missing"});
  const std::string fewer = error_of_loading(read_file(path), "dense(4)");
  expect_parts(fewer, {"2.weight: in the file (3x4), not in the model"});
}

TEST_F(ModelFiles, FillsWhatFitsAndLeavesTheRest) {
  Stored out("dense(4) relu dense(3)");
  const auto path = directory_.path() / "model.safetensors";
  save_model(path, out.store(), out.model.input());
  Stored in("dense(4) relu dense(2)");
  const std::vector<Scalar> before(in.weights.data(), in.weights.data() + in.weights.size());
  std::ranges::fill(out.weights.span(), Scalar{0});
  const ModelFile file(path);
  EXPECT_EQ(file.differences(in.model.layout()),
            (std::vector<std::string>{"2.weight: the model has 2x4, the file 3x4",
                                      "2.bias: the model has 2, the file 3"}));
  EXPECT_EQ(file.fill(in.store()), 2);
  Stored same("dense(4) relu dense(3)");
  for (const ParamInfo& param : in.model.layout().params) {
    const auto mine = part(in.weights.span(), param.range);
    if (param.layer == 0) {
      EXPECT_TRUE(std::ranges::equal(mine, part(same.weights.span(), param.range))) << param.name;
    } else {
      EXPECT_TRUE(std::equal(mine.begin(), mine.end(), before.begin() + param.range.begin)) << param.name;
    }
  }
}

// A file of weights of dense(6) relu dense(6) under these names, read with train.init_rename.
class RenamedFiles : public ModelFiles {
 protected:
  std::string error_of(const std::vector<std::string>& names, const std::vector<std::string>& renamings) {
    return error_text<Error>([&] { read(names, renamings); });
  }

  // Whether the tensors of the file, in their order, have become those of the model with these numbers.
  bool becomes(const std::vector<std::string>& names, const std::vector<std::string>& renamings,
               const std::vector<std::size_t>& tensors = {0, 1, 2, 3}) {
    const ModelFile file = read(names, renamings);
    Stored in("dense(6) relu dense(6)");
    EXPECT_TRUE(file.differences(in.model.layout()).empty());
    std::ranges::fill(in.weights.span(), Scalar{0});
    EXPECT_EQ(file.fill(in.store()), 4);
    const std::vector<ParamInfo>& params = in.model.layout().params;
    for (std::size_t i = 0; i < params.size(); ++i) {
      if (!std::ranges::equal(part(in.weights.span(), params[tensors[i]].range),
                              part(out_.weights.span(), params[i].range)))
        return false;
    }
    return true;
  }

  ModelFile read(const std::vector<std::string>& names, const std::vector<std::string>& renamings) {
    Layout layout = out_.model.layout();
    for (std::size_t i = 0; i < names.size(); ++i) layout.params[i].name = names[i];
    const auto path = directory_.path() / "theirs.safetensors";
    save_model(path, {&layout, out_.weights.span()}, out_.model.input());
    ModelFile file(path);
    file.rename(out_.model.layout(), renamings);
    return file;
  }
  Stored out_{"dense(6) relu dense(6)"};
};

TEST_F(RenamedFiles, FillTheModelByNamesAndByWhatBeginsThem) {
  EXPECT_TRUE(becomes({"0.weight", "0.bias", "2.weight", "2.bias"}, {}));
  EXPECT_TRUE(becomes({"encoder.in.weight", "encoder.in.bias", "head.w", "head.b"},
                      {"0=encoder.in", "2.weight = head.w", "2.bias=head.b"}));
  EXPECT_TRUE(becomes({"module.0.weight", "module.0.bias", "module.2.weight", "module.2.bias"}, {"=module"}));
  EXPECT_TRUE(becomes({"weight", "bias", "2.weight", "2.bias"}, {"0="}));
  // The longest that fits a tensor counts, in any order.
  for (const std::vector<std::string>& texts :
       {std::vector<std::string>{"=module", "2=module.head", "2.bias=last"},
        {"2.bias=last", "2=module.head", "=module"}})
    EXPECT_TRUE(becomes({"module.0.weight", "module.0.bias", "module.head.weight", "last"}, texts));
  // Two that change places: what is renamed is not renamed again.
  EXPECT_TRUE(becomes({"0.weight", "0.bias", "2.weight", "2.bias"}, {"0=2", "2=0"}, {2, 3, 0, 1}));
}

TEST_F(RenamedFiles, WhatDoesNotFitIsListedUnderBothNames) {
  const ModelFile file = read({"in.weight", "in.offset", "2.weight", "2.bias"}, {"0=in"});
  const Stored other("dense(5) relu dense(6)");
  EXPECT_EQ(file.differences(other.model.layout()),
            (std::vector<std::string>{"0.weight (in.weight in the file): the model has 5x6, the file 6x6",
                                      "0.bias (in.bias in the file): missing, the model has 5",
                                      "2.weight: the model has 6x5, the file 6x6",
                                      "in.offset: in the file (6), not in the model"}));
}

TEST_F(RenamedFiles, RenamingsThatRenameNothingAreRefused) {
  const std::vector<std::string> names{"in.weight", "in.bias", "2.weight", "2.bias"};
  const auto error = [&](const std::vector<std::string>& texts) { return error_of(names, texts); };
  expect_parts(error({"0: in"}), {"train.init_rename has '0: in'", "\"0=encoder.lstm\""});
  expect_parts(error({"0=in", "0 = in"}), {"train.init_rename has two names for '0'"});
  expect_parts(error({"0=in", "1=2"}),
               {"'1' renames no tensor of the model, which has 0.weight, 0.bias, 2.weight, 2.bias"});
  expect_parts(error({"0=in", "2.wieght=2.weight"}),
               {"'2.wieght' renames no tensor", "did you mean '2.weight'?"});
  expect_parts(error({"0=in", "2.w=2.weight"}), {"'2.w' renames no tensor"});  // no part of a word
  expect_parts(error({"0=in", "0.weight=in.weight", "0.bias=in.bias"}), {"'0' renames no tensor"});
  expect_parts(error({"0=in", "2=in"}), {"0.weight and 2.weight would both be 'in.weight' of the file"});
  expect_parts(error({"0=2"}), {"0.weight and 2.weight would both be '2.weight' of the file"});
  expect_parts(error({"0=im"}), {"theirs.safetensors' has no tensor 'im.bias', but 2.bias, 2.weight, "
                                 "in.bias, in.weight; did you mean 'in.bias'?"});
  expect_parts(error({"0=in", "2.bias="}), {"has no tensor '', but"});
  EXPECT_THROW(read(names, {"1=2"}), ConfigError);
  EXPECT_THROW(read(names, {"0=im"}), DataError);
}

TEST_F(ModelFiles, SaysWhenItsInputIsNotKnown) {
  const auto path = directory_.path() / "elsewhere.safetensors";
  for (const char* header : {"{}", R"({"__metadata__":{"format":"pt"}})", R"({"__metadata__":3})"}) {
    write_file_atomically(path, file_with(header));
    expect_parts(error_text<DataError>([&] { ModelFile(path).input(); }), {"train.init"});
  }
  write_file_atomically(path, file_with(R"({"__metadata__":{"input_shape":"[2,x]"}})"));
  expect_parts(error_text<DataError>([&] { ModelFile(path).input(); }), {"[2,x]"});
}

// A file as PyTorch's BatchNorm1d(1) behind a first layer would have it, with this running variance.
std::string batch_norm_file(float variance) {
  std::string header = R"({"0.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                       R"("0.bias":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                       R"("0.running_mean":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},)"
                       R"("0.running_var":{"dtype":"F32","shape":[1],"data_offsets":[12,16]},)"
                       R"("0.num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[16,24]}})";
  std::string file = file_with(header);
  for (const float value : {1.F, 2.F, 3.F, variance})
    file.append(reinterpret_cast<const char*>(&value), sizeof value);
  return file + std::string(8, '\0');
}

TEST_F(ModelFiles, BatchNormOfPyTorchIsTakenWithoutItsCounter) {
  const Model model({.layers = "batch_norm"}, {{1}});
  AlignedBuffer<Scalar> stored(model.stored_layout().size);
  const auto path = directory_.path() / "torch.safetensors";
  for (const float variance : {4.F, 0.F}) {  // 0: a feature that never changes
    write_file_atomically(path, batch_norm_file(variance));
    load_model(path, {&model.stored_layout(), stored.span()});
    const ModelValues values = stored_values(model, stored.span());
    EXPECT_EQ(values.state[0], 3.F);
    EXPECT_EQ(part(values.state, model.state_layout().params[1].range).front(), variance);
  }
  for (const float bad : {-1.F, std::numeric_limits<float>::quiet_NaN()}) {
    write_file_atomically(path, batch_norm_file(bad));
    expect_parts(error_text<DataError>([&] {
                   load_model(path, {&model.stored_layout(), stored.span()});
                 }),
                 {path.string(), "0.running_var", "no variance"});
  }
}

TEST_F(ModelFiles, WhatTorchSavesIsToldFromDamage) {
  const std::string zip("PK\x03\x04\x14\0\0\0", 8), pickle("\x80\x02\x8a\nl\xfc\x9c\x46", 8);
  for (const std::string& start : {zip, pickle})
    expect_parts(error_of_loading(start + "archive/data.pkl"), {"a pickle", "safetensors.torch.save_file"});
  // The length of a header of 640 bytes begins as a pickle does.
  expect_no_parts(error_of_loading(file_with("{}" + std::string(638, ' '))), {"pickle"});
}

TEST_F(ModelFiles, DamageIsFoundBeforeAnythingIsAllocated) {
  expect_parts(error_of_loading(""), {"it has 0 bytes"});
  expect_parts(error_of_loading("\xff\xff\xff\xff\xff\xff\xff\x7f{}"), {"claims 9223372036854775807"});
  expect_parts(error_of_loading(file_with("[1, 2]")), {"not a JSON object"});
  expect_parts(error_of_loading(file_with("{\"0.weight\": 3}")), {"0.weight"});
  expect_parts(
      error_of_loading(file_with(R"({"0.weight":{"dtype":"F32","shape":[4,6],"data_offsets":[0,96]}})")),
      {"claims the bytes [0, 96] of 0"});
}

// A header for tensors of bytes at these offsets.
std::string header_of(const std::vector<std::pair<Index, Index>>& tensors) {
  std::string header = "{";
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto [begin, end] = tensors[i];
    header += fmt::format(R"({}"t{}":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}})",
                          i == 0 ? "" : ",", i, end - begin, begin, end);
  }
  return header + "}";
}

TEST_F(ModelFiles, TensorsCoverTheFileAndDoNotOverlap) {
  const auto error = [&](const std::vector<std::pair<Index, Index>>& tensors, std::size_t bytes = 12) {
    return error_of_loading(file_with(header_of(tensors), std::string(bytes, 'x')));
  };
  expect_parts(error({{4, 12}, {0, 4}}), {"t0: in the file"});  // whole, though not of this model
  expect_parts(error({{0, 8}, {0, 8}, {8, 12}}), {"the tensors 't0' and 't1' overlap"});
  expect_parts(error({{4, 12}, {0, 5}}), {"the tensors 't1' and 't0' overlap"});
  expect_parts(error({{0, 4}, {6, 12}}), {"no tensor has the 2 bytes between 't0' and 't1'"});
  expect_parts(error({{2, 12}}), {"no tensor has the 2 bytes between its header and 't0'"});
  expect_parts(error({{0, 4}, {4, 8}}), {"no tensor has its last 4 bytes, behind 't1'"});
  expect_parts(error({}), {"no tensor has its last 12 bytes, behind its header"});
}

TEST_F(ModelFiles, NamesOfTensorsAreCutAndEscapedInMessages) {
  const std::string name = "\\u001b[2J" + std::string(100'000, 'a');
  for (const auto& [begin, end] : {std::pair{0, 8}, {4, 12}}) {
    const std::string header = fmt::format(R"({{"{}":{{"dtype":"U8","shape":[8],"data_offsets":[{},{}]}},)"
                                           R"("t":{{"dtype":"U8","shape":[6],"data_offsets":[6,12]}}}})",
                                           name, begin, end);
    const std::string error = error_of_loading(file_with(header, std::string(12, 'x')));
    EXPECT_NE(error, "");
    EXPECT_LT(error.size(), 1000U);
    EXPECT_EQ(error.find('\x1b'), std::string::npos) << error;
  }
}

// Files with holes, which need no disk: what they claim is compared before anything of that size is made.
TEST_F(ModelFiles, AHugeFileIsRefusedByItsHeader) {
  constexpr Index kHuge = Index{1} << 40;
  const auto path = directory_.path() / "damaged.safetensors";
  const auto error = [&](const std::string& start) {
    write_file_atomically(path, start);
    std::filesystem::resize_file(path, kHuge);
    Stored stored("dense(3)");
    return error_text<DataError>([&] { load_model(path, stored.store()); });
  };
  const std::uint64_t claimed = kHuge / 2;
  expect_parts(error(std::string(reinterpret_cast<const char*>(&claimed), 8)),
               {"its header claims 549755813888 bytes, the format allows 100000000"});
  expect_parts(error(""), {"its header: it is no JSON"});
  expect_parts(error(file_with(header_of({{0, 4}}))), {"no tensor has its last 1,099,511,627,"});
  // Whole, and of another model: nothing but the header is read.
  std::string header = header_of({{0, kHuge - 8 - 100}});
  header.resize(100, ' ');
  expect_parts(error(file_with(header)), {"t0: in the file (1099511627668), not in the model"});
}

TEST_F(ModelFiles, ADeepHeaderIsRefused) {
  expect_parts(error_of_loading(file_with(R"({"0.weight":{"dtype":"F32","data_offsets":[0,96],"shape":)" +
                                          std::string(300'000, '[') + std::string(300'000, ']') + "}}")),
               {"its header", "nested 300,002 deep", "at most 100"});
}

TEST_F(ModelFiles, ManyTensorsAreNoMoreWorkThanTheirNumber) {
  const auto start = std::chrono::steady_clock::now();
  Layout layout;
  for (int i = 0; i < 50'000; ++i)
    append(layout, {.name = fmt::format("{}.weight", i), .shape = {{1}}, .range = {}});
  AlignedBuffer<Scalar> values(layout.size);
  const auto path = directory_.path() / "many.safetensors";
  save_model(path, {&layout, values.span()}, {{1}});
  EXPECT_NO_THROW(load_model(path, {&layout, values.span()}));
  Stored other("dense(1)");
  const std::string said = error_text<DataError>([&] { load_model(path, other.store()); });
  expect_parts(said, {"50,00", "in all"});
  EXPECT_LT(said.size(), 3000U);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 30);
}

TEST_F(ModelFiles, AnyChangedOrMissingByteIsRefusedOrHarmless) {
  Stored out("dense(4) relu dense(3)");
  const auto path = directory_.path() / "model.safetensors";
  save_model(path, out.store(), out.model.input());
  const std::string whole = read_file(path);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_NE(error_of_loading(whole.substr(0, length)), "") << "cut at " << length;
  std::mt19937_64 random(seed());
  for (int i = 0; i < 300; ++i) {
    std::string changed = whole;
    changed[random() % changed.size()] = static_cast<char>(random());
    error_of_loading(changed);  // a changed weight is another model; a changed header must not crash
  }
}

// Logits of a file of transformers (test/regression/make_gpt2_reference.py).
class Gpt2Files : public testing::Test {
 protected:
  static constexpr const char* kBody =
      "embedding(11, 8) positions(learned) transformer(2, 2, causal=true, mlp=gelu(tanh)) layer_norm ";

  static void expect_logits(const std::string& layers) {
    const auto reference =
        parse_json<nlohmann::json>(read_file(LOCKSTEP_TEST_DATA "/regression/gpt2_tiny.json"));
    const auto ids = reference.at("ids").get<std::vector<std::vector<Scalar>>>();
    const auto expected = reference.at("logits").get<std::vector<Scalar>>();
    const Model model({.layers = layers}, SequenceShape{.positions = 6, .channels = 1}.shape());
    AlignedBuffer<Scalar> weights(model.layout().size);
    ModelFile file(LOCKSTEP_TEST_DATA "/regression/gpt2_tiny.safetensors");
    file.apply_map("gpt2", model);
    EXPECT_EQ(file.differences(model.layout()), std::vector<std::string>());
    EXPECT_EQ(file.fill({&model.layout(), weights.span()}), std::ssize(model.layout().params));
    std::vector<Scalar> x;
    for (const std::vector<Scalar>& each : ids) x.insert(x.end(), each.begin(), each.end());
    Workspace workspace(model, 2, ActivationRetention::kForEvaluation);
    const ConstMatrix y = workspace.forward(
        {.values = {.weights = weights.span(), .state = {}}, .x = ConstMatrix(x.data(), 2, 6), .batch = {}});
    ASSERT_EQ(y.size(), std::ssize(expected));
    for (Index i = 0; i < y.size(); ++i) EXPECT_NEAR(y.data()[i], at(expected, i), 1e-5) << i;
  }

  static std::string error_of(const std::string& layers) {
    const Model model({.layers = layers}, SequenceShape{.positions = 6, .channels = 1}.shape());
    ModelFile file(LOCKSTEP_TEST_DATA "/regression/gpt2_tiny.safetensors");
    return error_text<ConfigError>([&] { file.apply_map("gpt2", model); });
  }
};

TEST_F(Gpt2Files, GiveTheLogitsOfTransformers) {
  expect_logits(kBody + std::string("dense(11, bias=false, tie=0)"));
}

TEST_F(Gpt2Files, AreRefusedByModelsThatAreNoGpt2) {
  expect_parts(error_of("embedding(11, 8) last dense(11)"), {"the model has 3 tensors", "4 + 12 B"});
  expect_parts(error_of("embedding(11, 8) positions(learned) transformer(1, 2, bias=false) dense(11)"),
               {"4 + 12 B", "transformer(12, 12"});
  for (const auto& [arguments, found] :
       {std::pair("2, 2, mlp=gelu(tanh)", "attend(2"), std::pair("2, 2, causal=true", "gelu"),
        std::pair("2, 2, causal=true, rotary=true, mlp=gelu(tanh)", "rotary=true"),
        std::pair("2, 2, causal=true, window=2, mlp=gelu(tanh)", "window=2")})
    expect_parts(
        error_of(fmt::format("embedding(11, 8) positions(learned) transformer({}) layer_norm dense(11, "
                             "bias=false, tie=0)",
                             arguments)),
        {found, "is no part of a GPT-2"});
}

TEST_F(Gpt2Files, AreOfAttentionHoweverItsArgumentsAreGiven) {
  const auto layers_with = [](const std::string& arguments) {
    std::string layers = "embedding(11, 8) positions(learned) ";
    for (int block = 0; block < 2; ++block) {
      layers += fmt::format(
          "residual(layer_norm dense(24) attend({}) dense(8)) "
          "residual(layer_norm dense(32) gelu(tanh) dense(8)) ",
          arguments);
    }
    return layers + "layer_norm dense(11, bias=false, tie=0)";
  };
  for (const char* arguments : {"2, causal=true", "heads=2, causal = true", "causal=true, heads=2, window=0",
                                "2, 2, 0, causal=true, rotary=false"})
    expect_logits(layers_with(arguments));
  for (const char* arguments : {"2", "2, 2, 5, causal=true", "2, causal=true, window = 5",
                                "2, rotary = true, causal=true", "heads=2, causal=false"})
    expect_parts(error_of(layers_with(arguments)), {"is no part of a GPT-2"});
}

TEST_F(Gpt2Files, OfAnotherHeadAreNotForAModelThatSharesTheEmbedding) {
  const TemporaryDirectory directory;
  const auto map_with_head = [&](Scalar changed) {
    const Model untied({.layers = kBody + std::string("dense(11, bias=false)")},
                       SequenceShape{.positions = 9, .channels = 1}.shape());
    AlignedBuffer<Scalar> weights(untied.layout().size);
    Layout named = untied.layout();
    const std::vector<TensorSource> sources = gpt2_sources(untied);
    for (std::size_t i = 0; i < sources.size(); ++i) named.params[i].name = sources[i].name;
    part(weights.span(), named.params.back().range)[0] += changed;
    save_model(directory / "m.safetensors", {&named, weights.span()}, untied.input());
    ModelFile file(directory / "m.safetensors");
    const Model tied({.layers = kBody + std::string("dense(11, bias=false, tie=0)")}, untied.input());
    file.apply_map("gpt2", tied);
  };
  map_with_head(0);
  expect_parts(error_text<DataError>([&] { map_with_head(1); }),
               {"m.safetensors", "lm_head.weight differs from wte.weight", "tie=0"});
}

TEST_F(Gpt2Files, OfAnotherSizeAreListedByTheirNames) {
  const Model model({.layers = "embedding(12, 8) positions(learned) transformer(2, 2, causal=true, hidden=9, "
                               "mlp=gelu(tanh)) layer_norm "
                               "dense(12, bias=false)"},
                    SequenceShape{.positions = 10, .channels = 1}.shape());
  ModelFile file(LOCKSTEP_TEST_DATA "/regression/gpt2_tiny.safetensors");
  file.apply_map("gpt2", model);
  const std::string all = fmt::format("{}", fmt::join(file.differences(model.layout()), "\n"));
  expect_parts(all,
               {"0.weight (transformer.wte.weight in the file): the model has 12x8, the file 11x8",
                "(transformer.wpe.weight in the file): the model has 10x8, the file 9x8",
                "(transformer.h.1.mlp.c_fc.weight in the file): the model has 9x8, the file 8x32 (in x out)",
                "(lm_head.weight in the file): missing, the model has 12x8"});
}

}  // namespace lockstep::test::model_file_test
