// JSON lines: an object for each row, with the names of the columns of a CSV file. What is kept of the input
// are texts, classes are their names, and what is no finite number is null, as is all of an unknown row.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "lockstep/base/json.h"
#include "lockstep/base/output_file.h"
#include "lockstep/train/storage/prediction_file.h"

namespace lockstep {
namespace {

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class JsonPredictions final : public PredictionFile {
 public:
  explicit JsonPredictions(const PredictionFileRequest& request)
      : columns_(request.columns), kept_(request.kept), file_(request.path) {
    for (const std::string& name : names_of_columns(request))
      keys_.push_back(fmt::format("{}:", json_text(name)));
    for (const PredictionColumn& column : columns_) {
      std::vector<std::string>& texts = classes_.emplace_back();
      for (Index i = 0; column.classes && i < std::ssize(*column.classes); ++i) {
        texts.push_back(json_text(at(*column.classes, i)));
      }
    }
  }

  void append(const ConstMatrix& rows) override {
    std::string text;
    for (Index row = 0; row < rows.rows(); ++row) {
      const std::size_t first = begin(text);
      for (Index i = 0; i < rows.cols(); ++i) {
        const Scalar value = rows(row, i);
        const std::size_t key = first + static_cast<std::size_t>(i);
        if (at(columns_, i).classes) {
          add(text, key, at(at(classes_, i), static_cast<Index>(value)));
        } else {
          add(text, key, std::isfinite(value) ? fmt::format("{}", value) : "null");
        }
      }
      text += "}\n";
    }
    file_.write(text);
  }

  void append_unknown() override {
    std::string text;
    for (std::size_t key = begin(text); key < keys_.size(); ++key) add(text, key, "null");
    text += "}\n";
    file_.write(text);
  }

  void finish() override { file_.commit(); }

 private:
  // The number of the key that comes next.
  std::size_t begin(std::string& text) {
    std::size_t key = 0;
    fmt::format_to(std::back_inserter(text), "{{{}{}", keys_[key++], row_++);
    if (kept_ == nullptr) return key;
    for (const std::string& cell : kept_->next()) add(text, key++, json_text(cell));
    return key;
  }

  void add(std::string& text, std::size_t key, const std::string& value) const {
    text += ',';
    text += keys_[key];
    text += value;
  }

  std::vector<PredictionColumn> columns_;
  KeptColumns* kept_;
  OutputFile file_;
  std::vector<std::string> keys_;
  std::vector<std::vector<std::string>> classes_;  // texts by class number, of each column
  Index row_ = 0;
};

}  // namespace

PredictionFileEntry jsonl_predictions() {
  return {.name = "jsonl",
          .extension = ".jsonl",
          .help = "JSON lines: an object for each row, with the same names as the columns of CSV",
          .make = [](const PredictionFileRequest& request) {
            return std::make_unique<JsonPredictions>(request);
          }};
}

}  // namespace lockstep
