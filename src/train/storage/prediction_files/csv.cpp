// Text, one line for each row: its number from 0 on, the columns of the input that are kept, then classes by
// name and values in the shortest form that is read as the same bits; what is not a number is "nan", whatever
// its sign. An unknown row has empty cells behind those.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "lockstep/base/output_file.h"
#include "lockstep/base/text.h"
#include "lockstep/train/storage/prediction_file.h"

namespace lockstep {
namespace {

Scalar without_sign_of_nan(Scalar value) {
  return std::isnan(value) ? std::abs(value) : value;
}

class CsvPredictions final : public PredictionFile {
 public:
  explicit CsvPredictions(const PredictionFileRequest& request)
      : columns_(request.columns), kept_(request.kept), file_(request.path) {
    std::string header;
    for (const std::string& name : names_of_columns(request)) {
      if (!header.empty()) header += ',';
      header += csv_cell(name);
    }
    header += '\n';
    file_.write(header);
    for (const PredictionColumn& column : columns_) {
      std::vector<std::string>& cells = classes_.emplace_back();
      for (Index i = 0; column.classes && i < std::ssize(*column.classes); ++i) {
        cells.push_back(csv_cell(at(*column.classes, i)));
      }
    }
  }

  void append(const ConstMatrix& rows) override {
    std::string text;
    for (Index row = 0; row < rows.rows(); ++row) {
      begin(text);
      for (Index i = 0; i < rows.cols(); ++i) {
        text += ',';
        if (at(columns_, i).classes) {
          text += at(at(classes_, i), static_cast<Index>(rows(row, i)));
        } else {
          fmt::format_to(std::back_inserter(text), "{}", without_sign_of_nan(rows(row, i)));
        }
      }
      text += '\n';
    }
    file_.write(text);
  }

  void append_unknown() override {
    std::string text;
    begin(text);
    text.append(columns_.size(), ',');
    text += '\n';
    file_.write(text);
  }

  void finish() override { file_.commit(); }

 private:
  void begin(std::string& text) {
    fmt::format_to(std::back_inserter(text), "{}", row_++);
    if (kept_ == nullptr) return;
    for (const std::string& cell : kept_->next()) {
      text += ',';
      text += csv_cell(cell);
    }
  }

  std::vector<PredictionColumn> columns_;
  KeptColumns* kept_;
  OutputFile file_;
  std::vector<std::vector<std::string>> classes_;  // cells by class number, of each column
  Index row_ = 0;
};

}  // namespace

PredictionFileEntry csv_predictions() {
  return {
      .name = "csv",
      .extension = ".csv",
      .help = "text: the number of the row, its class or values, and its probabilities",
      .make = [](const PredictionFileRequest& request) { return std::make_unique<CsvPredictions>(request); }};
}

}  // namespace lockstep
