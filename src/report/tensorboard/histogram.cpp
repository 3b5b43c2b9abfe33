#include "histogram.h"

#include <vector>

#include "lockstep/math/histogram_bins.h"

namespace lockstep {
namespace {

std::string packed(const std::vector<double>& values) {
  ProtobufMessage message;
  for (const double value : values) message.packed_real(value);
  return message.bytes();
}

double lower_end(Index bin) {
  return bin > 0 ? histogram_limit(bin - 1) : 2 * histogram_limit(0);
}

}  // namespace

ProtobufMessage histogram_message(std::span<const double> counts) {
  std::vector<double> limits;
  std::vector<double> shown;
  double least = 0;
  double greatest = 0;
  double number = 0;
  double sum = 0;
  double squares = 0;
  for (Index bin = 0; bin < std::ssize(counts); ++bin) {
    const double count = at(counts, bin);
    const bool first = number == 0;
    if (count == 0 && first) continue;
    if (first) {  // the bins begin where the numbers do
      least = lower_end(bin);
      limits.push_back(least);
      shown.push_back(0);
    }
    limits.push_back(histogram_limit(bin));
    shown.push_back(count);
    if (count == 0) continue;
    const double middle = (lower_end(bin) + histogram_limit(bin)) / 2;
    greatest = histogram_limit(bin);
    number += count;
    sum += count * middle;
    squares += count * middle * middle;
  }
  while (!shown.empty() && shown.back() == 0) {
    shown.pop_back();
    limits.pop_back();
  }
  return ProtobufMessage()
      .real(1, least)
      .real(2, greatest)
      .real(3, number)
      .real(4, sum)
      .real(5, squares)
      .text(6, packed(limits))
      .text(7, packed(shown));
}

}  // namespace lockstep
