// A float array of rows x columns of numbers for numpy.load, without classes. An unknown row is NaN.
#include <cassert>
#include <limits>
#include <string_view>
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
    }
    file_.write(npy_header({{request.rows, std::ssize(numbers_)}}));
  }

  void append(const ConstMatrix& rows) override {
    rows_left_ -= rows.rows();
    std::vector<Scalar> values;
    for (Index row = 0; row < rows.rows(); ++row) {
      for (const Index i : numbers_) values.push_back(rows(row, i));
    }
    write(values);
  }

  void append_unknown() override {
    --rows_left_;
    write(std::vector<Scalar>(numbers_.size(), std::numeric_limits<Scalar>::quiet_NaN()));
  }

  void finish() override {
    assert(rows_left_ == 0);
    file_.commit();
  }

 private:
  void write(const std::vector<Scalar>& values) {
    file_.write({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Scalar)});
  }

  std::vector<Index> numbers_;  // columns that hold them
  Index rows_left_;
  OutputFile file_;
};

}  // namespace

PredictionFileEntry npy_predictions() {
  return {
      .name = "npy",
      .extension = ".npy",
      .help = "a numpy array of floats: the probabilities or values of each row",
      .has_texts = false,
      .make = [](const PredictionFileRequest& request) { return std::make_unique<NpyPredictions>(request); }};
}

}  // namespace lockstep
