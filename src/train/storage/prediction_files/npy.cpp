// A float array of rows x outputs for numpy.load; the label of a row is its largest element. An unknown row
// is NaN.
#include <cassert>
#include <limits>
#include <string_view>
#include <vector>

#include "../npy_header.h"
#include "lockstep/base/output_file.h"
#include "lockstep/train/storage/prediction_file.h"

namespace lockstep {
namespace {

class NpyPredictions final : public PredictionFile {
 public:
  explicit NpyPredictions(const PredictionFileRequest& request)
      : columns_(request.columns), rows_left_(request.rows), file_(request.path) {
    file_.write(npy_header({{request.rows, request.columns.values}}));
  }

  void append(const ConstMatrix& rows) override {
    rows_left_ -= rows.rows();
    for (Index row = 0; row < rows.rows(); ++row) {
      const Scalar* values = rows.data() + row * rows.cols() + columns_.labels;
      file_.write({reinterpret_cast<const char*>(values),
                   static_cast<std::size_t>(columns_.values) * sizeof(Scalar)});
    }
  }

  void append_unknown() override {
    --rows_left_;
    const std::vector<Scalar> values(static_cast<std::size_t>(columns_.values),
                                     std::numeric_limits<Scalar>::quiet_NaN());
    file_.write({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Scalar)});
  }

  void finish() override {
    assert(rows_left_ == 0);
    file_.commit();
  }

 private:
  PredictionColumns columns_;
  Index rows_left_;
  OutputFile file_;
};

}  // namespace

PredictionFileEntry npy_predictions() {
  return {
      .name = "npy",
      .extension = ".npy",
      .help = "a numpy array of floats: the probabilities of each row",
      .make = [](const PredictionFileRequest& request) { return std::make_unique<NpyPredictions>(request); }};
}

}  // namespace lockstep
