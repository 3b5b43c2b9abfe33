#include "lockstep/data/table/schema/scan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "lockstep/base/errors.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/process.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/values/number.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {
namespace {

// A whole number that stands for the text: as many bits of its hash as a double holds.
double number_of_text(std::string_view text) {
  constexpr int kOtherBits = 64 - std::numeric_limits<double>::digits;
  return static_cast<double>(hash_text(text) >> kOtherBits);
}

// The statistics of the chunks that a rank reads. Sums are per chunk, so that they can be merged in the same
// order whoever read the chunks; counts of values can be added in any.
class TableShare {
 public:
  explicit TableShare(const ScanRequest& request) : request_(request) {
    for (const ColumnWants& wants : request.wants) {
      counts_.push_back(
          {ValueCounts(wants.max_texts), ValueCounts(wants.max_numbers), {}, ValueSample(wants.quantiles)});
    }
  }

  void read(std::size_t number, TableReader& reader) {
    const TextChunk& chunk = request_.table.text.chunks[number];
    sums_.assign(request_.wants.size(), {});
    Index good = 0;
    std::vector<Index> bad_positions;  // numbers of the bad records in the chunk
    reader.for_each_record(
        chunk,
        [&](std::span<const Cell> cells) {
          check(cells);
          add(cells, !request_.counts || request_.counts(number, good), record_key(number, good));
          ++good;
        },
        [&](const std::string& description) {
          if (request_.bad.action == OnBadRecord::kFail) {
            throw DataError(
                fmt::format("{}; correct the file, or skip such records with data.on_bad_record = \"skip\"",
                            description));
          }
          bad_positions.push_back(good + std::ssize(bad_positions));
          if (rejects_.size() < kMaxRejects) rejects_.push_back(description);
        });
    chunks_.put(good);
    chunks_.put(std::ssize(bad_positions));
    for (const Index position : bad_positions) chunks_.put(position);
    for (const Sums& sums : sums_) {
      chunks_.put(sums.missing);
      chunks_.put(sums.texts);
      chunks_.put(sums.numbers.stats());
    }
  }

  const Bytes& chunks() const { return chunks_.bytes(); }
  Bytes rest() const {
    MessageWriter message;
    for (const Counts& counts : counts_) {
      counts.texts.write(message);
      counts.numbers.write(message);
      counts.notations.write(message);
      counts.quantiles.write(message);
    }
    for (const std::string& reject : rejects_) message.put_text(reject);
    return message.bytes();
  }

 private:
  struct Sums {
    Index missing = 0;
    Index texts = 0;
    NumberSums numbers;
  };
  struct Counts {
    ValueCounts texts;
    ValueCounts numbers;
    NotationCounts notations;
    ValueSample quantiles;
  };

  // Before anything is counted, so that a bad record leaves no trace.
  void check(std::span<const Cell> cells) const {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const Cell& cell = cells[i];
      if (request_.wants[i].max_texts == 0 || cell.missing || cell.is_number || is_text(cell.text)) continue;
      throw BadRecord{static_cast<Index>(i), in_quotes(cell.text), kExpectedText};
    }
    if (request_.check) request_.check(cells);
  }

  // `key`: see record_key().
  void add(std::span<const Cell> cells, bool counts, std::uint64_t key) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const Cell& cell = cells[i];
      const ColumnWants& wants = request_.wants[i];
      if (!counts && !wants.of_all) continue;
      Sums& sums = sums_[i];
      if (cell.missing) {
        ++sums.missing;
      } else if (cell.is_number) {
        const double number = wants.logarithm ? signed_log(cell.number) : cell.number;
        sums.numbers.add(number);
        if (wants.quantiles > 0) counts_[i].quantiles.add(key, number);
        if (wants.max_numbers > 0) counts_[i].numbers.add(cell.text);
        if (wants.notations) counts_[i].notations.add_number(cell.text, cell.number);
      } else if (wants.max_texts > 0) {
        ++sums.texts;
        counts_[i].texts.add(cell.text);
        if (wants.quantiles > 0 && counts) counts_[i].quantiles.add(key, number_of_text(cell.text));
        if (wants.notations) counts_[i].notations.add_text(cell.text);
      }
    }
  }

  const ScanRequest& request_;
  std::vector<Sums> sums_;
  std::vector<Counts> counts_;
  std::vector<std::string> rejects_;
  MessageWriter chunks_;
};

void merge_chunks(Scan& scan, std::span<const std::byte> message) {
  for (MessageReader reader(message); !reader.done();) {
    const Index before = scan.good + scan.bad;
    scan.chunk_rows.push_back(reader.take<Index>());
    scan.good += scan.chunk_rows.back();
    const auto bad = reader.take<Index>();
    for (Index i = 0; i < bad; ++i) scan.bad_positions.push_back(before + reader.take<Index>());
    scan.bad += bad;
    for (ColumnSummary& column : scan.columns) {
      column.missing += reader.take<Index>();
      column.texts += reader.take<Index>();
      column.numbers.merge(reader.take<NumberStats>());
    }
  }
}

void merge_rest(Scan& scan, std::span<const std::byte> message) {
  MessageReader reader(message);
  for (ColumnSummary& column : scan.columns) {
    column.text_counts.merge(ValueCounts::read(reader));
    column.number_counts.merge(ValueCounts::read(reader));
    column.notations.merge(NotationCounts::read(reader));
    column.quantiles.merge(ValueSample::read(reader));
  }
  while (!reader.done()) {
    std::string reject = reader.take_text();
    if (scan.rejects.size() < kMaxRejects) scan.rejects.push_back(std::move(reject));
  }
}

}  // namespace

void check_bad_share(Index good, Index bad, const std::vector<std::string>& rejects,
                     const BadRecords& limit) {
  const double share = bad == 0 ? 0 : static_cast<double>(bad) / static_cast<double>(good + bad);
  if (share <= limit.most) return;
  constexpr std::size_t kShown = 3;
  const auto shown = std::span(rejects).first(std::min(kShown, rejects.size()));
  throw DataError(
      fmt::format("{} of {} records are bad, {:.3g} % and more than data.max_bad_share = {:.3g} %:\n  {}{}",
                  with_commas(bad), with_commas(good + bad), 100 * share, 100 * limit.most,
                  fmt::join(shown, "\n  "), rejects.size() > kShown ? "\n  ..." : ""));
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

double Scan::bad_share() const {
  return bad == 0 ? 0 : static_cast<double>(bad) / static_cast<double>(good + bad);
}

Scan scan_table(const ScanRequest& request, PeerGroup& peers) {
  TableShare share(request);
  peers.agree([&] {
    const TextFiles& text = request.table.text;
    const Range mine = at(share_text_chunks(text, peers.size()), peers.rank());
    TableReader reader(request.table, request.columns, std::ssize(request.wants), request.missing);
    for (Index i = mine.begin; i < mine.end; ++i) {
      throw_if_stopped();
      share.read(static_cast<std::size_t>(i), reader);
    }
  });
  Scan scan;
  for (const ColumnWants& wants : request.wants) {
    scan.columns.push_back({.text_counts = ValueCounts(wants.max_texts),
                            .number_counts = ValueCounts(wants.max_numbers),
                            .quantiles = ValueSample(wants.quantiles)});
  }
  for (const Bytes& message : peers.all_gather(share.chunks())) merge_chunks(scan, message);
  for (const Bytes& message : peers.all_gather(share.rest())) merge_rest(scan, message);
  peers.agree([&] { check_bad_share(scan.good, scan.bad, scan.rejects, request.bad); });
  return scan;
}

}  // namespace lockstep
