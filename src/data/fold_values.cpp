#include "fold_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/text/table_text.h"
#include "lockstep/data/table/values/message.h"
#include "lockstep/data/table/values/number.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {
namespace {

void refuse_empty(const std::vector<std::string>& values, const FoldColumn& column) {
  const auto empty = std::ranges::find(values, std::string());
  if (empty == values.end()) return;
  throw ConfigError(
      fmt::format("{}: column {} is empty in record {} (counted from 0), expected a value in each",
                  column.setting, in_quotes(column.name), with_commas(empty - values.begin())));
}

// The records that the source left out are in the file, but have no number.
std::vector<std::string> without_skipped(const std::vector<Bytes>& messages, std::span<const Index> skipped) {
  std::vector<std::string> all;
  auto next = skipped.begin();
  Index position = 0;
  for (const Bytes& message : messages) {
    for (MessageReader reader(message); !reader.done(); ++position) {
      std::string text = reader.take_text();
      if (next != skipped.end() && *next == position) {
        ++next;
      } else {
        all.push_back(std::move(text));
      }
    }
  }
  return all;
}

}  // namespace

RecordsByClass records_by_class(const std::vector<Scalar>& targets, std::uint64_t seed,
                                const std::string& setting, const std::string& instead) {
  RecordsByClass classes;
  const KeyedPermutation order(std::ssize(targets), {.seed = seed, .purpose = Purpose::kFold});
  for (Index position = 0; position < std::ssize(targets); ++position) {
    const Index id = order.inverse(position);
    classes[at(targets, id)].push_back(id);
  }
  constexpr std::size_t kMaxClasses = 1000;
  if (classes.size() > kMaxClasses) {
    throw ConfigError(fmt::format(
        "{}: the label has {} different values, expected classes, {} at most; {} records of any kind",
        setting, with_commas(std::ssize(classes)), with_commas(kMaxClasses), instead));
  }
  return classes;
}

// Every rank reads a run of chunks.
std::vector<Scalar> read_targets(const RecordSource& whole, const std::string& setting, PeerGroup& peers) {
  const DatasetInfo& info = whole.info();
  std::vector<Scalar> mine;
  peers.agree([&] {
    if (info.target_columns != 1) {
      throw ConfigError(fmt::format("{} needs one label, found {}", setting, info.target_columns));
    }
    const std::unique_ptr<ChunkReader> reader = whole.reader({});
    std::vector<std::byte> packed;
    const auto bytes = static_cast<std::size_t>(info.record_bytes);
    const Range share = split_evenly(std::ssize(whole.chunks()), peers.size(), peers.rank());
    for (Index i = share.begin; i < share.end; ++i) {
      const Index records = at(whole.chunks(), i).records.size();
      packed.resize(static_cast<std::size_t>(records) * bytes);
      reader->read(i, packed);
      const std::byte* label =
          packed.data() + bytes - static_cast<std::size_t>(info.label_columns()) * sizeof(Scalar);
      for (Index record = 0; record < records; ++record, label += bytes) {
        std::memcpy(&mine.emplace_back(), label, sizeof(Scalar));
        if (std::isnan(mine.back()))
          throw ConfigError(setting + " needs a label for each record, found none");
      }
    }
  });
  std::vector<Scalar> all;
  for (const Bytes& message : peers.all_gather(std::as_bytes(std::span(mine)))) {
    MessageReader reader(message);
    while (!reader.done()) all.push_back(reader.take<Scalar>());
  }
  return all;
}

FoldValues read_column(const FoldColumn& column, const DataOptions& data, const RecordSource& whole,
                       PeerGroup& peers) {
  peers.agree([&] {
    if (data.format == "csv") return;
    throw ConfigError(
        fmt::format("{} reads a column of a table (csv), and the data have the format '{}': they can be "
                    "divided by record or by class (stratified)",
                    column.setting, data.format));
  });
  const TableText table = open_table_text(whole.files(), data.table, peers);
  FoldValues values;
  MessageWriter mine;
  peers.agree([&] {
    const auto name = std::ranges::find(table.names, column.name);
    if (name == table.names.end()) {
      throw ConfigError(fmt::format("{}: there is no column {} in '{}'{}", column.setting,
                                    in_quotes(column.name), whole.info().name,
                                    suggestion(column.name, table.names)));
    }
    const Index position = name - table.names.begin();
    const std::vector<TableColumn> declared = declare_columns(data.table, table.names);
    if (at(declared, position).date) values.declared = at(declared, position).date->form;
    std::vector<RowColumn> columns(table.names.size());
    at(columns, position) = {.reading = Reading::kText};
    const std::vector<std::string> no_missing;
    TableReader reader(table, columns, 1, no_missing);
    const Range share = at(share_text_chunks(table.text, peers.size()), peers.rank());
    for (Index i = share.begin; i < share.end; ++i) {
      reader.for_each_record(
          at(table.text.chunks, i), [&](std::span<const Cell> cells) { mine.put_text(cells[0].text); },
          [&](const std::string&) { mine.put_text(""); });  // it is among those that were left out
    }
  });
  values.texts = without_skipped(peers.all_gather(mine.bytes()), whole.skipped());
  peers.agree([&] {
    if (std::ssize(values.texts) != whole.info().rows) {
      throw DataError(fmt::format("'{}' changed while it was read", whole.info().name));
    }
    refuse_empty(values.texts, column);
  });
  return values;
}

ValueOrder::ValueOrder(const FoldValues& values, const FoldColumn& column) {
  const auto all_dates = [&](DateForm form) {
    return std::ranges::all_of(
        values.texts, [form](const std::string& text) { return parse_date(text, form).has_value(); });
  };
  if (values.declared && all_dates(*values.declared)) {
    kind_ = Kind::kDate;
    form_ = *values.declared;
    return;
  }
  if (std::ranges::all_of(values.texts,
                          [](const std::string& text) { return parse_number(text).has_value(); })) {
    kind_ = Kind::kNumber;
    return;
  }
  std::vector<DateForm> forms;
  for (const DateForm form : {DateForm::kYmd, DateForm::kDmy, DateForm::kMdy, DateForm::kTime}) {
    if (all_dates(form)) forms.push_back(form);
  }
  if (forms.empty()) return;
  if (forms.front() == DateForm::kDmy && forms.size() > 1) {
    throw ConfigError(fmt::format(
        "{0}: the dates of column {1}, such as {2}, may have the day or the month first: say "
        "data.columns = [\"{3}: date(dmy)\"] or date(mdy)",
        column.setting, in_quotes(column.name), in_quotes(values.texts.front()), excerpt(column.name)));
  }
  kind_ = Kind::kDate;
  form_ = forms.front();
}

double ValueOrder::number_of(const std::string& text) const {
  return *(kind_ == Kind::kNumber ? parse_number(text) : parse_date(text, form_));
}

bool ValueOrder::operator()(const std::string& a, const std::string& b) const {
  return kind_ == Kind::kText ? a < b : number_of(a) < number_of(b);
}

}  // namespace lockstep
