// Values as bytes, for messages between ranks about a table. Never stored, so all sides have one build.
#pragma once

#include <cassert>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "lockstep/data/peer_group.h"

namespace lockstep {

class MessageWriter {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void put(const T& value) { append(&value, sizeof value); }
  void put_text(std::string_view text) {
    put(text.size());
    append(text.data(), text.size());
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  void append(const void* from, std::size_t count) {
    const std::size_t before = bytes_.size();
    bytes_.resize(before + count);
    if (count > 0) std::memcpy(bytes_.data() + before, from, count);
  }
  Bytes bytes_;
};

/// Takes out what was put in, in the same order.
class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }
  template <class T>
  requires std::is_trivially_copyable_v<T> T take() {
    T value;
    std::memcpy(&value, next(sizeof value), sizeof value);
    return value;
  }
  std::string take_text() {
    const auto length = take<std::size_t>();
    return length == 0 ? "" : std::string(reinterpret_cast<const char*>(next(length)), length);
  }

 private:
  const std::byte* next(std::size_t count) {
    assert(count <= rest_.size());
    const std::byte* first = rest_.data();
    rest_ = rest_.subspan(count);
    return first;
  }
  std::span<const std::byte> rest_;
};

}  // namespace lockstep
