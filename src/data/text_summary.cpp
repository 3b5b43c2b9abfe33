#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <unordered_map>
#include <utility>

#include "encoded_text.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/data/texts.h"

namespace lockstep {
namespace {

constexpr Index kOrders = 4;
constexpr Index kMostCounted = 5'000'000;
constexpr Index kMostMeasured = 1'000'000;
constexpr Index kFrequent = 8;

// A directory that is gone at the end.
class ScratchDirectory {
 public:
  ScratchDirectory() : path_((std::filesystem::temp_directory_path() / "trainer-text-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr)
      throw DataError(fmt::format("cannot make a directory in '{}' for the encoded text",
                                  std::filesystem::temp_directory_path().string()));
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

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

std::vector<std::string> shown_frequent(const Vocabulary& vocabulary, std::span<const Index> counts,
                                        Index tokens) {
  std::vector<std::pair<Index, Index>> order;
  for (Index id = 0; id < std::ssize(counts); ++id) order.emplace_back(-at(counts, id), id);
  std::ranges::sort(order);
  std::vector<std::string> shown;
  for (Index i = 0; i < std::min<Index>(kFrequent, std::ssize(order)); ++i) {
    const auto [count, id] = at(order, i);
    shown.push_back(fmt::format("{} {:.1f} %", in_quotes(vocabulary.decode({&id, 1})),
                                -100 * static_cast<double>(count) / static_cast<double>(tokens)));
  }
  return shown;
}

void measure_orders(const TokenFile& tokens, const EncodedText& text, const Vocabulary& vocabulary,
                    TextSummary& summary) {
  summary.counted = std::min(text.train.size(), kMostCounted);
  summary.measured = std::min(text.validation.size(), kMostMeasured);
  OrderCounts counts(std::max<Index>(vocabulary.size(), 1));
  for (Index i = 0; i < summary.counted; ++i) counts.count(tokens, i);
  std::array<double, kOrders> bits{};
  double characters = 0;
  for (Index i = text.validation.begin; i < text.validation.begin + summary.measured; ++i) {
    counts.measure(tokens, i, bits);
    characters += vocabulary.characters(tokens[i]);
  }
  if (characters == 0) return;
  for (Index order = 0; order < kOrders; ++order)
    summary.models.push_back({.order = order, .bits_per_character = at(bits, order) / characters});
}

}  // namespace

TextSummary summarise_text(const DataOptions& data, double share) {
  const ScratchDirectory scratch;
  DataOptions opened = data;
  opened.text.cache = scratch.path();
  opened.text.unknown = "replace";
  const bool ids = data.text.tokens == "ids";
  const DataParts parts{.validation = ids ? std::nullopt : std::optional(ValidationPart{.share = share})};
  EncodedText text = encode_text(opened, data.train, "data.train", parts, "", alone());
  const TokenFile& tokens = *text.tokens;
  if (ids) text.validation = {text.train.end, text.train.end};
  const Vocabulary vocabulary(text.schema);
  const bool has_stand_in =
      vocabulary.kind() == TokenKind::kCharacters || vocabulary.kind() == TokenKind::kWords;
  TextSummary summary{.tokens = tokens.size(), .vocabulary = vocabulary.size() - (has_stand_in ? 1 : 0)};
  std::vector<Index> counts(static_cast<std::size_t>(vocabulary.size()));
  double characters = 0;
  for (Index i = 0; i < tokens.size(); ++i) {
    ++at(counts, tokens[i]);
    characters += vocabulary.characters(tokens[i]);
  }
  summary.characters = static_cast<Index>(characters);
  if (has_stand_in) summary.unseen = at(counts, vocabulary.size() - 1);
  summary.frequent = shown_frequent(vocabulary, counts, tokens.size());
  measure_orders(tokens, text, vocabulary, summary);
  return summary;
}

}  // namespace lockstep
