// An array of rows x columns of numbers for numpy.load, without classes: of floats or, where a column has
// more digits, of doubles; by position of records x positions x columns. An unknown row, or one of padding,
// is NaN.
#include <algorithm>
#include <cassert>
#include <limits>
#include <vector>

#include "lockstep/base/output_file.h"
#include "lockstep/train/storage/prediction_file.h"
#include "train/storage/npy_header.h"

namespace lockstep {
namespace {

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

PredictionFileEntry npy_predictions() {
  return {
      .name = "npy",
      .extension = ".npy",
      .help =
          "a numpy array of floats (of doubles for labels far from 0): the probabilities or values of each "
          "row",
      .has_texts = false,
      .make = [](const PredictionFileRequest& request) { return std::make_unique<NpyPredictions>(request); }};
}

}  // namespace lockstep
