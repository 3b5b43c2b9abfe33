#include "lockstep/data/dense_records.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace lockstep {
namespace {

// A division, as a product that is faster.
constexpr Scalar as_share_of_255(std::uint8_t value) {
  return static_cast<Scalar>(value * (1 / 255.0));
}

consteval bool equals_division() {
  for (int value = 0; value < 256; ++value) {
    if (as_share_of_255(static_cast<std::uint8_t>(value)) != static_cast<Scalar>(value) / Scalar{255}) {
      return false;
    }
  }
  return true;
}
static_assert(equals_division());

void copy_features(const std::uint8_t* from, Index count, Scalar* to) {
  for (Index i = 0; i < count; ++i) to[i] = as_share_of_255(from[i]);
}

void copy_features(const Scalar* from, Index count, Scalar* to) {
  std::copy_n(from, count, to);
}

// Asks for the memory of a record that will be copied soon: records come in random order.
template <class T>
void prefetch(const T* from, Index count) {
  constexpr Index kLine = 64 / sizeof(T);
  for (Index i = 0; i < count; i += kLine) __builtin_prefetch(from + i);
}

template <class T>
Index vector_bytes(const std::vector<T>& values) {
  return static_cast<Index>(values.capacity() * sizeof(T));
}

}  // namespace

DenseRecords::DenseRecords(IdSet ids, Index feature_count, Index target_count, Features features,
                           std::vector<Scalar> targets)
    : ids_(std::move(ids)),
      feature_count_(feature_count),
      target_count_(target_count),
      features_(std::move(features)),
      targets_(std::move(targets)) {
  assert(static_cast<Index>(targets_.size()) == ids_.size() * target_count_);
}

Index DenseRecords::bytes() const {
  const Index features = std::visit([](const auto& values) { return vector_bytes(values); }, features_);
  return ids_.bytes() + features + vector_bytes(targets_);
}

void DenseRecords::gather(std::span<const Index> ids, Matrix& x, Matrix& targets) const {
  const auto gather_from = [&](const auto& features) {
    constexpr std::size_t kAhead = 4;
    for (Index row = 0; row < static_cast<Index>(ids.size()); ++row) {
      const auto later = static_cast<std::size_t>(row) + kAhead;
      if (later < ids.size())
        prefetch(features.data() + ids_.place(ids[later]) * feature_count_, feature_count_);
      const Index place = ids_.place(ids[static_cast<std::size_t>(row)]);
      copy_features(features.data() + place * feature_count_, feature_count_,
                    x.data() + row * feature_count_);
      std::copy_n(targets_.data() + place * target_count_, target_count_,
                  targets.data() + row * target_count_);
    }
  };
  std::visit(gather_from, features_);
}

}  // namespace lockstep
