#include "lockstep/train/storage/prediction_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/data/table/text/table_text.h"
#include "train/storage/npy_header.h"

namespace lockstep {
namespace {

// Text, one line for each row: its number from 0 on, the columns of the input that are kept, then classes by
// name and values in the shortest form that is read as the same bits in single precision, or with the digits
// that their column needs. Of an unknown row only the first two are known.
//
// In CSV a header names the columns. What is not a number is "nan", whatever its sign, and what is unknown an
// empty cell. JSON lines have an object for each row with the same names, and null for what is no finite
// number, or unknown.

struct RowStyle {
  std::string (*cell)(const std::string& text);
  const char* nan;  // stands for what is no number; null: for what is no finite number, too, it is unknown
  const char* begin;
  const char* end;
  const char* unknown;
  bool names_cells;  // the name of its column stands before each cell; else a header has the names
};

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

constexpr RowStyle kCsv{.cell = [](const std::string& text) { return csv_cell(text); },
                        .nan = "nan",
                        .begin = "",
                        .end = "\n",
                        .unknown = "",
                        .names_cells = false};

constexpr RowStyle kJsonLines{
    .cell = json_text, .nan = nullptr, .begin = "{", .end = "}\n", .unknown = "null", .names_cells = true};

std::string number_text(double value, int digits) {
  if (digits == 0) return fmt::format("{}", static_cast<Scalar>(value));
  return digits < std::numeric_limits<double>::max_digits10 ? fmt::format("{:.{}g}", value, digits)
                                                            : fmt::format("{}", value);
}

class TextPredictions final : public PredictionFile {
 public:
  TextPredictions(const PredictionFileRequest& request, const RowStyle& style)
      : style_(style), columns_(request.columns), kept_(request.kept), file_(request.path) {
    std::string header;
    for (const std::string& name : names_of_columns(request)) {
      const std::string cell = (before_.empty() ? "" : ",") + style.cell(name);
      before_.push_back(style.names_cells ? cell + ":" : before_.empty() ? "" : ",");
      header += cell;
    }
    if (!style.names_cells) file_.write(header + style.end);
    for (const PredictionColumn& column : columns_) {
      std::vector<std::string>& cells = classes_.emplace_back();
      for (Index i = 0; column.classes && i < std::ssize(*column.classes); ++i)
        cells.push_back(style.cell(at(*column.classes, i)));
    }
  }

  void append(const PredictedRows& rows) override {
    std::string text;
    for (Index row = 0; row < rows.rows(); ++row) {
      std::size_t cell = begin(text);
      for (Index i = 0; i < rows.cols(); ++i) {
        text += before_[cell++];
        if (at(columns_, i).classes) {
          text += at(at(classes_, i), static_cast<Index>(rows(row, i)));
        } else {
          text += cell_of(rows(row, i), at(columns_, i).digits);
        }
      }
      text += style_.end;
    }
    file_.write(text);
  }

  void append_unknown() override {
    std::string text;
    for (std::size_t cell = begin(text); cell < before_.size(); ++cell)
      text += before_[cell] + style_.unknown;
    file_.write(text + style_.end);
  }

  void finish() override { file_.commit(); }

 private:
  std::string cell_of(double value, int digits) const {
    if (std::isfinite(value) || (style_.nan != nullptr && !std::isnan(value)))
      return number_text(value, digits);
    return style_.nan != nullptr ? style_.nan : style_.unknown;
  }

  // The number of the cell that comes next.
  std::size_t begin(std::string& text) {
    std::size_t cell = 0;
    fmt::format_to(std::back_inserter(text), "{}{}{}", style_.begin, before_[cell++], row_++);
    if (kept_ == nullptr) return cell;
    for (const std::string& kept : kept_->next())
      text += before_[cell++] + (kept_->are_numbers() ? kept : style_.cell(kept));
    return cell;
  }

  const RowStyle& style_;
  std::vector<PredictionColumn> columns_;
  TextColumns* kept_;
  OutputFile file_;
  std::vector<std::string> before_;                // what stands before each cell of a row
  std::vector<std::vector<std::string>> classes_;  // cells by class number, of each column
  Index row_ = 0;
};

// An array of rows x columns of numbers for numpy.load, without classes: of floats or, where a column has
// more digits, of doubles; by position of records x positions x columns. An unknown row, or one of padding,
// is NaN.

class NpyPredictions final : public PredictionFile {
 public:
  explicit NpyPredictions(const PredictionFileRequest& request)
      : rows_left_(request.rows), file_(request.path) {
    for (Index i = 0; i < std::ssize(request.columns); ++i) {
      if (!at(request.columns, i).classes) numbers_.push_back(i);
      doubles_ |= at(request.columns, i).digits > 0;
    }
    Shape shape{{request.rows, std::ssize(numbers_)}};
    if (request.positions > 0)
      shape = {{request.rows / request.positions, request.positions, std::ssize(numbers_)}};
    file_.write(npy_header(shape, doubles_));
  }

  void append(const PredictedRows& rows) override {
    rows_left_ -= rows.rows();
    std::vector<double> values;
    for (Index row = 0; row < rows.rows(); ++row) {
      for (const Index i : numbers_) values.push_back(rows(row, i));
    }
    write(values);
  }

  void append_unknown() override {
    --rows_left_;
    write(std::vector<double>(numbers_.size(), std::numeric_limits<double>::quiet_NaN()));
  }

  void finish() override {
    assert(rows_left_ == 0);
    file_.commit();
  }

 private:
  template <class Number>
  void write_bytes(const std::vector<Number>& values) {
    file_.write({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number)});
  }
  void write(const std::vector<double>& values) {
    if (doubles_) return write_bytes(values);
    std::vector<Scalar> floats(values.size());
    std::ranges::transform(values, floats.begin(), [](double value) { return static_cast<Scalar>(value); });
    write_bytes(floats);
  }

  std::vector<Index> numbers_;  // columns that hold them
  bool doubles_ = false;
  Index rows_left_;
  OutputFile file_;
};

}  // namespace

void PredictionLines::append(const ConstMatrix& rows) {
  Index begin = 0;
  while (begin < rows.rows()) {
    pass_skipped();
    const Index available = skipped_.empty() ? rows.rows() : skipped_.front() - next_;
    const Index count = std::min(available, rows.rows() - begin);
    const ConstMatrix part(rows.data() + begin * rows.cols(), count, rows.cols());
    const PredictedRows converted = table_.convert(part);
    note_bad_rows(part, converted);
    file_.append(converted);
    next_ += count;
    begin += count;
  }
}

void PredictionLines::finish() {
  pass_skipped();
  file_.finish();
}

void PredictionLines::note_bad_rows(const ConstMatrix& rows, const PredictedRows& converted) {
  constexpr auto kIsFinite = [](auto value) { return std::isfinite(value); };
  for (Index row = 0; row < rows.rows(); ++row) {
    if (is_padding(rows, row)) continue;
    if (std::ranges::all_of(rows_of(rows, {row, row + 1}).values(), kIsFinite) &&
        std::ranges::all_of(rows_of(converted, {row, row + 1}).values(), kIsFinite))
      continue;
    if (bad_rows_.count++ == 0) bad_rows_.first = next_ + row;
  }
}

void PredictionLines::pass_skipped() {
  for (; !skipped_.empty() && skipped_.front() == next_; skipped_ = skipped_.subspan(1), ++next_) {
    file_.append_unknown();
  }
}

// Text comes first.
std::span<const PredictionFileEntry> prediction_file_catalog() {
  static const std::vector<PredictionFileEntry> kEntries{
      {.name = "csv",
       .extension = ".csv",
       .help = "text: the number of the row, its class or values, and its probabilities",
       .make =
           [](const PredictionFileRequest& request) {
             return std::make_unique<TextPredictions>(request, kCsv);
           }},
      {.name = "jsonl",
       .extension = ".jsonl",
       .help = "JSON lines: an object for each row, with the same names as the columns of CSV",
       .make =
           [](const PredictionFileRequest& request) {
             return std::make_unique<TextPredictions>(request, kJsonLines);
           }},
      {.name = "npy",
       .extension = ".npy",
       .help =
           "a numpy array of floats (of doubles for labels far from 0): the probabilities or values of each "
           "row",
       .has_texts = false,
       .make = [](const PredictionFileRequest& request) {
         return std::make_unique<NpyPredictions>(request);
       }}};
  return kEntries;
}

namespace {

const PredictionFileEntry* find_by_extension(const std::string& path) {
  for (const PredictionFileEntry& entry : prediction_file_catalog()) {
    if (ends_as(path, entry.extension)) return &entry;
  }
  return nullptr;
}

}  // namespace

const PredictionFileEntry& choose_prediction_file(const std::string& path, const std::string& format) {
  const PredictionFileEntry* const found = find_by_extension(path);
  if (!format.empty()) {
    const PredictionFileEntry& named = find_entry(prediction_file_catalog(), "format of predictions", format);
    if (found == nullptr || found == &named) return named;
    throw ConfigError("--format {} does not fit the end of --output '{}': leave one of them out", format,
                      path);
  }
  if (found != nullptr) return *found;
  if (is_stream(path)) return prediction_file_catalog().front();
  std::vector<std::string> known;
  for (const PredictionFileEntry& entry : prediction_file_catalog()) known.push_back(entry.extension);
  throw ConfigError("--output '{}': expected a name that ends in {}, or - for standard output, or --format",
                    path, fmt::join(known, " or "));
}

std::vector<std::string> names_of_columns(const PredictionFileRequest& request) {
  std::vector<std::string> names{"row"};
  if (request.kept != nullptr) {
    for (const std::string& name : request.kept->names()) names.push_back(name);
  }
  for (const PredictionColumn& column : request.columns) names.push_back(column.name);
  return distinct_names(names);
}

}  // namespace lockstep
