#include "sparse_row.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "lockstep/base/quoted.h"
#include "lockstep/base/trim.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

constexpr Index kMaxFeatures = Index{1} << 31;

// The next word of a text, taken off it; "" behind the last.
std::string_view take_word(std::string_view& text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  std::size_t length = 0;
  while (length < text.size() && !is_blank(text[length])) ++length;
  const std::string_view word = text.substr(0, length);
  text.remove_prefix(length);
  return word;
}

std::optional<double> parse_scalar(std::string_view text) {
  const std::optional<double> value = parse_number(text);
  if (value && std::abs(*value) > double{std::numeric_limits<Scalar>::max()}) {
    throw BadRecord{-1, in_quotes(text), "a number that single precision can hold"};
  }
  return value;
}

SparseValue parse_value(std::string_view word) {
  SparseValue parsed;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, parsed.index);
  std::optional<double> value;
  if (error == std::errc() && stop != end && *stop == ':') {
    value = parse_scalar(word.substr(static_cast<std::size_t>(stop - word.data()) + 1));
  }
  if (!value) throw BadRecord{-1, in_quotes(word), "INDEX:NUMBER"};
  if (parsed.index < 0 || parsed.index > kMaxFeatures) {
    throw BadRecord{-1, fmt::format("the index {}", parsed.index),
                    fmt::format("one from 0 to {}", kMaxFeatures)};
  }
  parsed.value = static_cast<Scalar>(*value);
  return parsed;
}

}  // namespace

void parse_sparse_row(std::string_view record, SparseRow& row) {
  record = record.substr(0, record.find('#'));
  const std::string_view label = take_word(record);
  const std::optional<double> number = parse_scalar(label);
  if (!number) throw BadRecord{-1, in_quotes(label), "a number as label"};
  row.label = *number;
  row.values.clear();
  row.query = false;
  for (std::string_view word = take_word(record); !word.empty(); word = take_word(record)) {
    if (row.values.empty() && word.starts_with("qid:")) {
      row.query = true;
      continue;
    }
    const SparseValue next = parse_value(word);
    if (!row.values.empty() && next.index <= row.values.back().index) {
      throw BadRecord{-1, fmt::format("the index {} behind {}", next.index, row.values.back().index),
                      "ascending indices, each once"};
    }
    row.values.push_back(next);
  }
}

}  // namespace lockstep
