#include "lockstep/train/evaluation/next_token.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"

namespace lockstep {

double TokenDrawer::choose_candidates(std::span<const Scalar> outputs) {
  candidates_.resize(outputs.size());
  std::iota(candidates_.begin(), candidates_.end(), Index{0});
  const Index size = std::ssize(outputs);
  const Index kept = options_.top_k > 0 ? std::min(options_.top_k, size) : size;
  const auto is_likelier = [outputs](Index a, Index b) {
    return at(outputs, a) != at(outputs, b) ? at(outputs, a) > at(outputs, b) : a < b;
  };
  // With all tokens allowed the order is free, as long as it is always the same.
  if (kept < size || options_.top_p < 1)
    std::partial_sort(candidates_.begin(), candidates_.begin() + kept, candidates_.end(), is_likelier);
  candidates_.resize(static_cast<std::size_t>(kept));
  const auto largest = static_cast<double>(*std::ranges::max_element(outputs));
  shares_.clear();
  double sum = 0;
  for (const Index token : candidates_) {
    const auto output = static_cast<double>(at(outputs, token));
    sum += shares_.emplace_back(std::exp((output - largest) / options_.temperature));
  }
  if (options_.top_p >= 1) return sum;
  double nucleus = 0;
  std::size_t count = 0;
  while (count < shares_.size() && (count == 0 || nucleus < options_.top_p * sum))
    nucleus += shares_[count++];
  shares_.resize(count);
  return nucleus;
}

Index TokenDrawer::draw(std::span<const Scalar> outputs, Index text, Index position) {
  if (options_.tokens > 0) outputs = outputs.first(static_cast<std::size_t>(options_.tokens));
  const bool finite = std::ranges::all_of(outputs, [](Scalar value) { return std::isfinite(value); });
  if (!finite) {
    throw DataError(
        "the model gives outputs that are not finite numbers at position {}: its weights are bad; take a "
        "checkpoint of an earlier step, as in trainer generate RUN@step-500",
        position);
  }
  if (options_.temperature == 0) return std::ranges::max_element(outputs) - outputs.begin();
  const double sum = choose_candidates(outputs);
  RandomStream random({.seed = options_.seed,
                       .purpose = Purpose::kToken,
                       .a = static_cast<std::uint64_t>(text),
                       .b = static_cast<std::uint64_t>(position)});
  // 53 bits, uniform in [0, 1).
  double rest = std::ldexp(static_cast<double>(random.bits64() >> 11U), -53) * sum;
  std::size_t drawn = 0;
  while (drawn + 1 < shares_.size() && rest >= shares_[drawn]) rest -= shares_[drawn++];
  return candidates_[drawn];
}

TextGenerator::TextGenerator(const Model& model, const DrawOptions& options, std::vector<Index> prompt,
                             Index texts)
    : weights_(model),
      window_(model.input().dims.front()),
      drawer_(options),
      next_(model, texts),
      prompt_(std::move(prompt)),
      texts_(static_cast<std::size_t>(texts)) {
  const Index outputs = model.output().dims.back();
  error_if(outputs < options.tokens,
           "the model has {} outputs, and its vocabulary {} tokens: is schema.json that of this run?",
           with_commas(outputs), with_commas(options.tokens));
  error_if(prompt_.empty(), "the prompt is empty: give at least one token");
  error_if(std::ssize(prompt_) > window_,
           "the prompt has {}, and the model sees {} (data.window): give the last part of it",
           plural(std::ssize(prompt_), "token"), with_commas(window_));
}

void TextGenerator::start(const ModelValues& values) {
  values_ = weights_.prepare(values, team_);
  std::ranges::fill(texts_, prompt_);
  next_.start_again();
  take({0, std::ssize(prompt_)});
}

void TextGenerator::add_token() {
  const Index position = std::ssize(texts_.front());
  for (Index i = 0; i < std::ssize(texts_); ++i) {
    const auto outputs = outputs_->values().subspan(static_cast<std::size_t>(i * outputs_->cols()),
                                                    static_cast<std::size_t>(outputs_->cols()));
    at(texts_, i).push_back(drawer_.draw(outputs, i, position));
  }
  const bool is_full = next_.position() == window_;
  if (is_full) next_.start_again();
  take({is_full ? position + 1 - (window_ + 1) / 2 : position, position + 1});
}

void TextGenerator::take(Range positions) {
  for (Index position = positions.begin; position < positions.end; ++position) {
    ids_.clear();
    for (const std::vector<Index>& text : texts_) ids_.push_back(static_cast<Scalar>(at(text, position)));
    outputs_.emplace(next_.next(values_, ConstMatrix(ids_.data(), std::ssize(ids_), 1)));
  }
}

}  // namespace lockstep
