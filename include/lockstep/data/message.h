// Values as bytes, for messages between ranks about data. Never stored, so all sides have one build.
//
// A message takes numbers, texts, and lists and sets of what it takes. A type of several fields lists them
// once, for both directions:
//
//   template <class Message>
//   void pass(Message& message) { message(first_, second_); }
#pragma once

#include <cassert>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lockstep/data/peer_group.h"

namespace lockstep {

class MessageWriter {
 public:
  template <class... T>
  void operator()(T&... values) {
    (write(values), ...);
  }
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void put(const T& value) { append(&value, sizeof value); }
  void put_text(std::string_view text) {
    put(text.size());
    append(text.data(), text.size());
  }
  void put_bytes(const Bytes& bytes) { append(bytes.data(), bytes.size()); }
  const Bytes& bytes() const { return bytes_; }

 private:
  template <class T>
  void write(T& value) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      put(value);
    } else if constexpr (std::is_convertible_v<T, std::string_view>) {
      put_text(value);
    } else if constexpr (requires { value.pass(*this); }) {
      value.pass(*this);
    } else {
      put(value.size());
      for (auto& element : value) write(element);
    }
  }
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
  /// Containers are empty before.
  template <class... T>
  void operator()(T&... values) {
    (read(values), ...);
  }
  template <class T>
  requires std::is_trivially_copyable_v<T> T take() {
    T value;
    std::memcpy(&value, next(sizeof value), sizeof value);
    return value;
  }
  std::span<const std::byte> take_bytes(std::size_t count) { return {next(count), count}; }
  std::string take_text() {
    const auto length = take<std::size_t>();
    return length == 0 ? "" : std::string(reinterpret_cast<const char*>(next(length)), length);
  }

 private:
  template <class T>
  void read(T& value) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      value = take<T>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = take_text();
    } else if constexpr (requires { value.pass(*this); }) {
      value.pass(*this);
    } else {
      for (auto left = take<std::size_t>(); left > 0; --left) {
        typename T::value_type element{};
        read(element);
        value.insert(value.end(), std::move(element));
      }
    }
  }
  const std::byte* next(std::size_t count) {
    assert(count <= rest_.size());
    const std::byte* first = rest_.data();
    rest_ = rest_.subspan(count);
    return first;
  }
  std::span<const std::byte> rest_;
};

/// *Collective.* The value that `make` gives on rank 0, where alone it is called. Errors, the same on all
/// ranks: those of `make`.
template <class T, class Make>
T from_first_rank(PeerGroup& peers, const Make& make) {
  T value;
  MessageWriter message;
  peers.agree([&] {
    if (peers.rank() > 0) return;
    value = make();
    message(value);
  });
  const std::vector<Bytes> messages = peers.all_gather(message.bytes());
  if (peers.rank() > 0) MessageReader{messages.front()}(value);
  return value;
}

}  // namespace lockstep
