// The words of other programs: each leads to a name of ours that exists, none is a name of ours itself, and
// none leads to two.
#include "lockstep/base/catalog.h"

#include <regex>

#include "lockstep/base/errors.h"
#include "lockstep/config/option.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/nn/composite.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/model.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/storage/exporter.h"
#include "support/error_text.h"
#include "support/known_names.h"

namespace lockstep::synonyms_test {
namespace {

using Names = std::vector<std::string>;

Names words_of(std::string_view words) {
  std::istringstream in{std::string(words)};
  return {std::istream_iterator<std::string>(in), {}};
}

bool holds_spelling(const Names& names, const std::string& word) {
  return std::ranges::any_of(names, [&word](const std::string& name) { return same_spelling(name, word); });
}

class Synonyms : public testing::Test {
 protected:
  Names keys() const {
    Names all;
    for (const Option& option : options_) all.push_back(option.key);
    return all;
  }

  // Every list of names that an unknown one is looked up in.
  std::vector<Names> lists() const {
    Names layers = catalog_names(layer_catalog());
    for (const CompositeEntry& entry : composite_catalog()) layers.push_back(entry.name);
    std::vector<Names> all{
        layers,
        catalog_names(loss_catalog()),
        catalog_names(optimizer_catalog()),
        catalog_names(decay_catalog()),
        catalog_names(format_catalog()),
        catalog_names(exporter_catalog()),
        catalog_names(strategy_catalog()),
        catalog_names(algorithm_catalog()),
        catalog_names(codec_catalog()),
        catalog_names(preset_catalog()),
        catalog_names(metric_catalog()),
        {"plan", "bench", "eval", "predict", "generate", "importance", "export", "inspect", "init", "compare",
         "report", "export-metrics", "status", "watch", "trace", "sweep", "cv", "reference"}};
    Names sections;
    for (const Option& option : options_) {
      if (!option.choices.empty()) all.push_back(option.choices);
      sections.emplace_back(option.section());
    }
    all.push_back(sections);
    return all;
  }

  std::span<const Option> options_ = test::options();
};

TEST_F(Synonyms, HintsNameDeclaredKeysOnly) {
  const Names known = keys();
  const std::regex key("[a-z]+\\.[a-z_]+[a-z0-9]");
  const auto expect_known = [&](const std::string& hint, std::string_view name) {
    EXPECT_TRUE(hint.empty() || hint.find(name) != std::string::npos) << hint;
    for (auto found = std::sregex_iterator(hint.begin(), hint.end(), key); found != std::sregex_iterator();
         ++found) {
      const bool of_python = found->str().starts_with("safetensors.");
      EXPECT_TRUE(of_python || std::ranges::count(known, found->str()) == 1) << found->str();
    }
  };
  for (const Synonym& synonym : name_synonyms()) expect_known(synonym.hint, synonym.name);
  for (const Synonym& synonym : key_synonyms()) {
    if (synonym.name != "-") expect_known(synonym.hint, synonym.name);
  }
}

TEST_F(Synonyms, OfKeysAreNoKeysAndEachHasOneMeaning) {
  Names seen;
  for (const Synonym& synonym : key_synonyms()) {
    EXPECT_TRUE(synonym.name == "-" || std::ranges::count(keys(), synonym.name) == 1) << synonym.name;
    for (const std::string& word : words_of(synonym.words)) {
      EXPECT_FALSE(holds_spelling(seen, word)) << word;
      seen.push_back(word);
      const std::string hint = describe_other_word(word, options_);
      EXPECT_NE(hint.find(synonym.hint.empty() ? synonym.name : synonym.hint), std::string::npos)
          << word << ": " << hint;
      for (const Option& option : options_) {
        EXPECT_FALSE(same_spelling(option.key, word)) << word;
        EXPECT_FALSE(!option.alias.empty() && same_spelling(option.alias, word)) << word;
        // A key of that name in another section is found by that; but no batch to train with is eval.batch.
        EXPECT_TRUE(word == "batch" || !same_spelling(option.name(), word)) << word << " and " << option.key;
      }
    }
  }
  EXPECT_GT(seen.size(), 200u);
  EXPECT_EQ(describe_other_word("train.use_cuda", options_), "Lockstep trains on CPUs only: leave it out");
  EXPECT_EQ(describe_other_word("gradient", options_), "");
}

TEST_F(Synonyms, OfNamesLeadToOneNameThatIsThere) {
  const std::vector<Names> all = lists();
  for (const Synonym& synonym : name_synonyms()) {
    int found = 0;
    for (const Names& names : all) {
      if (std::ranges::count(names, synonym.name) == 0) continue;
      ++found;
      for (const std::string& word : words_of(synonym.words)) {
        EXPECT_FALSE(holds_spelling(names, word)) << word << " is a name itself";
        EXPECT_EQ(find_synonym(name_synonyms(), word, names), &synonym) << word << " leads to two names";
      }
    }
    EXPECT_GT(found, 0) << synonym.name << " is in no catalog";
  }
}

TEST_F(Synonyms, AreKnownByLayersAndExports) {
  const auto error = [](const std::string& layers) {
    return test::error_text<ConfigError>([&] { Model({.layers = layers}, {{4}}); });
  };
  test::expect_parts(error("linear(10)"),
                     {"unknown layer 'linear'", "Lockstep calls it 'dense'", "dense(10)"});
  test::expect_parts(error("Linear(4, 10)"), {"unknown layer 'Linear'", "Lockstep calls it 'dense'"});
  test::expect_parts(error("dense(3) ReLU dense(2)"), {"unknown layer 'ReLU'; did you mean 'relu'?"});
  test::expect_parts(error("dense(3) BatchNorm1d dense(2)"), {"Lockstep calls it 'batch_norm'"});
  test::expect_parts(error("dense(3) softmax"), {"softmax_cross_entropy", "end with 'dense'"});
  const Names exporters = catalog_names(exporter_catalog());
  test::expect_parts(suggestion("pt", exporters), {"'safetensors'"});
}

}  // namespace
}  // namespace lockstep::synonyms_test
