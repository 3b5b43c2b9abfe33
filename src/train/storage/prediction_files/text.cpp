// Text, one line for each row: its number from 0 on, the columns of the input that are kept, then classes by
// name and values in the shortest form that is read as the same bits in single precision, or with the digits
// that their column needs. Of an unknown row only the first two
// are known.
//
// In CSV a header names the columns. What is not a number is "nan", whatever its sign, and what is unknown an
// empty cell. JSON lines have an object for each row with the same names, and null for what is no finite
// number, or unknown.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>

#include "lockstep/base/json.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/train/storage/prediction_file.h"

namespace lockstep {
namespace {

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

}  // namespace

PredictionFileEntry csv_predictions() {
  return {.name = "csv",
          .extension = ".csv",
          .help = "text: the number of the row, its class or values, and its probabilities",
          .make = [](const PredictionFileRequest& request) {
            return std::make_unique<TextPredictions>(request, kCsv);
          }};
}

PredictionFileEntry jsonl_predictions() {
  return {.name = "jsonl",
          .extension = ".jsonl",
          .help = "JSON lines: an object for each row, with the same names as the columns of CSV",
          .make = [](const PredictionFileRequest& request) {
            return std::make_unique<TextPredictions>(request, kJsonLines);
          }};
}

}  // namespace lockstep
