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
constexpr Index kBlock = Index{1} << 20;

// Counts of what follows up to three tokens. A context, and a context with its token, are known by a hash.
class OrderCounts {
 public:
  explicit OrderCounts(Index vocabulary) : vocabulary_(static_cast<double>(vocabulary)) {}

  void count(std::span<const Scalar> tokens, Index i) {
    visit(tokens, i, [this](Index, std::uint64_t context, std::uint64_t with_token) {
      Context& counts = contexts_[context];
      ++counts.tokens;
      if (++tokens_[with_token] == 1) ++counts.different;
    });
  }

  /// Adds what the token costs each order, in bits.
  void measure(std::span<const Scalar> tokens, Index i, std::array<double, kOrders>& bits) const {
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
  static void visit(std::span<const Scalar> tokens, Index i, const Use& use) {
    const auto id = [&](Index k) { return static_cast<Index>(at(tokens, k)); };
    std::uint64_t context = kGoldenStep;
    for (Index order = 0; order < std::min(kOrders, i + 1); ++order) {
      if (order > 0) context = id_hash(context, id(i - order));
      use(order, context, id_hash(context ^ 1, id(i)));
    }
  }

  double vocabulary_;
  std::unordered_map<std::uint64_t, Context> contexts_;
  std::unordered_map<std::uint64_t, Index> tokens_;
};

std::vector<Scalar> read_tokens(const EncodedText& text, Range range) {
  std::vector<Scalar> tokens(static_cast<std::size_t>(range.size()));
  text.tokens->read(range.begin, tokens);
  return tokens;
}

void measure_orders(const EncodedText& text, TextSummary& summary) {
  const Vocabulary& vocabulary = *text.vocabulary;
  summary.counted = std::min(text.train.size(), kCountedTokens);
  summary.measured = std::min(text.validation.size(), kMeasuredTokens);
  OrderCounts counts(std::max<Index>(vocabulary.size(), 1));
  std::vector<Scalar> tokens = read_tokens(text, {0, summary.counted});
  for (Index i = 0; i < summary.counted; ++i) counts.count(tokens, i);
  std::array<double, kOrders> bits{};
  double characters = 0;
  const Index before = std::min(text.validation.begin, kOrders - 1);  // tokens that the first ones follow
  tokens = read_tokens(text, {text.validation.begin - before, text.validation.begin + summary.measured});
  for (Index i = before; i < before + summary.measured; ++i) {
    counts.measure(tokens, i, bits);
    characters += vocabulary.characters(static_cast<Index>(at(tokens, i)));
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
  remove_if_there(text.path);  // it stays open
  remove_if_there(opened.text.cache);
  const TokenFile& tokens = *text.tokens;
  error_if<DataError>(tokens.size() < fewest,
                      "'{}' has {}, expected {} at least, and thousands to learn from", data.train,
                      plural(tokens.size(), "token"), fewest);
  const Vocabulary& vocabulary = *text.vocabulary;
  const bool has_stand_in = vocabulary.replaces();
  TextSummary summary{.tokens = tokens.size(), .vocabulary = vocabulary.size() - (has_stand_in ? 1 : 0)};
  for (Index begin = 0; has_stand_in && begin < tokens.size(); begin += kBlock) {
    for (const Scalar id : read_tokens(text, {begin, std::min(begin + kBlock, tokens.size())}))
      summary.unseen += static_cast<Index>(id) == vocabulary.size() - 1 ? 1 : 0;
  }
  if (vocabulary.kind() != TokenKind::kIds) summary.characters = count_characters(text.paths);
  measure_orders(text, summary);
  return summary;
}

}  // namespace lockstep
