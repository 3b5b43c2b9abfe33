// Keys outside their declaration: what the code names is declared, and an example is a value of its grammar.
#include <regex>

#include "lockstep/base/catalog.h"
#include "lockstep/base/embedded_text.h"
#include "lockstep/config/option.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/data/loading/augmenter.h"
#include "lockstep/data/table/values/schema.h"
#include "lockstep/data/text/vocabulary.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/distributed/update.h"
#include "lockstep/nn/composite.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/stages.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/class_weights.h"
#include "lockstep/train/evaluation/early_stopping.h"
#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/evaluation/threshold.h"
#include "lockstep/train/loop/run_control.h"
#include "lockstep/train/loop/step_tracer.h"
#include "lockstep/train/storage/checkpoint.h"
#include "lockstep/train/storage/exporter.h"
#include "lockstep/train/storage/prediction_file.h"
#include "support/common.h"
#include "support/known_names.h"

namespace lockstep::keys_test {
namespace {

class Keys : public testing::Test {
 protected:
  bool is_declared(const std::string& key) const { return declared_.contains(key); }

  // Every key that the words name; how many they are.
  int expect_declared(const std::string& words, const std::filesystem::path& file) const {
    static const std::regex kKey(
        R"re((^|[^\w./'])((?:run|data|model|train|eval|checkpoint|distribute|comm|debug))re"
        R"re(\.[a-z][a-z0-9_]*)(?![\w.*(]))re");
    static const std::set<std::string> kFiles{"model.safetensors", "model.onnx", "model.npz", "data.npz",
                                              "data.h5",           "run.json",   "data.json"};
    int found = 0;
    for (std::sregex_iterator at(words.begin(), words.end(), kKey), end; at != end; ++at) {
      if (at->str(2).ends_with('_')) continue;  // the beginning of several
      ++found;
      EXPECT_TRUE(is_declared(at->str(2)) || kFiles.contains(at->str(2))) << file << " names " << at->str(2);
    }
    return found;
  }

  std::span<const Option> options_ = test::options();
  std::set<std::string> declared_ = [this] {
    std::set<std::string> keys;
    for (const Option& option : options_) keys.insert(option.key);
    return keys;
  }();
};

// The lines without comments and includes.
std::string read_code(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string code;
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos || line.compare(first, 2, "//") == 0 || line.starts_with("#include"))
      continue;
    code += line.substr(0, line.find("///<")) + "\n";
  }
  return code;
}

// What stands between backticks.
std::string read_code_of_guide(const std::string& guide) {
  std::string code;
  bool inside = false;
  for (const char c : embedded_text("guides/" + guide + ".md")) {
    if (c == '`') inside = !inside;
    code += inside && c != '`' ? c : ' ';
  }
  return code;
}

TEST(Guides, NameEachEntryOfTheCatalogsTheyDescribe) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> names{
      {"models", catalog_names(layer_catalog())},
      {"models", catalog_names(composite_catalog())},
      {"models", catalog_names(preset_catalog())},
      {"models", catalog_names(loss_catalog())},
      {"models", catalog_names(optimizer_catalog())},
      {"batches-and-steps", catalog_names(decay_catalog())},
      {"data", catalog_names(format_catalog())},
      {"data", catalog_names(augmentation_catalog())},
      {"output", catalog_names(metric_catalog())},
      {"predicting-and-exporting", catalog_names(loss_catalog())},
      {"predicting-and-exporting", catalog_names(exporter_catalog())},
      {"predicting-and-exporting", catalog_names(prediction_file_catalog())},
      {"strategies", catalog_names(strategy_catalog())},
      {"strategies", catalog_names(algorithm_catalog())},
      {"strategies", catalog_names(codec_catalog())}};
  for (const auto& [guide, entries] : names) {
    const std::string code = read_code_of_guide(guide);
    for (const std::string& entry : entries) {
      EXPECT_TRUE(std::regex_search(code, std::regex("\\b" + entry + "\\b")))
          << "configs/guides/" << guide << ".md does not name '" << entry << "'";
    }
  }
}

// A key that is renamed must not live on in a message, in a list of an entry of a catalog, or in a text of
// the program.
TEST_F(Keys, ThatTheCodeNamesAreDeclared) {
  const std::regex text(R"re("((?:[^"\\\n]|\\.)*)")re");
  int found = 0;
  for (const char* folder : {"/src", "/include"}) {
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(LOCKSTEP_SOURCE_DIR + std::string(folder))) {
      // Declarations hold other programs' keys as well.
      if (!file.is_regular_file() || file.path().filename().string().starts_with("declare_")) continue;
      const std::string code = read_code(file.path());
      for (std::sregex_iterator literal(code.begin(), code.end(), text), end; literal != end; ++literal)
        found += expect_declared(literal->str(1), file.path());
    }
  }
  EXPECT_GT(found, 300);
}

TEST_F(Keys, ThatTextsNameAreDeclared) {
  int found = 0;
  for (const EmbeddedText& file : embedded_texts()) {
    if (!file.name.starts_with("texts/") || !file.name.ends_with(".txt")) continue;
    for (const TextEntry& entry : embedded_entries(file.name)) {
      found += expect_declared(entry.name, file.name);
      for (const auto& [field, text] : entry.fields) {
        if (field != "words") found += expect_declared(text, file.name);  // those are other programs' keys
      }
    }
  }
  EXPECT_GT(found, 300);
}

TEST_F(Keys, OfCounterpartsAreDeclared) {
  for (const Option& option : options_)
    EXPECT_TRUE(option.counterpart.empty() || is_declared(option.counterpart)) << option.key;
}

std::vector<std::string> texts(const std::string& list) {
  return ValueType<std::vector<std::string>>::parse(list).value();
}

// Each parses a value as the run does, and throws if it is wrong.
std::map<std::string, std::function<void(const std::string&)>> parsers() {
  const auto any = [](const std::string&) {};
  const auto duration = [](const std::string& text) { parse_duration("key", text); };
  const auto columns = [](TableOptions options) {
    options.label = {"y"};
    declare_columns(options, {"zip", "income", "y"});
  };
  const auto metrics = [](const std::string& text) {
    for (const std::string& name : texts(text)) find_entry(metric_catalog(), "metric", name);
  };
  const auto levels = [](const std::string& text) {
    LossOptions options;
    options.quantiles = ValueType<std::vector<double>>::parse(text).value();
    find_entry(loss_catalog(), "loss", "quantile").make(options);
  };
  const auto is_key = [](const std::string& text) {
    EXPECT_TRUE(find_option(test::options(), text)) << text;
  };
  const auto milestones = [=](const std::string& text) { std::ranges::for_each(texts(text), duration); };
  const auto lr_multiplier = [](const std::string& text) {
    update_rules(Model({.layers = "dense(2)"}, {{1}}), {.lr_multiplier = texts(text)});
  };
  const auto weight_decay_multiplier = [](const std::string& text) {
    update_rules(Model({.layers = "embedding(5, 3) dense(2)"}, {{1}}),
                 {.weight_decay_multiplier = texts(text)});
  };
  return {
      {"run.resume", any},
      {"run.resume_allow", is_key},
      {"run.time_limit", [](const std::string& text) { parse_time_limit("key", text); }},
      {"data.train", any},
      {"data.columns", [=](const std::string& text) { columns({.columns = texts(text)}); }},
      {"data.scale", [=](const std::string& text) { columns({.scale = text}); }},
      {"data.missing", [=](const std::string& text) { columns({.missing = text}); }},
      {"data.encode", [=](const std::string& text) { columns({.encode = text}); }},
      {"data.positive", any},
      {"data.missing_values", any},
      {"data.encoding", any},
      {"data.mean", any},
      {"data.std", any},
      {"data.validation", [](const std::string& text) { EXPECT_TRUE(parse_validation_part("key", text)); }},
      {"data.test_part",
       [](const std::string& text) {
         DataOptions data;
         data.test_part = text;
         EXPECT_TRUE(test_part(data));
       }},
      {"data.time", any},
      {"data.series", any},
      {"data.window", any},
      {"data.horizon", any},
      {"data.future", any},
      {"data.season", any},
      {"data.augment",
       [](const std::string& text) {
         make_augmenter(text, {{32, 32, 3}}, 1);
       }},
      {"data.raw_layout", any},
      {"model.layers",
       [](const std::string& text) {
         Model({.layers = text}, {{32, 32, 3}});
       }},
      {"model.batch_norm", [](const std::string& text) { parse_batch_norm_mode(text); }},
      {"train.quantiles", levels},
      {"train.class_weights", [](const std::string& text) { parse_class_weights(texts(text)); }},
      {"train.warmup", duration},
      {"train.decay_every", duration},
      {"train.milestones", milestones},
      {"train.plateau_patience", [](const std::string& text) { Patience("key", text); }},
      {"train.lr_multiplier", lr_multiplier},
      {"train.weight_decay_multiplier", weight_decay_multiplier},
      {"distribute.local_after", duration},
      {"distribute.schedule", [](const std::string& text) { EXPECT_TRUE(parse_schedule(text)); }},
      {"distribute.cut",
       [](const std::string& text) {
         const std::string dense = "dense(2) dense(2) dense(2) dense(2) dense(2) ";
         divide_model(
             Model({.layers = dense + "dense(2) dense(2) residual(dense(2) dense(2) dense(2)) "}, {{2}}), 3,
             texts(text));
       }},
      {"checkpoint.every", [](const std::string& text) { parse_interval("key", text); }},
      {"train.swa_from", duration},
      {"eval.every", [](const std::string& text) { parse_training_interval("key", text); }},
      {"train.early_stopping", [](const std::string& text) { Patience("key", text); }},
      {"train.early_stopping_metric", metrics},
      {"eval.metrics", metrics},
      {"report.trace", [](const std::string& text) { parse_trace("key", text); }},
      {"data.tokens", [](const std::string& text) { parse_token_rule(text, "refuse"); }},
      {"eval.threshold", [](const std::string& text) { parse_threshold("key", text); }}};
}

// "a number above 0 and below 1", "a whole number from 1 to 1024": the borders are values or not as it says.
TEST_F(Keys, OfNumbersHaveTheBordersThatTheyName) {
  static const std::regex kLow(R"(\b(above|from|of at least) ([-\d.]+))"),
      kHigh(R"(\b(below|at most|to) ([-\d.]+))");
  int borders = 0;
  for (const Option& option : options_) {
    if (option.expected.find("number") == std::string::npos) continue;
    for (const std::regex& words : {kLow, kHigh}) {
      std::smatch found;
      if (!std::regex_search(option.expected, found, words)) continue;
      const bool is_value = found[1] != "above" && found[1] != "below";
      EXPECT_EQ(option.accepts(found[2].str()), is_value) << option.key << ": " << option.expected;
      ++borders;
    }
  }
  EXPECT_GT(borders, 100);
}

TEST_F(Keys, HaveExamplesThatAreValues) {
  const auto all = parsers();
  int examples = 0;
  for (const Option& option : options_) {
    if (option.example.empty()) continue;
    SCOPED_TRACE(option.key);
    ++examples;
    if (option.choices.empty()) {
      EXPECT_TRUE(option.accepts(option.example)) << option.example;
    }
    ASSERT_TRUE(all.contains(option.key)) << "say here what parses it";
    EXPECT_NO_THROW(all.at(option.key)(option.example)) << option.example;
  }
  EXPECT_EQ(examples, static_cast<int>(all.size())) << "a key with a grammar has lost its example";
}

}  // namespace
}  // namespace lockstep::keys_test
