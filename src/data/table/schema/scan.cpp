#include "lockstep/data/table/schema/scan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

constexpr Index kMaxMissingTexts = 30;
constexpr std::size_t kMaxRejects = 100;  // descriptions of bad records that are kept

std::vector<ColumnSummary> empty_summaries(const std::vector<ColumnWants>& wants) {
  std::vector<ColumnSummary> columns;
  for (const ColumnWants& wanted : wants) {
    columns.push_back({.missing_texts = ValueCounts(wanted.notations ? kMaxMissingTexts : 0),
                       .text_counts = ValueCounts(wanted.max_texts),
                       .number_counts = ValueCounts(wanted.max_numbers),
                       .quantiles = ValueSample(wanted.quantiles)});
  }
  return columns;
}

// The findings of a rank in the chunks that it reads. Statistics of numbers are per chunk, so that they can
// be merged in the same order whoever read the chunks; counts of values can be added in any.
class TableShare final : public TextPass {
 public:
  explicit TableShare(const ScanRequest& request)
      : request_(request),
        reader_(request.table, request.columns, std::ssize(request.wants), request.missing),
        columns_(empty_summaries(request.wants)) {}

  TextReader& text() override { return reader_.text(); }
  bool names_lines() const override { return counts_.bad > 0; }

  void take(const TextChunk& chunk, std::size_t number) override {
    sums_.assign(columns_.size(), {});
    const Index before = counts_.good;
    const Index bad_before = counts_.bad;
    reader_.for_each_record(
        chunk,
        [&](std::span<const Cell> cells) {
          check(cells, chunk);
          const Index position = counts_.good++ - before;
          add(cells, !request_.counts || request_.counts(number, position), record_key(number, position));
          for (const Index cell : request_.texts) texts_.put_text(at(cells, cell).written());
        },
        [&](const std::string& description) {
          counts_.add_bad(description, request_.bad);
          for (std::size_t i = 0; i < request_.texts.size(); ++i) texts_.put_text("");
        });
    counts_.chunk_rows.push_back(counts_.good - before);
    counts_.chunk_bad.push_back(counts_.bad - bad_before);
    for (const NumberSums& sums : sums_) numbers_.push_back(sums.stats());
  }

  void start_again() override {
    counts_ = {};
    columns_ = empty_summaries(request_.wants);
    numbers_.clear();
    texts_ = {};
    if (request_.check_again) request_.check_again();
  }

  Bytes message() {
    MessageWriter message;
    message(counts_, numbers_);
    for (ColumnSummary& column : columns_) pass(message, column);
    message.put_bytes(std::exchange(texts_, {}).bytes());
    return message.bytes();
  }

  static void merge(Scan& scan, std::span<const std::byte> bytes) {
    MessageReader message(bytes);
    RecordCounts counts;
    std::vector<NumberStats> numbers;
    message(counts, numbers);
    scan.append(counts);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      scan.columns[i % scan.columns.size()].numbers.merge(numbers[i]);
    for (ColumnSummary& column : scan.columns) {
      ColumnSummary theirs;
      pass(message, theirs);
      column.missing += theirs.missing;
      column.missing_texts.merge(theirs.missing_texts);
      column.texts += theirs.texts;
      column.short_years += theirs.short_years;
      column.text_counts.merge(theirs.text_counts);
      column.number_counts.merge(theirs.number_counts);
      column.notations.merge(theirs.notations);
      column.quantiles.merge(theirs.quantiles);
    }
    for (std::vector<std::string>& texts : scan.texts)
      texts.reserve(texts.size() + static_cast<std::size_t>(counts.good + counts.bad));
    while (!message.done()) {
      for (std::vector<std::string>& texts : scan.texts) texts.push_back(message.take_text());
    }
  }

 private:
  // All but the statistics of its numbers.
  template <class Message>
  static void pass(Message& message, ColumnSummary& column) {
    message(column.missing, column.missing_texts, column.texts, column.short_years, column.text_counts,
            column.number_counts, column.notations, column.quantiles);
  }

  // Before anything is counted, so that a bad record leaves no trace.
  void check(std::span<const Cell> cells, const TextChunk& chunk) const {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const Cell& cell = cells[i];
      if (request_.wants[i].max_texts == 0 || cell.missing || cell.is_number || is_text(cell.text)) continue;
      throw BadRecord{static_cast<Index>(i), in_quotes(cell.text), kExpectedText};
    }
    if (request_.check) request_.check(cells, chunk);
  }

  // `key`: see record_key().
  void add(std::span<const Cell> cells, bool counts, std::uint64_t key) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const Cell& cell = cells[i];
      const ColumnWants& wants = request_.wants[i];
      if (!counts && !wants.of_all) continue;
      ColumnSummary& column = columns_[i];
      if (cell.missing) {
        ++column.missing;
        if (wants.notations && !cell.text.empty()) column.missing_texts.add(cell.text);
      } else if (cell.is_number) {
        const double number = wants.logarithm ? signed_log(cell.number) : cell.number;
        sums_[i].add(number);
        column.short_years += cell.short_year ? 1 : 0;
        if (wants.quantiles > 0) column.quantiles.add(key, number);
        if (wants.max_numbers > 0) column.number_counts.add(cell.text);
        if (wants.notations) column.notations.add_number(cell.text, cell.number);
      } else if (wants.max_texts > 0) {
        ++column.texts;
        column.text_counts.add(cell.text);
        // A whole number stands for the text: as many bits of its hash as a double holds.
        constexpr int kOtherBits = 64 - std::numeric_limits<double>::digits;
        if (wants.quantiles > 0 && counts)
          column.quantiles.add(key, static_cast<double>(hash_text(cell.text) >> kOtherBits));
        if (wants.notations) column.notations.add_text(cell.text);
      }
    }
  }

  const ScanRequest& request_;
  TableReader reader_;
  RecordCounts counts_;
  std::vector<ColumnSummary> columns_;
  std::vector<NumberSums> sums_;      // of the chunk at hand
  std::vector<NumberStats> numbers_;  // chunk by chunk, of each column
  MessageWriter texts_;
};

}  // namespace

double RecordCounts::bad_share() const {
  return bad == 0 ? 0 : static_cast<double>(bad) / static_cast<double>(good + bad);
}

void RecordCounts::add_bad(const std::string& description, const BadRecords& treatment) {
  if (treatment.action == OnBadRecord::kFail) {
    throw DataError("{}; correct the file, or skip such records with data.on_bad_record = \"skip\"",
                    description);
  }
  bad_positions.push_back(good + bad++);
  if (rejects.size() < kMaxRejects) rejects.push_back(description);
}

void RecordCounts::append(const RecordCounts& behind) {
  const Index before = good + bad;
  for (const Index position : behind.bad_positions) bad_positions.push_back(before + position);
  chunk_rows.insert(chunk_rows.end(), behind.chunk_rows.begin(), behind.chunk_rows.end());
  chunk_bad.insert(chunk_bad.end(), behind.chunk_bad.begin(), behind.chunk_bad.end());
  good += behind.good;
  bad += behind.bad;
  const std::size_t most = std::min(behind.rejects.size(), kMaxRejects - rejects.size());
  rejects.insert(rejects.end(), behind.rejects.begin(),
                 behind.rejects.begin() + static_cast<std::ptrdiff_t>(most));
}

void RecordCounts::check_bad_share(const BadRecords& limit) const {
  const double share = bad_share();
  if (share <= limit.most) return;
  constexpr std::size_t kShown = 3;
  const auto shown = std::span(rejects).first(std::min(kShown, rejects.size()));
  throw DataError("{} of {} records are bad, {:.3g} % and more than data.max_bad_share = {:.3g} %:\n  {}{}",
                  with_commas(bad), with_commas(good + bad), 100 * share, 100 * limit.most,
                  fmt::join(shown, "\n  "), rejects.size() > kShown ? "\n  ..." : "");
}

void ColumnSummary::count_missing_texts(const std::vector<std::string>& in_categories) {
  for (const ValueCounts::Entry& entry : missing_texts.by_count()) {
    if (std::ranges::count(in_categories, entry.text) > 0) continue;
    text_counts.add(entry.text, entry.count);
    texts += entry.count;
    missing -= entry.count;
  }
  missing_texts = ValueCounts();
}

std::vector<ValueCounts::Entry> ColumnSummary::values() const {
  if (countless()) return {};
  std::vector<ValueCounts::Entry> found = text_counts.by_count();
  const std::vector<ValueCounts::Entry> of_numbers = number_counts.by_count();
  found.insert(found.end(), of_numbers.begin(), of_numbers.end());
  std::ranges::stable_sort(found, std::greater<>(), &ValueCounts::Entry::count);
  return found;
}

bool all_whole(const std::vector<ValueCounts::Entry>& values) {
  return std::ranges::all_of(values, [](const ValueCounts::Entry& value) {
    const double number = parse_number(value.text).value_or(0.5);
    return number == std::floor(number);
  });
}

bool look_like_classes(const std::vector<ValueCounts::Entry>& values) {
  constexpr Index kMost = 20;
  constexpr Index kTimes = 5;
  const Index different = std::ssize(values);
  Index all = 0;
  for (const ValueCounts::Entry& value : values) all += value.count;
  const bool often = different <= 2 || (different <= kMost && all >= kTimes * different);
  return often && different > 0 && all_whole(values);
}

Scan scan_table(const ScanRequest& request, PeerGroup& peers) {
  TableShare share(request);
  read_text(request.table.text, peers, share);
  Scan scan;
  scan.columns = empty_summaries(request.wants);
  scan.texts.resize(request.texts.size());
  for (const Bytes& message : peers.all_gather(share.message())) TableShare::merge(scan, message);
  peers.agree([&] { scan.check_bad_share(request.bad); });
  return scan;
}

}  // namespace lockstep
