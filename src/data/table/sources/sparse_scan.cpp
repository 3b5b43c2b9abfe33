#include "sparse_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "lockstep/base/errors.h"
#include "lockstep/base/process.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/values/message.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxLabels = 100'000;

// The findings of a rank in its chunks. They can be merged in any order, but for the rows and the rejects,
// which come in the order of the ranks.
class SparseShare {
 public:
  explicit SparseShare(const BadRecords& bad) : bad_(bad) {
    found_.smallest = std::numeric_limits<Index>::max();
  }

  void read(const TextFiles& text, TextReader& reader, const TextChunk& chunk) {
    const Index before = found_.good;
    for_each_sparse_row(
        text, reader, chunk, [&](const SparseRow& row) { add(row); },
        [&](const std::string& description) {
          if (bad_.action == OnBadRecord::kFail) {
            throw DataError(
                fmt::format("{}; correct the file, or skip such records with data.on_bad_record = \"skip\"",
                            description));
          }
          found_.bad_positions.push_back(found_.good + found_.bad++);
          if (found_.rejects.size() < kMaxRejects) found_.rejects.push_back(description);
        });
    found_.chunk_rows.push_back(found_.good - before);
  }

  Bytes message() const {
    MessageWriter message;
    for (const Index number : {found_.good, found_.bad, found_.smallest, found_.largest, found_.max_values,
                               std::ssize(found_.chunk_rows)}) {
      message.put(number);
    }
    for (const Index rows : found_.chunk_rows) message.put(rows);
    for (const Index position : found_.bad_positions) message.put(position);
    message.put(found_.too_many_labels);
    message.put(found_.queries);
    message.put(found_.labels.size());
    for (const double label : found_.labels) message.put(label);
    for (const std::string& reject : found_.rejects) message.put_text(reject);
    return message.bytes();
  }

 private:
  void add(const SparseRow& row) {
    found_.queries |= row.query;
    ++found_.good;
    found_.max_values = std::max(found_.max_values, std::ssize(row.values));
    if (!row.values.empty()) {
      found_.smallest = std::min(found_.smallest, row.values.front().index);
      found_.largest = std::max(found_.largest, row.values.back().index);
    }
    if (found_.labels.size() <= kMaxLabels) found_.labels.insert(row.label);
    found_.too_many_labels = found_.labels.size() > kMaxLabels;
  }

  BadRecords bad_;
  SparseScan found_;
};

void merge(SparseScan& scan, std::span<const std::byte> bytes) {
  MessageReader message(bytes);
  const Index before = scan.good + scan.bad;
  scan.good += message.take<Index>();
  const auto bad = message.take<Index>();
  scan.bad += bad;
  scan.smallest = std::min(scan.smallest, message.take<Index>());
  scan.largest = std::max(scan.largest, message.take<Index>());
  scan.max_values = std::max(scan.max_values, message.take<Index>());
  for (auto left = message.take<Index>(); left > 0; --left) scan.chunk_rows.push_back(message.take<Index>());
  for (Index i = 0; i < bad; ++i) scan.bad_positions.push_back(before + message.take<Index>());
  scan.too_many_labels |= message.take<bool>();
  scan.queries |= message.take<bool>();
  for (auto left = message.take<std::size_t>(); left > 0; --left) scan.labels.insert(message.take<double>());
  scan.too_many_labels |= scan.labels.size() > kMaxLabels;
  while (!message.done()) {
    std::string reject = message.take_text();
    if (scan.rejects.size() < kMaxRejects) scan.rejects.push_back(std::move(reject));
  }
}

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

std::string describe_sparse(const BadRecord& bad, const std::string& path, Index line) {
  return fmt::format("'{}', line {}: found {}, expected {}", path, with_commas(line), bad.found,
                     bad.expected);
}

SparseScan scan_sparse(const TextFiles& text, const BadRecords& bad, PeerGroup& peers) {
  SparseShare share(bad);
  peers.agree([&] {
    const Range mine = at(share_text_chunks(text, peers.size()), peers.rank());
    TextReader reader(text);
    for (Index i = mine.begin; i < mine.end; ++i) {
      throw_if_stopped();
      share.read(text, reader, at(text.chunks, i));
    }
  });
  SparseScan scan;
  scan.smallest = std::numeric_limits<Index>::max();
  for (const Bytes& message : peers.all_gather(share.message())) merge(scan, message);
  peers.agree([&] { check_bad_share(scan.good, scan.bad, scan.rejects, bad); });
  return scan;
}

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
