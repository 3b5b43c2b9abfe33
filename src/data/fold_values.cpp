#include "fold_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/process.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/data/load_records.h"
#include "lockstep/data/table/text/table_text.h"
#include "lockstep/data/table/values/message.h"
#include "lockstep/data/table/values/number.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {
namespace {

void refuse_empty(const std::vector<std::string>& values, const ValidationPart& part) {
  const auto empty = std::ranges::find(values, std::string());
  if (empty == values.end()) return;
  throw ConfigError(
      fmt::format("{}: column {} is empty in record {} (counted from 0), expected a value in each",
                  part.setting, in_quotes(part.column), with_commas(empty - values.begin())));
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
                                const ValidationPart& part) {
  RecordsByClass classes;
  const KeyedPermutation order(std::ssize(targets), {.seed = seed, .purpose = Purpose::kFold});
  for (Index position = 0; position < std::ssize(targets); ++position) {
    const Index id = order.inverse(position);
    classes[at(targets, id)].push_back(id);
  }
  constexpr std::size_t kMaxClasses = 1000;
  if (classes.size() > kMaxClasses) {
    ValidationPart instead = part;
    instead.by = ValidationPart::By::kRecord;
    throw ConfigError(fmt::format(
        "{}: the label has {} different values, expected classes, {} at most; {} takes records of any kind",
        part.setting, with_commas(std::ssize(classes)), with_commas(kMaxClasses), to_string(instead)));
  }
  return classes;
}

void for_each_target(const RecordSource& source, const TargetRule& rule, const PeerGroup& peers,
                     const std::function<void(std::span<const Scalar>)>& use) {
  const DatasetInfo& info = source.info();
  std::vector<Scalar> features(static_cast<std::size_t>(info.features.size()));
  std::vector<Scalar> labels(static_cast<std::size_t>(info.label_columns()));
  Matrix x(features.data(), 1, info.features.size());
  Matrix y(labels.data(), 1, info.label_columns());
  Bytes packed;
  const auto unpack = [&](Range ids) {
    for (Index id = ids.begin; id < ids.end; ++id) {
      const std::byte* record = packed.data() + (id - ids.begin) * info.record_bytes;
      source.unpack({&id, 1}, {&record, 1}, x, y);
      use(std::span(labels).first(static_cast<std::size_t>(info.target_columns)));
    }
  };
  const std::unique_ptr<ChunkReader> reader = source.reader(rule);
  if (info.record_bytes == 0) return unpack(split_evenly(info.rows, peers.size(), peers.rank()));
  const Range share = at(share_chunks(source.chunks(), peers.size()), peers.rank());
  for (Index chunk = share.begin; chunk < share.end; ++chunk) {
    throw_if_stopped();
    const Range records = at(source.chunks(), chunk).records;
    packed.resize(static_cast<std::size_t>(records.size() * info.record_bytes));
    reader->read(chunk, packed);
    unpack(records);
  }
}

std::vector<Scalar> read_targets(const RecordSource& whole, const ValidationPart& part, PeerGroup& peers) {
  std::vector<Scalar> mine;
  peers.agree([&] {
    const Index columns = whole.info().target_columns;
    if (columns != 1) throw ConfigError(fmt::format("{} needs one label, found {}", part.setting, columns));
    for_each_target(whole, {}, peers, [&](std::span<const Scalar> targets) {
      mine.push_back(targets.front());
      if (std::isnan(mine.back()))
        throw ConfigError(part.setting + " needs a label for each record, found none");
    });
  });
  std::vector<Scalar> all;
  for (const Bytes& message : peers.all_gather(std::as_bytes(std::span(mine)))) {
    MessageReader reader(message);
    while (!reader.done()) all.push_back(reader.take<Scalar>());
  }
  return all;
}

FoldValues read_column(const ValidationPart& part, const DataOptions& data, const RecordSource& whole,
                       PeerGroup& peers) {
  peers.agree([&] {
    if (data.format == "csv") return;
    throw ConfigError(
        fmt::format("{} reads a column of a table (csv), and the data have the format '{}': they can be "
                    "divided by record or by class (stratified)",
                    part.setting, data.format));
  });
  const TableText table = open_table_text(whole.files(), data.table, peers);
  FoldValues values;
  MessageWriter mine;
  peers.agree([&] {
    const auto name = std::ranges::find(table.names, part.column);
    if (name == table.names.end()) {
      throw ConfigError(fmt::format("{}: there is no column {} in '{}'{}", part.setting,
                                    in_quotes(part.column), whole.info().name,
                                    suggestion(part.column, table.names)));
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
    refuse_empty(values.texts, part);
  });
  return values;
}

ValueOrder::ValueOrder(const FoldValues& values, const ValidationPart& part) {
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
        part.setting, in_quotes(part.column), in_quotes(values.texts.front()), excerpt(part.column)));
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
