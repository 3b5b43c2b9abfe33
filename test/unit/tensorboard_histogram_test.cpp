// A histogram as TensorBoard reads it, field by field: tensorboard/compat/proto/summary.proto.
#include "lockstep/report/live/run_output.h"

#include "lockstep/math/statistics.h"
#include "support/common.h"

namespace lockstep::tensorboard_histogram_test {

struct Histogram {
  std::map<int, double> numbers;              // fields 1 to 5: least, greatest, number, sum, sum of squares
  std::map<int, std::vector<double>> packed;  // fields 6 and 7: upper ends, counts
};

Histogram read(const std::string& bytes) {
  Histogram histogram;
  std::size_t at = 0;
  const auto real = [&] {
    double value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    at += sizeof value;
    return value;
  };
  const auto varint = [&] {
    std::size_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      value |= static_cast<std::size_t>(byte & 127U) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.size()) {
    const std::size_t key = varint();
    const auto field = static_cast<int>(key / 8);
    if (key % 8 == 1) {
      histogram.numbers[field] = real();
    } else {
      const std::size_t count = varint() / sizeof(double);
      for (std::size_t i = 0; i < count; ++i) histogram.packed[field].push_back(real());
    }
  }
  return histogram;
}

Histogram histogram_of(const std::map<Scalar, double>& counted) {
  std::vector<double> counts(static_cast<std::size_t>(kHistogramBins));
  for (const auto& [value, count] : counted) at(counts, histogram_bin(value)) += count;
  return read(histogram_message(counts));
}

// 1.2 is in the bin from 1 to 1.5, -2.5 in that from -3 to -2.
TEST(Histogram, SumsTheMiddlesOfItsBins) {
  const Histogram found = histogram_of({{1.2F, 3}, {-2.5F, 2}, {0, 5}});
  EXPECT_EQ(found.numbers.at(1), -3) << "the lower end of the first bin";
  EXPECT_EQ(found.numbers.at(2), 1.5) << "the upper end of the last one";
  EXPECT_EQ(found.numbers.at(3), 10);
  EXPECT_DOUBLE_EQ(found.numbers.at(4), 3 * 1.25 - 2 * 2.5);
  EXPECT_DOUBLE_EQ(found.numbers.at(5), 3 * 1.25 * 1.25 + 2 * 2.5 * 2.5);
}

TEST(Histogram, HasABinBelowTheFirstNumberAndNoneBehindTheLast) {
  const Histogram found = histogram_of({{1.2F, 3}, {4.5F, 2}});
  EXPECT_EQ(found.packed.at(6), (std::vector<double>{1, 1.5, 2, 3, 4, 6}));
  EXPECT_EQ(found.packed.at(7), (std::vector<double>{0, 3, 0, 0, 0, 2}));
  EXPECT_EQ(found.numbers.at(1), 1);
  EXPECT_EQ(found.numbers.at(2), 6);
  EXPECT_DOUBLE_EQ(found.numbers.at(4), 3 * 1.25 + 2 * 5);
}

// What is too large for the bins is in the outer ones, which are no wider than the others.
TEST(Histogram, OfTheOuterBinsIsFinite) {
  const double limit = std::ldexp(1.0, 20);
  const Histogram found = histogram_of({{1e30F, 1}, {-1e30F, 1}});
  EXPECT_EQ(found.numbers.at(2), histogram_limit(kHistogramBins - 1));
  EXPECT_EQ(found.numbers.at(2), limit);
  EXPECT_LE(found.numbers.at(1), -limit);
  EXPECT_EQ(found.numbers.at(3), 2);
  EXPECT_EQ(std::ssize(found.packed.at(6)), kHistogramBins + 1);
}

TEST(Histogram, OfNothingIsEmpty) {
  const Histogram found = histogram_of({});
  for (const int field : {1, 2, 3, 4, 5}) EXPECT_EQ(found.numbers.at(field), 0) << field;
  EXPECT_TRUE(found.packed.empty());
}

}  // namespace lockstep::tensorboard_histogram_test
