#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <unordered_map>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/data/text/texts.h"
#include "token_file.h"

namespace lockstep {
namespace {

constexpr Index kOrders = 4;
constexpr Index kCountedTokens = 5'000'000;
constexpr Index kMeasuredTokens = 1'000'000;

// Counts of what follows up to three tokens. A context, and a context with its token, are known by a hash.
class OrderCounts {
 public:
  explicit OrderCounts(Index vocabulary) : vocabulary_(static_cast<double>(vocabulary)) {}

  void count(const TokenFile& tokens, Index i) {
    visit(tokens, i, [this](Index, std::uint64_t context, std::uint64_t with_token) {
      Context& counts = contexts_[context];
      ++counts.tokens;
      if (++tokens_[with_token] == 1) ++counts.different;
    });
  }

  /// Adds what the token costs each order, in bits.
  void measure(const TokenFile& tokens, Index i, std::array<double, kOrders>& bits) const {
    double probability = 1 / vocabulary_;
    visit(tokens, i, [&](Index order, std::uint64_t context, std::uint64_t with_token) {
      const auto found = contexts_.find(context);
      if (found != contexts_.end()) {
        const auto token = tokens_.find(with_token);
        const double times = token == tokens_.end() ? 0 : static_cast<double>(token->second);
        const auto different = static_cast<double>(found->second.different);
        probability =
            (times + different * probability) / (static_cast<double>(found->second.tokens) + different);
      }
      at(bits, order) -= std::log2(probability);
    });
    for (Index order = i + 1; order < kOrders; ++order) at(bits, order) -= std::log2(probability);
  }

 private:
  struct Context {
    Index tokens = 0;
    Index different = 0;
  };

  template <class Use>
  static void visit(const TokenFile& tokens, Index i, const Use& use) {
    std::uint64_t context = kGoldenStep;
    for (Index order = 0; order < std::min(kOrders, i + 1); ++order) {
      if (order > 0) context = id_hash(context, tokens[i - order]);
      use(order, context, id_hash(context ^ 1, tokens[i]));
    }
  }

  double vocabulary_;
  std::unordered_map<std::uint64_t, Context> contexts_;
  std::unordered_map<std::uint64_t, Index> tokens_;
};

void measure_orders(const EncodedText& text, TextSummary& summary) {
  const TokenFile& tokens = *text.tokens;
  const Vocabulary& vocabulary = *text.vocabulary;
  summary.counted = std::min(text.train.size(), kCountedTokens);
  summary.measured = std::min(text.validation.size(), kMeasuredTokens);
  OrderCounts counts(std::max<Index>(vocabulary.size(), 1));
  for (Index i = 0; i < summary.counted; ++i) counts.count(tokens, i);
  std::array<double, kOrders> bits{};
  double characters = 0;
  for (Index i = text.validation.begin; i < text.validation.begin + summary.measured; ++i) {
    counts.measure(tokens, i, bits);
    characters += vocabulary.characters(tokens[i]);
  }
  if (characters == 0) return;
  for (const double each : bits) summary.bits.push_back(each / characters);
}

}  // namespace

TextSummary summarise_text(const DataOptions& data, double share, Index fewest) {
  DataOptions opened = data;
  opened.text.unknown = "replace";
  opened.text.cache = (std::filesystem::temp_directory_path() / fmt::format("trainer-{}", getpid())).string();
  const EncodedText text = encode_text(opened, data.train, "data.train",
                                       {.validation = ValidationPart{.share = share}}, nullptr, alone());
  remove_if_there(text.path);  // it stays mapped
  remove_if_there(opened.text.cache);
  const TokenFile& tokens = *text.tokens;
  error_if<DataError>(tokens.size() < fewest,
                      "'{}' has {}, expected {} at least, and thousands to learn from", data.train,
                      plural(tokens.size(), "token"), fewest);
  const Vocabulary& vocabulary = *text.vocabulary;
  const bool has_stand_in = vocabulary.replaces();
  TextSummary summary{.tokens = tokens.size(), .vocabulary = vocabulary.size() - (has_stand_in ? 1 : 0)};
  double characters = 0;
  for (Index i = 0; i < tokens.size(); ++i) {
    summary.unseen += has_stand_in && tokens[i] == vocabulary.size() - 1 ? 1 : 0;
    characters += vocabulary.characters(tokens[i]);
  }
  summary.characters = static_cast<Index>(characters);
  measure_orders(text, summary);
  return summary;
}

}  // namespace lockstep
