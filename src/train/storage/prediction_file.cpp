#include "lockstep/train/storage/prediction_file.h"

#include <algorithm>
#include <cmath>

namespace lockstep {

void PredictionLines::append(const ConstMatrix& rows) {
  Index begin = 0;
  while (begin < rows.rows()) {
    pass_skipped();
    const Index available = skipped_.empty() ? rows.rows() : skipped_.front() - next_;
    const Index count = std::min(available, rows.rows() - begin);
    const ConstMatrix part(rows.data() + begin * rows.cols(), count, rows.cols());
    note_bad_rows(part);
    file_.append(table_.convert(part));
    next_ += count;
    begin += count;
  }
}

void PredictionLines::finish() {
  pass_skipped();
  file_.finish();
}

void PredictionLines::note_bad_rows(const ConstMatrix& rows) {
  for (Index row = 0; row < rows.rows(); ++row) {
    const std::span<const Scalar> values(rows.data() + row * rows.cols(),
                                         static_cast<std::size_t>(rows.cols()));
    if (std::ranges::all_of(values, [](Scalar value) { return std::isfinite(value); })) continue;
    if (bad_rows_.count++ == 0) bad_rows_.first = next_ + row;
  }
}

void PredictionLines::pass_skipped() {
  for (; !skipped_.empty() && skipped_.front() == next_; skipped_ = skipped_.subspan(1), ++next_) {
    file_.append_unknown();
  }
}

}  // namespace lockstep
