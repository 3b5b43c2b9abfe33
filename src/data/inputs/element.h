// The numbers that binary files hold, and how they become scalars.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "lockstep/base/types.h"

namespace lockstep {

struct Element {
  std::string_view name;  ///< "u8", "i32", "f64", "bool"
  Index bytes;
  /// The scalars that `bytes` hold; as many as fit into `values`.
  void (*decode)(const std::byte* bytes, std::span<Scalar> values);
  /// One of them in full, for messages: a scalar may be too small for it.
  double (*number)(const std::byte* bytes);

  /// A byte that features keep as it is, to be scaled to [0, 1] when it is used: a quarter of the memory.
  bool is_byte() const { return name == "u8"; }
};

enum class ByteOrder { kLittle, kBig };

/// Finds an element by name: u8 i8 u16 i16 u32 i32 u64 i64 f16 f32 f64 bool; null for another.
const Element* find_element(std::string_view name, ByteOrder order);

}  // namespace lockstep
