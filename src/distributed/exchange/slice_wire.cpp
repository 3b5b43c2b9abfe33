#include "lockstep/distributed/exchange/slice_wire.h"

#include <algorithm>
#include <cstring>

#include "lockstep/math/matrix.h"

namespace lockstep {

SliceWire::SliceWire(Wire& wire, Range slice, Index loss_place, bool error_feedback)
    : wire_(&wire),
      begin_(slice.begin),
      loss_place_(loss_place),
      gradients_(static_cast<std::size_t>(intersect(slice, {0, loss_place}).size())),
      wire_bytes_(static_cast<std::size_t>(wire.bytes(static_cast<Index>(gradients_)))),
      exact_(static_cast<std::size_t>(slice.size()) - gradients_),
      error_feedback_(error_feedback) {}

Index SliceWire::bytes() const {
  return static_cast<Index>(wire_bytes_ + exact_ * sizeof(Scalar));
}

void SliceWire::encode(std::span<const Scalar> values, std::span<std::byte> message) {
  if (exact_ > 0) std::memcpy(&message[wire_bytes_], &values[gradients_], exact_ * sizeof(Scalar));
  const std::span<const Scalar> gradients = values.first(gradients_);
  const std::span<std::byte> encoded = message.first(wire_bytes_);
  if (!error_feedback_) {
    wire_->encode(gradients, encoded);
    return;
  }
  make_lost();
  as_array(lost_.span()) += as_array(gradients);
  wire_->encode(lost_.span(), encoded);
  wire_->add(encoded, -1, lost_.span());
}

void SliceWire::make_lost() {
  if (lost_.size() == 0) lost_ = AlignedBuffer<Scalar>(static_cast<Index>(gradients_));
}

void SliceWire::add_saved(SavedState& state, const std::string& array) {
  if (!error_feedback_ || gradients_ == 0) return;
  make_lost();
  const Range range{begin_, begin_ + lost_.size()};
  state.push_back({.array = array,
                   .size = loss_place_,
                   .range = range,
                   .memory = as_buffer(lost_.span()),
                   .written = range,
                   .optional = true});
}

void SliceWire::add(std::span<const std::byte> message, std::span<Scalar> values) const {
  wire_->add(message.first(wire_bytes_), 1, values.first(gradients_));
  for (std::size_t i = 0; i < exact_; ++i) {
    Scalar value = 0;
    std::memcpy(&value, &message[wire_bytes_ + i * sizeof value], sizeof value);
    values[gradients_ + i] += value;
  }
}

void SliceWire::decode(std::span<const std::byte> message, std::span<Scalar> values) const {
  std::ranges::fill(values, Scalar{0});
  add(message, values);
}

Index message_bytes(const Plan& plan, const DistOptions& options) {
  const std::unique_ptr<Wire> wire = make_wire(options);
  if (wire == nullptr) return plan.gradient_size * Index{sizeof(Scalar)};
  Index bytes = 0;
  for (const std::vector<Range>& slices : plan.slices) {
    for (const Range slice : slices) bytes += SliceWire(*wire, slice, plan.loss_place, false).bytes();
  }
  return bytes;
}

}  // namespace lockstep
