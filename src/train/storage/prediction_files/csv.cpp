// Text, one line for each row: its number from 0 on, the label (or one label for each output), then the
// values in the shortest form that is read as the same bits; what is not a number is "nan", whatever its
// sign. An unknown row has empty cells behind its number.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "lockstep/base/output_file.h"
#include "lockstep/train/storage/prediction_file.h"

namespace lockstep {
namespace {

Scalar without_sign_of_nan(Scalar value) {
  return std::isnan(value) ? std::abs(value) : value;
}

class CsvPredictions final : public PredictionFile {
 public:
  explicit CsvPredictions(const PredictionFileRequest& request)
      : columns_(request.columns), file_(request.path) {
    file_.write(header());
  }

  void append(const ConstMatrix& rows) override {
    std::string text;
    for (Index row = 0; row < rows.rows(); ++row) {
      fmt::format_to(std::back_inserter(text), "{}", row_++);
      for (Index i = 0; i < columns_.labels; ++i) {
        fmt::format_to(std::back_inserter(text), ",{}", static_cast<Index>(rows(row, i)));
      }
      for (Index i = columns_.labels; i < columns_.size(); ++i) {
        fmt::format_to(std::back_inserter(text), ",{}", without_sign_of_nan(rows(row, i)));
      }
      text += '\n';
    }
    file_.write(text);
  }

  void append_unknown() override {
    file_.write(fmt::format("{}{}\n", row_++, std::string(static_cast<std::size_t>(columns_.size()), ',')));
  }

  void finish() override { file_.commit(); }

 private:
  std::string header() const {
    std::string text = columns_.labels == 1 ? "row,label" : "row";
    for (Index i = 0; i < columns_.labels && columns_.labels > 1; ++i) text += fmt::format(",label{}", i);
    for (Index i = 0; i < columns_.values; ++i) text += fmt::format(",{}", name_of_value(i));
    return text + "\n";
  }

  // "p0"; of levels "q0.1", and where there are several targets "p0_q0.1".
  std::string name_of_value(Index i) const {
    if (columns_.quantiles.empty()) return fmt::format("p{}", i);
    const Index levels = std::ssize(columns_.quantiles);
    const std::string level = fmt::format("q{}", at(columns_.quantiles, i % levels));
    return columns_.values == levels ? level : fmt::format("p{}_{}", i / levels, level);
  }

  PredictionColumns columns_;
  OutputFile file_;
  Index row_ = 0;
};

}  // namespace

PredictionFileEntry csv_predictions() {
  return {
      .name = "csv",
      .extension = ".csv",
      .help = "text: the number of the row, its label and its probabilities",
      .make = [](const PredictionFileRequest& request) { return std::make_unique<CsvPredictions>(request); }};
}

}  // namespace lockstep
